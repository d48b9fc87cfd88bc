package grafana

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"scaler.mesh/scaler/dashboards"
	"scaler.mesh/scaler/internal/process"
)

// script makes a program of shell lines and returns its path.
func script(dir, name, lines string) string {
	GinkgoHelper()
	Expect(os.MkdirAll(dir, 0o755)).To(Succeed())
	path := filepath.Join(dir, name)
	Expect(os.WriteFile(path, []byte("#!/bin/sh\n"+lines+"\n"), 0o755)).To(Succeed())
	return path
}

// home makes a folder look like Grafana's.
func home(dir string) string {
	GinkgoHelper()
	Expect(os.MkdirAll(filepath.Join(dir, "conf"), 0o755)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(dir, "conf", "defaults.ini"), nil, 0o644)).To(Succeed())
	return dir
}

var _ = Describe("Find", func() {
	var dir string
	BeforeEach(func() {
		dir = GinkgoT().TempDir()
		GinkgoT().Setenv("PATH", filepath.Join(dir, "bin"))
		packages := homes
		DeferCleanup(func() { homes = packages })
		homes = []string{filepath.Join(dir, "share")}
	})

	It("prefers a program of this machine to Docker", func(ctx SpecContext) {
		path := script(filepath.Join(dir, "bin"), "grafana", "")
		script(filepath.Join(dir, "bin"), "docker", "exit 0")
		home(filepath.Join(dir, "share"))
		Expect(Find(ctx, FindOptions{})).To(Equal(Launcher{path: path, home: filepath.Join(dir, "share")}))
	})

	It("finds the home above the program, through links", func(ctx SpecContext) {
		path := script(filepath.Join(home(filepath.Join(dir, "grafana-12")), "bin"), "grafana", "")
		Expect(os.MkdirAll(filepath.Join(dir, "bin"), 0o755)).To(Succeed())
		link := filepath.Join(dir, "bin", "grafana")
		Expect(os.Symlink(path, link)).To(Succeed())
		real, err := filepath.EvalSymlinks(filepath.Join(dir, "grafana-12"))
		Expect(err).NotTo(HaveOccurred())
		Expect(Find(ctx, FindOptions{})).To(Equal(Launcher{path: link, home: real}))
	})

	It("takes Docker where its server answers", func(ctx SpecContext) {
		docker := script(filepath.Join(dir, "bin"), "docker", `[ "$1" = info ]`)
		Expect(Find(ctx, FindOptions{})).To(Equal(Launcher{path: docker, image: Image}))
		Expect(Find(ctx, FindOptions{Image: "mine:1"})).To(Equal(Launcher{path: docker, image: "mine:1"}))
	})

	It("says what there is none for", func(ctx SpecContext) {
		_, err := Find(ctx, FindOptions{})
		Expect(err).To(And(MatchError(ErrNone), MatchError(ContainSubstring("neither grafana nor docker is in PATH"))))
		script(filepath.Join(dir, "bin"), "docker", "echo; echo 'Cannot connect to the Docker daemon' >&2; exit 1")
		_, err = Find(ctx, FindOptions{})
		Expect(err).To(And(MatchError(ErrNone), MatchError(ContainSubstring("Cannot connect to the Docker daemon"))))
	})

	It("does not take something else for what was named", func(ctx SpecContext) {
		script(filepath.Join(dir, "bin"), "docker", "exit 0")
		_, err := Find(ctx, FindOptions{Program: filepath.Join(dir, "nowhere")})
		Expect(err).To(MatchError(ContainSubstring("no such file")))
		path := script(filepath.Join(dir, "else"), "grafana", "")
		_, err = Find(ctx, FindOptions{Program: path})
		Expect(err).To(MatchError(ContainSubstring("want the folder that holds conf/defaults.ini")))
		_, err = Find(ctx, FindOptions{Program: path, Home: dir})
		Expect(err).To(MatchError(ContainSubstring("holds no conf/defaults.ini")))
	})
})

