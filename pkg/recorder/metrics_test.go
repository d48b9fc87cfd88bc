package recorder

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// filled is the metrics of a run in which everything has happened once.
func filled(t *testing.T) *Metrics {
	t.Helper()
	s := NewSampler(0)
	if err := s.Watch("self", os.Getpid()); err != nil {
		t.Fatal(err)
	}
	m := NewMetrics(Build{Version: "v0.1.0", Revision: "abc"}, s)
	m.Phase("baseline")
	m.Phase("rollout")
	m.Pods("created", 200)
	m.Sidecars("connected", 100)
	m.Response("EDS", 1000)
	m.Response("EDS", 500)
	m.Wasted("EDS")
	m.Acknowledged("EDS")
	m.Rejected("LDS")
	m.Attempt()
	m.Refusal()
	m.Reconnect()
	m.Certificate(true)
	m.Certificate(false)
	for l := range latencies {
		m.Observe(l, 10*time.Millisecond)
	}
	m.Observe("no such latency", time.Second)
	return m
}

func TestMetricsFollowConventions(t *testing.T) {
	problems, err := testutil.GatherAndLint(filled(t).registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		// Others' names are others' business.
		if strings.HasPrefix(p.Metric, namespace+"_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestMetricsValues(t *testing.T) {
	want := `
# HELP scaler_certificate_requests_total Certificate signing requests answered or failed.
# TYPE scaler_certificate_requests_total counter
scaler_certificate_requests_total{outcome="failed"} 1
scaler_certificate_requests_total{outcome="issued"} 1
# HELP scaler_phase_info The phase that the run is in.
# TYPE scaler_phase_info gauge
scaler_phase_info{phase="rollout"} 1
# HELP scaler_pods Pods of the run that have reached a state.
# TYPE scaler_pods gauge
scaler_pods{state="created"} 200
# HELP scaler_xds_response_bytes_total Bytes of discovery responses received.
# TYPE scaler_xds_response_bytes_total counter
scaler_xds_response_bytes_total{type="EDS"} 1500
# HELP scaler_xds_responses_total Discovery responses received.
# TYPE scaler_xds_responses_total counter
scaler_xds_responses_total{type="EDS"} 2
`
	err := testutil.GatherAndCompare(filled(t).registry, strings.NewReader(want), "scaler_certificate_requests_total",
		"scaler_phase_info", "scaler_pods", "scaler_xds_response_bytes_total", "scaler_xds_responses_total")
	if err != nil {
		t.Error(err)
	}
}

func TestMetricsHistogramsAreNativeAndClassic(t *testing.T) {
	families, err := filled(t).registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, family := range families {
		if name := family.GetName(); !strings.HasPrefix(name, namespace+"_") || !strings.HasSuffix(name, "_seconds") {
			continue
		}
		h := family.GetMetric()[0].GetHistogram()
		if h.GetSampleCount() != 1 || len(h.GetBucket()) == 0 || len(h.GetPositiveSpan()) == 0 {
			t.Errorf("%s: %d observations, %d buckets, %d spans", family.GetName(), h.GetSampleCount(), len(h.GetBucket()), len(h.GetPositiveSpan()))
		}
		found++
	}
	if found != len(latencies) {
		t.Errorf("%d histograms, want %d", found, len(latencies))
	}
}

func TestMetricsServer(t *testing.T) {
	server, err := filled(t).Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- server.Run(ctx) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`scaler_build_info{go_version="go1`, `scaler_component_cpu_seconds_total{component="self"}`,
		`scaler_connect_seconds_bucket{le="0.016"} 1`, "go_gc_heap_live_bytes", "process_open_fds",
	} {
		if !strings.Contains(string(body), want) {
			t.Errorf("metrics hold no %s", want)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := client.Get(server.URL()); err == nil {
		t.Error("the port still answers")
	}
}
