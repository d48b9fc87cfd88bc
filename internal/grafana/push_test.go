package grafana

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/dashboards"
)

// standIn answers what Push asks for as Grafana does, below the path /sub.
type standIn struct {
	token string // that it wants
	role  int    // its answer to writes by others than Editors; 0 = none

	mu         sync.Mutex
	folders    map[string]string // title by uid
	dashboards map[string]int    // times written, by uid
	race       bool              // another client creates the folder first
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := func(code int, body any) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}
	message := func(text string) map[string]string { return map[string]string{"message": text} }
	var body struct {
		UID, Title, FolderUID string
		Overwrite             bool
		Dashboard             struct{ UID string }
	}
	if r.Method == http.MethodPost {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Header.Get("Content-Type") != "application/json" {
			answer(http.StatusBadRequest, message("bad request data"))
			return
		}
	}
	folder, isFolder := strings.CutPrefix(r.URL.Path, "/sub/api/folders/")
	switch {
	case s.token != "" && r.Header.Get("Authorization") != "Bearer "+s.token:
		answer(http.StatusUnauthorized, message("Invalid API key"))
	case r.Method == http.MethodGet && isFolder && s.folders[folder] != "":
		answer(http.StatusOK, map[string]string{"uid": folder, "title": s.folders[folder]})
	case r.Method == http.MethodGet && isFolder:
		answer(http.StatusNotFound, message("folder not found"))
	case r.Method == http.MethodPost && s.role != 0:
		answer(s.role, message("You'll need additional permissions to perform this action."))
	case r.Method == http.MethodPost && r.URL.Path == "/sub/api/folders":
		if s.race {
			s.folders[body.UID] = body.Title
			answer(http.StatusPreconditionFailed, message("the folder has been changed by someone else"))
			return
		}
		s.folders[body.UID] = body.Title
		answer(http.StatusOK, map[string]string{"uid": body.UID})
	case r.Method == http.MethodPost && r.URL.Path == "/sub/api/dashboards/db":
		uid := body.Dashboard.UID
		switch {
		case s.folders[body.FolderUID] == "":
			answer(http.StatusBadRequest, message("folder not found"))
		case s.dashboards[uid] > 0 && !body.Overwrite:
			answer(http.StatusPreconditionFailed, message("the dashboard has been changed by someone else"))
		default:
			s.dashboards[uid]++
			answer(http.StatusOK, map[string]string{"uid": uid, "url": "/sub/d/" + uid + "/slug", "status": "success"})
		}
	default:
		http.NotFound(w, r)
	}
}

var _ = Describe("Push", func() {
	var (
		all  []dashboards.Dashboard
		fake *standIn
		base string
	)
	BeforeEach(func() {
		var err error
		all, err = dashboards.All()
		Expect(err).NotTo(HaveOccurred())
		fake = &standIn{folders: map[string]string{}, dashboards: map[string]int{}}
		server := httptest.NewServer(fake)
		DeferCleanup(server.Close)
		base = server.URL + "/sub"
	})

	It("makes the folder and writes all dashboards into it, as often as wanted", func(ctx SpecContext) {
		fake.token = "secret"
		for times := 1; times <= 2; times++ {
			pushed, err := Push(ctx, Target{URL: base + "/", Token: "secret"}, all)
			Expect(err).NotTo(HaveOccurred())
			Expect(pushed).To(HaveLen(len(all)))
			for i, p := range pushed {
				Expect(p).To(Equal(Pushed{UID: all[i].UID, Title: all[i].Title, URL: base + "/d/" + all[i].UID + "/slug"}))
				Expect(fake.dashboards[p.UID]).To(Equal(times))
			}
		}
		Expect(fake.folders).To(Equal(map[string]string{"scaler": "scaler"}))
	})

	It("takes the user and the password of the address, and shows neither", func(ctx SpecContext) {
		var user, password string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user, password, _ = r.BasicAuth()
			http.Error(w, `{"message":"no"}`, http.StatusForbidden)
		}))
		DeferCleanup(server.Close)
		u, err := url.Parse(server.URL)
		Expect(err).NotTo(HaveOccurred())
		u.User = url.UserPassword("admin", "hush")
		_, err = Push(ctx, Target{URL: u.String()}, all)
		Expect(user + ":" + password).To(Equal("admin:hush"))
		Expect(err).To(MatchError(And(ContainSubstring("403"), Not(ContainSubstring("hush")))))
	})

	It("accepts that another client creates the folder meanwhile", func(ctx SpecContext) {
		fake.race = true
		Expect(Push(ctx, Target{URL: base}, all)).To(HaveLen(len(all)))
	})

	DescribeTable("says what is wrong", func(ctx SpecContext, prepare func(), target func() Target, want ...string) {
		prepare()
		_, err := Push(ctx, target(), all)
		for _, part := range want {
			Expect(err).To(MatchError(ContainSubstring(part)))
		}
		Expect(fake.dashboards).To(BeEmpty())
	},
		Entry("a wrong token", func() { fake.token = "secret" }, func() Target { return Target{URL: base, Token: "guess"} },
			"making folder scaler", "401 Unauthorized: Invalid API key", "want the token of a service account"),
		Entry("no token", func() { fake.token = "secret" }, func() Target { return Target{URL: base} }, "401"),
		Entry("a viewer's token", func() { fake.role = http.StatusForbidden }, func() Target { return Target{URL: base} },
			"403 Forbidden: You'll need additional permissions", "whose role is Editor"),
		Entry("no Grafana", func() {}, func() Target { return Target{URL: strings.TrimSuffix(base, "/sub")} },
			"404 Not Found", "want the address of a Grafana"),
		Entry("nobody there", func() {}, func() Target { return Target{URL: "http://127.0.0.1:1"} }, "connection refused"),
		Entry("no address", func() {}, func() Target { return Target{URL: "grafana:3000"} }, "want the address of a Grafana"),
	)

	It("does not take anything for an answer", func(ctx SpecContext) {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("<html>welcome</html>"))
		}))
		DeferCleanup(server.Close)
		_, err := Push(ctx, Target{URL: server.URL}, all)
		Expect(err).To(MatchError(ContainSubstring("answers what no Grafana does")))
	})
})
