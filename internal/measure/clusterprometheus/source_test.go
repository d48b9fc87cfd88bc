package clusterprometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
)

var istiod = Program{Namespace: "istio-system", Deployment: "istiod", Pods: []string{"istiod-7c9-abcde"}, Container: "discovery"}

// answers are those of a Prometheus, by the beginning of a query. It answers a query that is not there with no series.
type answers map[string]string

func (a answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := strings.Index(r.URL.Path, "/api/v1/query")
	if strings.HasSuffix(r.URL.Path, "/api/v1/status/buildinfo") {
		fmt.Fprint(w, `{"status":"success","data":{"version":"3.5.0"}}`)
		return
	}
	if at < 0 || r.Method != http.MethodGet {
		http.Error(w, "want a query by GET", http.StatusTeapot)
		return
	}
	query := r.URL.Query().Get("query")
	for begins, answer := range a {
		if !strings.HasPrefix(query, begins) {
			continue
		}
		if status, body, ok := strings.Cut(answer, " "); ok && len(status) == 3 {
			var code int
			fmt.Sscan(status, &code)
			w.WriteHeader(code)
			answer = body
		}
		fmt.Fprint(w, answer)
		return
	}
	if query == "time()" {
		fmt.Fprint(w, success("scalar", []any{float64(time.Now().UnixMilli()) / 1000, fmt.Sprintf("%.3f", float64(time.Now().UnixMilli())/1000)}))
		return
	}
	fmt.Fprint(w, success("matrix", []any{}))
}

func success(kind string, result any) string {
	text, err := json.Marshal(map[string]any{"status": "success", "data": map[string]any{"resultType": kind, "result": result}})
	if err != nil {
		panic(err)
	}
	return string(text)
}

// matrix is an answer of series.
func matrix(series ...map[string]any) string { return success("matrix", series) }

// of are the samples of a pod's series.
func of(labels map[string]string, from time.Time, values ...string) map[string]any {
	all := map[string]string{"namespace": "istio-system", "pod": "istiod-7c9-abcde", "container": "discovery", "job": "kubelet", "instance": "10.0.0.1:10250"}
	for name, value := range labels {
		all[name] = value
	}
	var samples [][]any
	for i, v := range values {
		if v != "" { // a gap
			samples = append(samples, []any{float64(from.Add(time.Duration(i)*15*time.Second).UnixMilli()) / 1000, v})
		}
	}
	return map[string]any{"metric": all, "values": samples}
}

