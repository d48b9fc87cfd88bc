package clusterprometheus

import (
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

var istiod = Program{Namespace: "istio-system", Deployment: "istiod", Container: "discovery"}

// answers are the answers of a Prometheus, by the beginning of a query. It answers other queries with no series.
type answers map[string]string

func (a answers) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := strings.Index(r.URL.Path, "/api/v1/query")
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

// matrix returns an answer of series.
func matrix(series ...map[string]any) string { return success("matrix", series) }

const counted = `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"container_cpu_usage_seconds_total"},"value":[1,"2"]}]}}`

// source returns a source that has these answers in addition to what a look needs.
func source(t *testing.T, a answers) (*Source, *httptest.Server) {
	t.Helper()
	if a["count"] == "" {
		a["count"] = counted
	}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return Look(t.Context(), Options{Address: Address{URL: server.URL}, Program: istiod}), server
}

// What a Prometheus or the API server answers in place of figures is an error that says so, without the query.
func TestErrors(t *testing.T) {
	for name, test := range map[string]struct{ answer, want string }{
		"a bad query":  {`400 {"status":"error","errorType":"bad_data","error":"parse error"}`, "bad_data: parse error"},
		"a time limit": {`503 {"status":"error","errorType":"timeout","error":"query timed out"}`, "server error: 503: query timed out"},
		"no right":     {`403 {"kind":"Status","status":"Failure","message":"services \"p:9090\" is forbidden: User \"me\" cannot get resource \"services/proxy\""}`, `cannot get resource "services/proxy"`},
		"a page":       {"<html>log in</html>", "bad_response"},
		"a cut answer": {counted[:60], "bad_response"},
		"no values":    {`{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1]]}]}}`, "bad_response"},
		"not JSON":     {"500 oops\nsecond line", "server_error: server error: 500"},
		"no status":    {"{}", "its answer has no result"},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := source(t, answers{"process_cpu_seconds_total{": test.answer})
			_, err := s.client.query(t.Context(), "process_cpu_seconds_total{}", time.Time{})
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
	if _, err := s.client.query(t.Context(), "process_cpu_seconds_total{}", time.Time{}); err == nil || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "query=") {
		t.Errorf("after its end: %v", err)
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
	if s := Look(t.Context(), o); s.Err != nil || s.Address.String() != "service:b/prometheus:9090" {
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
