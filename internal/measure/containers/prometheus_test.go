package containers

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/measure/clusterprometheus"
	"scaler.mesh/scaler/internal/place/attach"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
)

const (
	cores  = 0.1
	memory = 200e6
)

// scripted is read once a second by its own clock, and used so many cores since start.
type scripted struct {
	measure.Source
	start time.Time
	reads *int
}

func (s scripted) ID() string                  { return "scripted" }
func (s scripted) Started() (time.Time, error) { return s.start, nil }
func (s scripted) Read() (measure.Reading, error) {
	*s.reads++
	after := time.Duration(*s.reads) * time.Second
	return measure.Reading{At: s.start.Add(after), CPU: time.Duration(cores * float64(after)), Resident: memory, Peak: memory}, nil
}

// serve answers as a Prometheus that scraped a program every 10 s, whose counters are factor times those of scripted.
// Of the pods of later it has samples from second 65 on.
func serve(start time.Time, factor float64, later ...string) http.HandlerFunc {
	return serveBy(start, factor, 0, nil, later...)
}

// serveBy is serve with a clock that is ahead, and without the samples of some seconds.
func serveBy(start time.Time, factor float64, ahead time.Duration, without func(second int) bool, later ...string) http.HandlerFunc {
	value := map[string]func(after float64) float64{
		"process_cpu_seconds_total":          func(after float64) float64 { return cores * after * factor },
		"process_resident_memory_bytes":      func(float64) float64 { return memory * factor },
		"container_cpu_usage_seconds_total":  func(after float64) float64 { return cores * after },
		"container_memory_rss":               func(float64) float64 { return memory / 2 },
		"container_memory_working_set_bytes": func(float64) float64 { return memory * 2 },
		"scrape_duration_seconds":            func(float64) float64 { return 0.01 },
	}
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query().Get("query")
		kind, result := "matrix", any([]any{})
		metric, _, _ := strings.Cut(query, "{")
		switch {
		case strings.HasPrefix(query, "count"):
			kind, result = "vector", []any{map[string]any{"metric": map[string]string{}, "value": []any{1, "2"}}}
		case query == "time()":
			kind, result = "scalar", []any{1, fmt.Sprint(float64(time.Now().Add(ahead).UnixMilli()) / 1000)}
		case value[metric] != nil:
			var all []any
			for i, pod := range append([]string{"istiod-0"}, later...) {
				var samples [][]any
				for after := 5 + 60*min(i, 1); after <= 145; after += 10 {
					if without != nil && without(after) {
						continue
					}
					samples = append(samples, []any{float64(start.Add(ahead+time.Duration(after)*time.Second).UnixMilli()) / 1000, fmt.Sprint(value[metric](float64(after)))})
				}
				labels := map[string]string{"namespace": "istio-system", "pod": pod, "container": "discovery", "job": "j", "instance": "i"}
				all = append(all, map[string]any{"metric": labels, "values": samples})
			}
			result = all
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": kind, "result": result}}) // to a test
	}
}

func ask(t *testing.T, factor float64, later ...string) (*record.ClusterPrometheus, []record.Warning) {
	t.Helper()
	start := time.Now().Add(-150 * time.Second).Truncate(time.Second)
	return askOf(t, start, serve(start, factor, later...))
}

func askOf(t *testing.T, start time.Time, answers http.HandlerFunc) (*record.ClusterPrometheus, []record.Warning) {
	t.Helper()
	reads := 0
	server := httptest.NewServer(answers)
	defer server.Close()
	sampler := measure.NewSampler(0)
	if err := sampler.Watch("istiod", scripted{start: start, reads: &reads}); err != nil {
		t.Fatal(err)
	}
	for range 145 {
		if _, err := sampler.Edge(); err != nil {
			t.Fatal(err)
		}
	}
	found := &attach.Found{Installation: controlplane.Installation{Namespace: "istio-system", Pods: []string{"istiod-0"}, Container: "discovery"}}
	found.Prometheus = clusterprometheus.Look(t.Context(), clusterprometheus.Options{
		Address: clusterprometheus.Address{URL: server.URL}, Program: clusterprometheus.Program{Namespace: "istio-system", Pods: []string{"istiod-0"}, Container: "discovery"},
	})
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	var warnings []record.Warning
	return AskPrometheus(t.Context(), found, controlplane.Driver{Name: "istiod"}, Options{
		Windows: []phases.Window{
			{Name: record.PhaseBaseline, Begin: at(10), End: at(40)}, {Name: record.PhaseRollout, Begin: at(40), End: at(44)},
			{Name: record.PhaseSettle, Begin: at(44), End: at(50)}, {Name: record.PhaseSteady, Begin: at(50), End: at(130)},
		},
		Sampler: sampler, Warn: func(w record.Warning) { warnings = append(warnings, record.NewWarning(w)) }, Say: func(string) {},
	}), warnings
}