const counted = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"container_cpu_usage_seconds_total"},"value":[1,"2"]}]}}`

// source is one that has these answers in addition to what a look needs.
func source(t *testing.T, a answers) (*Source, *httptest.Server) {
	t.Helper()
	if a["count"] == "" {
		a["count"] = counted
	}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return Look(t.Context(), Options{Address: Address{URL: server.URL}, Program: istiod}), server
}

// Series of several scrapes of the same container are not added, values that are no numbers are left out, and what the timestamps are of
// follows from the scrapes.
func TestRead(t *testing.T) {
	begin := time.Now().Add(-2 * time.Minute).Truncate(time.Second)
	duration := of(map[string]string{"__name__": "scrape_duration_seconds"}, begin, "0.25", "0.5", "0.25", "0.25", "0.25")
	a := answers{
		"container_cpu_usage_seconds_total{": matrix(
			of(map[string]string{"id": "/a", "cpu": "total"}, begin, "10", "11", "NaN", "14", "16"),
			of(map[string]string{"id": "/a", "cpu": "cpu00"}, begin, "10", "11", "12", "14", "16"),
			of(map[string]string{"id": "/a", "cpu": "total", "job": "cadvisor"}, begin, "10", "", "12", "", ""),
			of(map[string]string{"id": "/b", "cpu": "total", "pod": "istiod-7c9-zzzzz"}, begin, "100", "101", "102", "103", "104"),
		),
		"container_memory_rss{":               matrix(of(map[string]string{"id": "/a"}, begin, "1000", "+Inf", "3000", "3000", "3000"), of(map[string]string{"id": "/a", "job": "cadvisor"}, begin, "7", "7")),
		"container_memory_working_set_bytes{": matrix(of(map[string]string{"id": "/a"}, begin, "5000", "5000", "5000", "5000", "5000")),
		"scrape_duration_seconds{":            matrix(duration),
	}
	s, _ := source(t, a)
	if s.Err != nil || s.Version != "3.5.0" || s.Detected {
		t.Fatalf("%+v", s)
	}
	m, err := s.Read(t.Context(), Cadvisor, begin, begin.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if m.Interval != 15*time.Second || m.LongestGap != 30*time.Second || m.Older < housekeeping || m.Older > housekeeping+10*time.Second || m.Newer < 500*time.Millisecond {
		t.Errorf("%+v", m)
	}
	if got := fmt.Sprint(m.Pods()); got != "[istiod-7c9-abcde istiod-7c9-zzzzz]" {
		t.Error(got)
	}
	u, there := m.Usage("istiod-7c9-abcde", begin, begin.Add(time.Minute))
	if !there || u.Err != nil || *u.CPUSeconds != 6 || u.Samples != 3 || *u.Resident != (Memory{Mean: 7000.0 / 3, Peak: 3000, End: 3000}) || u.WorkingSet.Mean != 5000 {
		t.Errorf("%s, %+v, %+v, %v", describe(u), u.Resident, u.WorkingSet, u.Err)
	}
	a["scrape_duration_seconds{"] = matrix(of(nil, begin.Add(time.Second), "0.25", "0.5")) // at other moments
	if m, err = s.Read(t.Context(), Cadvisor, begin, begin.Add(time.Minute)); err != nil || m.Older >= housekeeping {
		t.Errorf("timestamps of cAdvisor itself: %+v, %v", m, err)
	}
}

// The scrape that takes longest, and the timestamps that say least, are those of all targets.
func TestReadOfSeveralTargets(t *testing.T) {
	begin := time.Now().Add(-2 * time.Minute).Truncate(time.Second)
	other := map[string]string{"pod": "istiod-7c9-zzzzz", "instance": "10.0.0.2:10250"}
	s, _ := source(t, answers{
		"container_cpu_usage_seconds_total{": matrix(of(nil, begin.Add(time.Second), "1", "2", "3"), of(other, begin, "1", "2", "3")),
		"scrape_duration_seconds{":           matrix(of(nil, begin, "0.25", "9", "0.25"), of(other, begin, "0.25", "3", "0.25")),
	})
	m, err := s.Read(t.Context(), Cadvisor, begin, begin.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if m.Older < housekeeping || m.Newer < 3*time.Second || m.Newer > 6*time.Second {
		t.Errorf("values are of %s before their timestamps to %s after", m.Older, m.Newer)
	}
}

// Samples and starts by another clock are of moments of this machine's.
func TestReadByAnotherClock(t *testing.T) {
	const ahead = 100 * time.Second
	begin := time.Now().Add(-2 * time.Minute).Truncate(time.Second)
	theirs := begin.Add(ahead)
	s, _ := source(t, answers{
		"time()":                             success("scalar", []any{1, fmt.Sprintf("%.3f", float64(time.Now().Add(ahead).UnixMilli())/1000)}),
		"container_cpu_usage_seconds_total{": matrix(of(nil, theirs, "10", "11", "12", "13", "14")),
		"container_start_time_seconds{":      matrix(of(nil, theirs, fmt.Sprint(theirs.Add(-time.Minute).Unix()))),
	})
	m, err := s.Read(t.Context(), Cadvisor, begin, begin.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	const uncertain = 20 * time.Second // the answer was made before the question
	if off := (m.Ahead - ahead).Abs(); off > uncertain {
		t.Errorf("its clock is %s before this machine's, want %s", m.Ahead, ahead)
	}
	one := m.pods["istiod-7c9-abcde"].lives[0]
	if off := one.samples[0].At.Sub(begin).Abs(); off > uncertain {
		t.Errorf("the first sample is of %s, want %s", clock(one.samples[0].At), clock(begin))
	}
	if got, want := one.samples[0].At.Sub(one.started).Round(time.Second), time.Minute; got != want {
		t.Errorf("it began %s before its first sample, want %s", got, want)
	}
	if m.Older > housekeeping+uncertain {
		t.Errorf("a value may be %s older", m.Older)
	}
}

// What a Prometheus or the API server answers in place of figures is an error that says so, without the query.
func TestReadErrors(t *testing.T) {
	begin := time.Now().Add(-time.Minute)
	for name, test := range map[string]struct{ answer, want string }{
		"nothing":         {matrix(), `it has no process_cpu_seconds_total{namespace="istio-system"`},
		"only no numbers": {matrix(of(nil, begin, "NaN", "NaN")), "it has no process_cpu_seconds_total"},
		"a bad query":     {`400 {"status":"error","errorType":"bad_data","error":"parse error"}`, "bad_data: parse error"},
		"a time limit":    {`503 {"status":"error","errorType":"timeout","error":"query timed out"}`, "server error: 503: query timed out"},
		"no right":        {`403 {"kind":"Status","status":"Failure","message":"services \"p:9090\" is forbidden: User \"me\" cannot get resource \"services/proxy\""}`, `cannot get resource "services/proxy"`},
		"a page":          {"<html>log in</html>", "bad_response"},
		"a cut answer":    {matrix(of(nil, begin, "1", "2"))[:60], "bad_response"},
		"another type":    {success("scalar", []any{1, "2"}), "its answer is a scalar: want series"},
		"no values":       {`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1]]}]}}`, "bad_response"},
		"not JSON":        {"500 oops\nsecond line", "server_error: server error: 500"},
		"no status":       {"{}", "its answer has no result"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := source(t, answers{"process_cpu_seconds_total{": test.answer})
			_, err := s.Read(t.Context(), Own, begin, time.Now())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

// A Prometheus that ends, one without the metrics, and one that redirects are not asked, and the reason is kept.
func TestLook(t *testing.T) {
	s, server := source(t, answers{})
	server.Close()
	if _, err := s.Read(t.Context(), Own, time.Now().Add(-time.Minute), time.Now()); err == nil || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "query=") {
		t.Errorf("after its end: %v", err)
	}
	limited, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := s.Await(limited, Cadvisor, time.Now()); err == nil || !strings.Contains(err.Error(), "waiting for samples of container_cpu_usage_seconds_total: context deadline") {
		t.Errorf("waiting after its end: %v", err)
	}
	if err := s.Await(t.Context(), Own, time.Now()); err == nil || !strings.Contains(err.Error(), "it had none before the run") {
		t.Errorf("waiting for what it never had: %v", err)
	}
	if s := Look(t.Context(), Options{Address: Address{URL: server.URL}, Program: istiod}); s.Err == nil || !strings.Contains(s.Err.Error(), "connection refused") {
		t.Errorf("unreachable: %v", s.Err)
	}
	if s, _ := source(t, answers{"count": success("vector", []any{})}); s.Err == nil || !strings.Contains(s.Err.Error(), "it has no process_cpu_seconds_total or container_cpu_usage_seconds_total of pods istio-system/") {
		t.Errorf("without metrics: %v", s.Err)
	}
	if s := Look(t.Context(), Options{}); s != nil {
		t.Errorf("without an address: %+v", s)
	}
	var seen string
	away := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = r.Header.Get("Authorization") }))
	defer away.Close()
	redirecting := httptest.NewServer(http.RedirectHandler(away.URL, http.StatusFound))
	defer redirecting.Close()
	if s := Look(t.Context(), Options{Address: Address{URL: redirecting.URL}, Token: "hush", Program: istiod}); s.Err == nil || !strings.Contains(s.Err.Error(), "it redirects to") || seen != "" {
		t.Errorf("redirected: %v, with %q", s.Err, seen)
	}
	asking := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Get("Authorization")
		answers{"count": counted}.ServeHTTP(w, r)
	}))
	defer asking.Close()
	if s := Look(t.Context(), Options{Address: Address{URL: asking.URL}, Token: "hush", Program: istiod}); s.Err != nil || seen != "Bearer hush" {
		t.Errorf("with a token: %v, with %q", s.Err, seen)
	}
}

func service(namespace, name string, labels map[string]string, ports ...corev1.ServicePort) corev1.Service {
	return corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Spec: corev1.ServiceSpec{Ports: ports}}
}

// The Service of the usual installations is found, and passed over where it has no metrics of the control plane.
func TestDetect(t *testing.T) {
	web, http80 := corev1.ServicePort{Name: "web", Port: 9090}, corev1.ServicePort{Name: "http", Port: 80}
	label := map[string]string{"app.kubernetes.io/name": "prometheus"}
	for name, test := range map[string]struct {
		services []corev1.Service
		want     string
	}{
		"kube-prometheus":       {[]corev1.Service{service("monitoring", "prometheus-operated", nil, web), service("monitoring", "prometheus-k8s", label, corev1.ServicePort{Name: "reloader-web", Port: 8080}, web)}, "[service:monitoring/prometheus-k8s:9090 service:monitoring/prometheus-operated:9090]"},
		"its chart":             {[]corev1.Service{service("m", "kps-kube-prometheus-stack-prometheus", map[string]string{"app": "kube-prometheus-stack-prometheus", "self-monitor": "true"}, corev1.ServicePort{Name: "http-web", Port: 9090})}, "[service:m/kps-kube-prometheus-stack-prometheus:9090]"},
		"Prometheus' own chart": {[]corev1.Service{service("p", "prometheus-server", label, http80), service("p", "prometheus-alertmanager", map[string]string{"app.kubernetes.io/name": "alertmanager"}, http80)}, "[service:p/prometheus-server:80]"},
		"Istio's addon":         {[]corev1.Service{service("istio-system", "prometheus", map[string]string{"app.kubernetes.io/name": "prometheus", "app.kubernetes.io/component": "server"}, corev1.ServicePort{Name: "http", Port: 9090})}, "[service:istio-system/prometheus:9090]"},
		"TLS":                   {[]corev1.Service{service("m", "prometheus", nil, corev1.ServicePort{Name: "https", Port: 443})}, "[service:m/https:prometheus:443]"},
		"others":                {[]corev1.Service{service("a", "web", nil, http80), service("a", "prometheus-node-exporter", nil, corev1.ServicePort{Name: "metrics", Port: 9100}), service("a", "prometheus", nil)}, "[]"},
	} {
		if got := fmt.Sprint(candidates(test.services)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	has := answers{"count": counted}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/b/services/prometheus:9090/proxy/api/v1/") {
			has.ServeHTTP(w, r)
			return
		}
		http.Error(w, `{"kind":"Status","message":"no endpoints available for service \"prometheus\""}`, http.StatusServiceUnavailable)
	}))
	defer api.Close()
	a, b := service("a", "prometheus", label, web), service("b", "prometheus", nil, web)
	o := Options{Address: Address{Detect: true}, Cluster: &rest.Config{Host: api.URL}, Client: fake.NewClientset(&a, &b), Program: istiod}
	if s := Look(t.Context(), o); s.Err != nil || !s.Detected || s.Address.String() != "service:b/prometheus:9090" {
		t.Errorf("%+v", s)
	}
	o.Client = fake.NewClientset(&a)
	if s := Look(t.Context(), o); s.Err == nil || !strings.Contains(s.Err.Error(), `service:a/prometheus:9090: `) || !strings.Contains(s.Err.Error(), "no endpoints available") || s.Address.String() != "detect" {
		t.Errorf("%+v", s)
	}
	o.Client = fake.NewClientset()
	if s := Look(t.Context(), o); s.Err == nil || !strings.Contains(s.Err.Error(), "no Service of the cluster") {
		t.Errorf("%+v", s)
	}
}