var _ = Describe("Start", func() {
	var (
		dir     string
		group   *process.Group
		opts    StartOptions
		calls   string // what the program was called with
		grafana *httptest.Server
	)
	BeforeEach(func() {
		dir = GinkgoT().TempDir()
		calls = filepath.Join(dir, "calls")
		var err error
		group, err = process.OpenGroup(filepath.Join(dir, "group"), process.GroupOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(group.Stop(ctx)).To(Succeed()) })
		// The stand-in of the program does not serve; this does.
		grafana = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, "/api/dashboards/uid/scaler-") {
				http.NotFound(w, r)
			}
		}))
		DeferCleanup(grafana.Close)
		opts = StartOptions{
			Dir: filepath.Join(group.Dir(), "grafana"), Group: group, Log: filepath.Join(dir, "log"),
			Address: strings.TrimPrefix(grafana.URL, "http://"), Source: dashboards.Source{URL: "http://127.0.0.1:9090", ScrapeInterval: 8 * time.Second},
		}
	})

	It("provisions a program with the dashboards and the data source", func(ctx SpecContext) {
		path := script(dir, "grafana", fmt.Sprintf("echo \"$@\" > %[1]s; env >> %[1]s; exec sleep 60", calls))
		server, err := Launcher{path: path, home: "/a/home"}.Start(ctx, opts)
		Expect(err).NotTo(HaveOccurred())
		Expect(server.URL()).To(Equal(grafana.URL))
		Eventually(func() (string, error) { data, err := os.ReadFile(calls); return string(data), err }).Should(And(
			HavePrefix("server --homepath /a/home\n"),
			ContainSubstring("GF_PATHS_PROVISIONING="+filepath.Join(opts.Dir, "provisioning")+"\n"),
			ContainSubstring("GF_SERVER_HTTP_ADDR=127.0.0.1\n"),
			ContainSubstring("GF_AUTH_ANONYMOUS_ENABLED=true\n"),
		))
		Expect(os.ReadFile(filepath.Join(opts.Dir, "provisioning", "datasources", "scaler.yaml"))).To(ContainSubstring("http://127.0.0.1:9090"))
		Expect(os.ReadDir(filepath.Join(opts.Dir, "dashboards"))).To(HaveLen(4))
		Expect(server.Stop(ctx)).To(Succeed())
	})

	It("calls an older program as it was called then", func(ctx SpecContext) {
		path := script(dir, "grafana-server", fmt.Sprintf("echo \"$@\" > %s; exec sleep 60", calls))
		_, err := Launcher{path: path, home: "/a/home"}.Start(ctx, opts)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() (string, error) { data, err := os.ReadFile(calls); return string(data), err }).Should(Equal("--homepath /a/home\n"))
	})

	It("runs an image with Docker, and removes its container", func(ctx SpecContext) {
		path := script(dir, "docker", fmt.Sprintf("echo \"$@\" >> %s; [ $1 != run ] || exec sleep 60", calls))
		server, err := Launcher{path: path, image: "grafana/grafana:1"}.Start(ctx, opts)
		Expect(err).NotTo(HaveOccurred())
		name, err := Container(group.Dir())
		Expect(err).NotTo(HaveOccurred())
		Expect(name).To(MatchRegexp("^scaler-grafana-[a-z2-7]{26}$"))
		Eventually(func() (string, error) { data, err := os.ReadFile(calls); return string(data), err }).Should(And(
			HavePrefix("run --rm --name "+name+" --network host --user "),
			ContainSubstring("--volume "+opts.Dir+":"+opts.Dir+" "),
			ContainSubstring("--env GF_PATHS_PROVISIONING="+filepath.Join(opts.Dir, "provisioning")+" "),
			HaveSuffix(" grafana/grafana:1\n"),
		))
		Expect(server.Stop(ctx)).To(Succeed())
		Expect(server.Done()).To(BeClosed())
		Expect(os.ReadFile(calls)).To(WithTransform(func(b []byte) string { return string(b) }, HaveSuffix("\nrm --force "+name+"\n")))
	})

	It("removes its container however its client ended, and out of time", func(ctx SpecContext) {
		path := script(dir, "docker", fmt.Sprintf("echo \"$@\" >> %s; [ $1 != run ] || exec sleep 60", calls))
		server, err := Launcher{path: path, image: "grafana/grafana:1"}.Start(ctx, opts)
		Expect(err).NotTo(HaveOccurred())
		// The stand-in serves already; Docker's client may not have come to run yet.
		Eventually(func() (string, error) { data, err := os.ReadFile(calls); return string(data), err }).Should(HavePrefix("run --rm "))
		over, cancel := context.WithCancel(ctx)
		cancel()
		_ = server.Stop(over)
		Expect(os.ReadFile(calls)).To(WithTransform(func(b []byte) string { return string(b) }, HaveSuffix("\nrm --force "+server.container+"\n")))
	})

	It("says why a program has ended", func(ctx SpecContext) {
		grafana.Close()
		path := script(dir, "grafana", "echo 'database is locked'; exit 1")
		_, err := Launcher{path: path, home: "/a/home"}.Start(ctx, opts)
		Expect(err).To(MatchError(And(ContainSubstring("starting Grafana"), ContainSubstring("database is locked"))))
	})
})