// A record has what the Prometheus has, of each phase that has samples enough, and how that compares with what scaler read.
func TestAskPrometheus(t *testing.T) {
	document, warnings := ask(t, 1)
	own, cadvisor := document.OwnMetrics, document.Cadvisor
	if own.IntervalSeconds != 10 || own.LongestGapSeconds != 10 || own.OlderSeconds > 5 || cadvisor.OlderSeconds < 20 {
		t.Errorf("%+v, %+v", own, cadvisor)
	}
	for _, usage := range []*record.PrometheusUsage{own.ControlPlane.Steady, own.Each["istiod-0"].Usage.Steady, cadvisor.ControlPlane.Steady} {
		if got := fmt.Sprintf("%.4g %.4g %d", *usage.CPUSeconds, *usage.Cores.Mean, usage.Samples); got != "8 0.1 8" {
			t.Errorf("steady: %s", got)
		}
		if *usage.CPUSecondsLow > 8 || *usage.CPUSecondsLow < 4 {
			t.Errorf("steady: at least %g", *usage.CPUSecondsLow)
		}
	}
	if high := own.ControlPlane.Steady.CPUSecondsHigh; high == nil || *high < 8 || *high > 12 {
		t.Errorf("steady: at most %v", high)
	}
	if high := cadvisor.ControlPlane.Steady.CPUSecondsHigh; high != nil {
		t.Errorf("the last sample may be of before the end, and processor time is %g at most", *high)
	}
	if *own.ControlPlane.Steady.MemoryBytes.Mean != memory || *cadvisor.ControlPlane.Steady.WorkingSetBytes.Peak != memory*2 || own.ControlPlane.Steady.WorkingSetBytes != nil {
		t.Errorf("memory %+v", own.ControlPlane.Steady.MemoryBytes)
	}
	if short := own.ControlPlane.Rollout; short.CPUSeconds != nil || short.Cores != nil || short.MemoryBytes != nil || *short.CPUSecondsHigh < 0.4 {
		t.Errorf("a phase that is shorter than the interval: %+v", short)
	}
	c := own.Each["istiod-0"].Compared
	if got := fmt.Sprintf("%.4g %.4g", c.Seconds, c.CPUSeconds); got != "110 11" || c.OwnCPUSecondsLow > 11 || c.OwnCPUSecondsHigh < 11 || *c.MemoryBytes != memory || math.Abs(*c.OwnMemoryBytesLow-memory) > 1 {
		t.Errorf("compared %s, %+v", got, c)
	}
	if cadvisor.Each["istiod-0"].Compared == nil || cadvisor.Each["istiod-0"].Compared.MemoryBytes != nil {
		t.Errorf("compared %+v", cadvisor.Each["istiod-0"].Compared)
	}
	for _, w := range warnings {
		if w.Reason != record.ReasonUsageUnknown || w.Phase != record.PhaseRollout || !strings.HasPrefix(w.Component, "istiod-0 by ") {
			t.Errorf("%+v", w)
		}
	}
	if len(warnings) != 2 {
		t.Errorf("%d warnings, want one for each source", len(warnings))
	}
}

// A Prometheus that is slow is asked for a minute, after what samples are waited for.
func TestLimits(t *testing.T) {
	end := time.Now()
	o := Options{Windows: []phases.Window{{End: end.Add(-time.Hour)}, {End: end}}}
	for _, test := range []struct {
		await           bool
		now, wait, asks time.Duration // since the end of the last phase
	}{
		{true, time.Second, lastSamples, lastSamples + askLimit},
		{true, time.Hour, time.Hour, time.Hour + askLimit},
		{false, time.Second, time.Second, time.Second + askLimit},
	} {
		o.Await = test.await
		wait, asks := limits(end.Add(test.now), o)
		if wait.Sub(end) != test.wait || asks.Sub(end) != test.asks {
			t.Errorf("%+v: waits until %s, asks until %s", test, wait.Sub(end), asks.Sub(end))
		}
	}
}

