package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A capture of files asks a Prometheus for the history of their control plane, and states what it does not have.
func TestCaptureHistory(t *testing.T) {
	dir := t.TempDir()
	cluster, out, mesh := filepath.Join(dir, "cluster.yaml"), filepath.Join(dir, "out.yaml"), filepath.Join(dir, "none.yaml")
	const service = "apiVersion: v1\nkind: Service\nmetadata: {name: cart, namespace: shop}\nspec: {ports: [{port: 80}]}\n"
	const deployment = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: istiod-1-29, namespace: istio-system, labels: {app: istiod, istio.io/rev: 1-29}}\n" +
		"spec: {template: {spec: {containers: [{name: discovery, image: 'docker.io/istio/pilot:1.29.1'}]}}}\n"
	for file, text := range map[string]string{cluster: service + deployment, mesh: service} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query().Get("query")
		answer := func(kind, result string) {
			fmt.Fprintf(w, `{"status":"success","data":{"resultType":%q,"result":%s}}`, kind, result)
		}
		switch {
		case query == "time()":
			answer("scalar", `[1767700000,"1767700000"]`)
		case strings.HasPrefix(query, "count") && strings.Contains(query, `pod=~"istiod-1-29-[a-z0-9]+-[a-z0-9]+"`):
			answer("vector", `[{"metric":{"__name__":"process_cpu_seconds_total"},"value":[1767700000,"2"]}]`)
		case strings.HasPrefix(query, "sum(max by (pod) (rate(process_cpu"):
			answer("matrix", `[{"metric":{},"values":[[1767699900,"1.5"]]}]`)
		default:
			answer("matrix", `[]`)
		}
	}))
	defer server.Close()
	call := func(args ...string) (int, string) {
		var stdout, stderr bytes.Buffer
		err := execute(t.Context(), append([]string{"capture"}, args...), nil, &stdout, &stderr)
		if err != nil {
			fmt.Fprintln(&stderr, err)
		}
		return exitCode(err), stderr.String()
	}
	code, stderr := call(cluster, "--prometheus", server.URL, "--prometheus-days", "1", "--output-file", out)
	text, err := os.ReadFile(out)
	if code != 0 || err != nil {
		t.Fatalf("exit %d, %v: %s", code, err, stderr)
	}
	for _, want := range []string{"revision 1-29: processorTime: p50 1.5 cores", "revision 1-29: proxies: not known: it has no pilot_xds\n", "API server: requests: not known: it has no apiserver_request_total"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("summary %s\nwant %q", stderr, want)
		}
	}
	if !strings.Contains(string(text), "max: 1.5") || !strings.Contains(string(text), "figure: proxies") {
		t.Errorf("file %s", text)
	}
	for want, args := range map[string][]string{
		"want it with --prometheus":            {cluster, "--prometheus-days", "3"},
		"want an address":                      {cluster, "--prometheus", ""},
		"want detect, service:":                {cluster, "--prometheus", "10.0.0.1"},
		"want a URL with files":                {cluster, "--prometheus", "detect"},
		"want a URL with them":                 {"--prometheus", "detect", "--prometheus-token", cluster},
		"want 1 to 30":                         {cluster, "--prometheus", server.URL, "--prometheus-days", "31"},
		"--prometheus-ca":                      {cluster, "--prometheus", server.URL, "--prometheus-ca", cluster},
		"want [HEADER=]TENANT":                 {cluster, "--prometheus", server.URL, "--prometheus-tenant", "=a"},
		"with a control plane, whose metrics ": {mesh, "--prometheus", server.URL},
	} {
		if code, stderr := call(append([]string{"--output-file", filepath.Join(dir, "no.yaml")}, args...)...); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit %d, %s, want 2 and %q", args, code, stderr, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "no.yaml")); err == nil {
		t.Error("a file was written by a command that was refused")
	}
}
