package measure

import (
	"context"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/record"
)

// filled returns the metrics of a run in which everything has happened once.
func filled(t *testing.T) *Metrics {
	t.Helper()
	s := NewSampler(0)
	if err := s.Watch("self", Self()); err != nil {
		t.Fatal(err)
	}
	m := NewMetrics(Build{Version: "v0.1.0", Revision: "abc"}, s)
	m.Phase("baseline")
	m.Phase("rollout")
	m.Pods("created", 200)
	m.Sidecars("connected", 100)
	m.Response("EDS", 1000, true, false)
	m.Response("EDS", 500, false, true)
	m.Attempt()
	m.Refusal()
	m.Reconnect()
	m.Certificate(true)
	m.Certificate(false)
	m.Push("route", 10*time.Millisecond)
	m.PropagatedFirst("route", 10*time.Millisecond)
	m.PropagatedLast("route", 10*time.Millisecond)
	m.Run(RunInfo{ControlPlane: "istiod", Pods: 200, Services: 20, Namespaces: 1, MTLS: "strict", Scope: "declared", Authz: "declared", XDS: "delta", GOMAXPROCS: 2,
		Limits: Limits{StreamsPerSecond: 25, DebounceSeconds: 10}})
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

func TestResponsesAreCounted(t *testing.T) {
	m := filled(t)
	m.Response("LDS", 1, false, false)
	for name, c := range map[string]struct {
		of       *prometheus.CounterVec
		eds, lds float64
	}{"wasted": {m.wasted, 1, 0}, "acknowledged": {m.acks, 1, 1}, "rejected": {m.nacks, 1, 0}} {
		if eds, lds := testutil.ToFloat64(c.of.WithLabelValues("EDS")), testutil.ToFloat64(c.of.WithLabelValues("LDS")); eds != c.eds || lds != c.lds {
			t.Errorf("%s are %g of EDS and %g of LDS, want %g and %g", name, eds, lds, c.eds, c.lds)
		}
	}
}

func TestMetricsValues(t *testing.T) {
	want := `
# HELP scaler_certificate_requests_total Certificate signing requests answered or failed.
# TYPE scaler_certificate_requests_total counter
scaler_certificate_requests_total{outcome="failed"} 1
scaler_certificate_requests_total{outcome="issued"} 1
# HELP scaler_limit_debounce_seconds After a first change the control plane is known to push at the latest.
# TYPE scaler_limit_debounce_seconds gauge
scaler_limit_debounce_seconds 10
# HELP scaler_limit_streams_per_second New streams that the control plane is known to admit.
# TYPE scaler_limit_streams_per_second gauge
scaler_limit_streams_per_second 25
# HELP scaler_phase_info The phase that the run is in; none between phases.
# TYPE scaler_phase_info gauge
scaler_phase_info{phase="rollout"} 1
# HELP scaler_pods Pods of the run that have reached a state.
# TYPE scaler_pods gauge
scaler_pods{state="created"} 200
scaler_pods{state="ready"} 0
# HELP scaler_run_info What is rolled out, and against which control plane.
# TYPE scaler_run_info gauge
scaler_run_info{authz="declared",control_plane="istiod",gomaxprocs="2",mtls="strict",namespaces="1",pods="200",scope="declared",services="20",xds="delta"} 1
# HELP scaler_xds_response_bytes_total Bytes of discovery responses received.
# TYPE scaler_xds_response_bytes_total counter
scaler_xds_response_bytes_total{type="CDS"} 0
scaler_xds_response_bytes_total{type="ECDS"} 0
scaler_xds_response_bytes_total{type="EDS"} 1500
scaler_xds_response_bytes_total{type="LDS"} 0
scaler_xds_response_bytes_total{type="RDS"} 0
# HELP scaler_xds_responses_total Discovery responses received.
# TYPE scaler_xds_responses_total counter
scaler_xds_responses_total{type="CDS"} 0
scaler_xds_responses_total{type="ECDS"} 0
scaler_xds_responses_total{type="EDS"} 2
scaler_xds_responses_total{type="LDS"} 0
scaler_xds_responses_total{type="RDS"} 0
`
	err := testutil.GatherAndCompare(filled(t).registry, strings.NewReader(want), "scaler_certificate_requests_total",
		"scaler_limit_debounce_seconds", "scaler_limit_streams_per_second", "scaler_limit_token_reviews_per_second",
		"scaler_phase_info", "scaler_pods", "scaler_run_info", "scaler_xds_response_bytes_total", "scaler_xds_responses_total")
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
		if !strings.HasPrefix(family.GetName(), namespace+"_") || family.GetType().String() != "HISTOGRAM" {
			continue
		}
		// Of those with labels, the last is the one that was observed.
		h := family.GetMetric()[len(family.GetMetric())-1].GetHistogram()
		if h.GetSampleCount() != 1 || len(h.GetBucket()) == 0 || len(h.GetPositiveSpan()) == 0 {
			t.Errorf("%s: %d observations, %d buckets, %d spans", family.GetName(), h.GetSampleCount(), len(h.GetBucket()), len(h.GetPositiveSpan()))
		}
		found++
	}
	const followed = 3 // of changes: push, first, last
	if want := len(latencies) + followed; found != want {
		t.Errorf("%d histograms, want %d", found, want)
	}
}

// A program that has ended has no memory: its series would be drawn as it was.
func TestMetricsOfAProgramThatEnded(t *testing.T) {
	program := exec.Command("sleep", "60")
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	s := NewSampler(0)
	m := NewMetrics(Build{}, s)
	resident := func() float64 {
		families, err := m.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range families {
			if family.GetName() == "scaler_component_resident_memory_bytes" {
				return family.GetMetric()[0].GetGauge().GetValue()
			}
		}
		return -1
	}
	src := OfProcess(process.Find(program.Process.Pid))
	watched := s.Watch("it", src)
	before := resident()
	if err := program.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = program.Wait() // it was killed
	s.Ended("it", src)
	if after := resident(); watched != nil || before <= 0 || after != 0 {
		t.Errorf("%v: %v bytes while it ran, %v after", watched, before, after)
	}
}

func TestMetricsPhaseIsNoneBetweenPhases(t *testing.T) {
	m := NewMetrics(Build{}, nil)
	for _, step := range []struct{ begin, want string }{{"rollout", "rollout"}, {"", "none"}} {
		m.Phase(step.begin)
		want := "# HELP scaler_phase_info The phase that the run is in; none between phases.\n# TYPE scaler_phase_info gauge\nscaler_phase_info{phase=\"" + step.want + "\"} 1\n"
		if err := testutil.GatherAndCompare(m.registry, strings.NewReader(want), "scaler_phase_info"); err != nil {
			t.Error(err)
		}
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

// Every latency is a figure of the record, whose definition is its help text.
func TestLatenciesAreFigures(t *testing.T) {
	for name, path := range latencies {
		if figure, known := record.FigureAt(path + ".p50"); !known || figure.Between() == "" {
			t.Errorf("%s is %q, which is no latency of a record", name, path)
		}
	}
}