// Samples that are missing over an edge of a phase, and another clock, are warnings; figures are of the right moments.
func TestAskPrometheusDoubts(t *testing.T) {
	start := time.Now().Add(-150 * time.Second).Truncate(time.Second)
	const ahead = 30 * time.Second
	document, warnings := askOf(t, start, serveBy(start, 1, ahead, func(second int) bool { return second >= 35 && second <= 65 }))
	if used := document.OwnMetrics.ControlPlane.Steady.CPUSeconds; used == nil || *used < 7.5 || *used > 8.5 {
		t.Errorf("steady: %v", used)
	}
	seen := map[string]int{}
	for _, w := range warnings {
		switch w.Reason {
		case record.ReasonScrapeGap:
			if w.Values["missed"] != 4 {
				t.Errorf("%+v", w)
			}
		case record.ReasonClocksDiffer:
			if got := w.Values["aheadSeconds"]; got < 29 || got > 31 {
				t.Errorf("%+v", w)
			}
		case record.ReasonUsageUnknown:
		default:
			t.Errorf("%+v", w)
		}
		seen[string(w.Reason)+" "+w.About]++
	}
	for _, kind := range []string{"ownMetrics", "cadvisor"} {
		if seen["clocksDiffer clusterPrometheus."+kind] != 1 || seen["scrapeGap clusterPrometheus."+kind+".steady"] != 1 || seen["scrapeGap clusterPrometheus."+kind+".baseline"] != 1 {
			t.Errorf("%s: %v", kind, seen)
		}
	}
}

// Less memory than scaler read is no difference: what scaler read has no lower limit. More is one.
func TestAskPrometheusMemory(t *testing.T) {
	for factor, want := range map[float64]int{0.8: 0, 1.2: 1} {
		_, warnings := ask(t, factor)
		got := 0
		for _, w := range warnings {
			if w.Reason == record.ReasonSourcesDiffer && w.Detail == "resident memory in bytes" {
				got++
			}
		}
		if got != want {
			t.Errorf("with %g times the memory: %d warnings, want %d", factor, got, want)
		}
	}
}

// A pod that comes in addition to the only one is not compared with what scaler read of that one.
func TestAskPrometheusOfLaterPod(t *testing.T) {
	document, warnings := ask(t, 1, "istiod-1")
	if c := document.OwnMetrics.Each["istiod-0"].Compared; c == nil {
		t.Error("the first pod is not compared")
	}
	later := document.OwnMetrics.Each["istiod-1"]
	if later == nil || later.Usage.Steady == nil || later.Compared != nil {
		t.Errorf("the later pod: %+v", later)
	}
	for _, w := range warnings {
		if w.Reason == record.ReasonSourcesDiffer {
			t.Errorf("%+v", w)
		}
	}
}

// A source that differs is doubted by a warning, one that cannot be asked is missing with another.
func TestAskPrometheusWarns(t *testing.T) {
	_, warnings := ask(t, 2)
	differ := slices.DeleteFunc(warnings, func(w record.Warning) bool { return w.Reason != record.ReasonSourcesDiffer })
	if len(differ) != 2 || !strings.Contains(differ[0].Text, "processor time in seconds of istiod-0 by ownMetrics of the cluster's Prometheus is 22, and scaler read ") || !strings.Contains(differ[1].Text, "resident memory in bytes") {
		t.Errorf("%+v", differ)
	}
	var warned []record.Warning
	found := &attach.Found{Prometheus: &clusterprometheus.Source{Address: clusterprometheus.Address{Detect: true}, Detected: true, Err: fmt.Errorf("no Service")}}
	if document := AskPrometheus(t.Context(), found, controlplane.Driver{}, Options{Warn: func(w record.Warning) { warned = append(warned, w) }}); document != nil {
		t.Errorf("%+v", document)
	}
	if len(warned) != 1 || warned[0].Reason != record.ReasonNotMeasured || warned[0].Detail != "detect: no Service" {
		t.Errorf("%+v", warned)
	}
	if access := Prometheus(found); *access != (record.PrometheusAccess{Address: "detect", Detected: true, Error: "no Service"}) {
		t.Errorf("%+v", access)
	}
	if document := AskPrometheus(t.Context(), &attach.Found{}, controlplane.Driver{}, Options{}); document != nil || Prometheus(&attach.Found{}) != nil {
		t.Error("figures of none that was to be asked")
	}
}
