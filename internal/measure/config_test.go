package measure

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestConfig(t *testing.T) {
	got, err := config([]Target{
		{Job: "istiod", URL: "http://127.0.0.1:15014/metrics?x=1", Labels: map[string]string{"run": "r1"}},
		{Job: "etcd", URL: "http://127.0.0.1:2381/metrics", Interval: 500 * time.Millisecond}, // no shorter than the others
		{Job: "kube-apiserver", URL: "https://127.0.0.1:6443/metrics", CAFile: "ca.crt", CertFile: "admin.crt", KeyFile: "admin.key", Interval: 5 * time.Second},
	}, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	relabel := `  metric_relabel_configs:
  - action: drop
    regex: (` + strings.Join(dropped, "|") + `)_bucket
    source_labels:
    - __name__
`
	want := `global:
  always_scrape_classic_histograms: true
  scrape_interval: 1000ms
  scrape_native_histograms: true
  scrape_timeout: 950ms
scrape_configs:
- enable_compression: false
  fallback_scrape_protocol: PrometheusText0.0.4
  job_name: istiod/0
` + relabel + `  metrics_path: /metrics
  params:
    x:
    - "1"
  scheme: http
  static_configs:
  - labels:
      job: istiod
      run: r1
    targets:
    - 127.0.0.1:15014
- enable_compression: false
  fallback_scrape_protocol: PrometheusText0.0.4
  job_name: etcd/1
` + relabel + `  metrics_path: /metrics
  scheme: http
  static_configs:
  - labels:
      job: etcd
    targets:
    - 127.0.0.1:2381
- enable_compression: false
  fallback_scrape_protocol: PrometheusText0.0.4
  job_name: kube-apiserver/2
` + relabel + `  metrics_path: /metrics
  scheme: https
  scrape_interval: 5000ms
  scrape_timeout: 4750ms
  static_configs:
  - labels:
      job: kube-apiserver
    targets:
    - 127.0.0.1:6443
  tls_config:
    ca_file: ca.crt
    cert_file: admin.crt
    key_file: admin.key
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func TestStartRefuses(t *testing.T) {
	for _, test := range []struct {
		name    string
		targets []Target
		want    string
	}{
		{"nothing to scrape", nil, "no targets"},
		{"no job", []Target{{URL: "http://h:1/metrics"}}, "job is empty"},
		{"no url", []Target{{Job: "etcd"}}, `url "": want http`},
		{"no host", []Target{{Job: "etcd", URL: "http:///metrics"}}, "want http"},
		{"other scheme", []Target{{Job: "etcd", URL: "unix:///metrics"}}, "want http"},
		{"broken url", []Target{{Job: "etcd", URL: "http://h:port"}}, "invalid port"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := Start(t.Context(), Options{Dir: t.TempDir(), Targets: test.targets})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
