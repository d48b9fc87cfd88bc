package run

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// What scaler received late is a warning about latencies, if it matters.
func TestLateReceiptIsAWarning(t *testing.T) {
	const late = "scaler itself received late: 3 of 120 responses waited until it had room for them, up to 250.0 ms and 0.26 s in all, and may have come that much earlier"
	for name, c := range map[string]struct {
		longest time.Duration
		want    []record.Warning
	}{
		"none waited":      {0, nil},
		"for next to none": {10 * time.Millisecond, nil},
		"for long": {250 * time.Millisecond, []record.Warning{{
			About: "latencies", Reason: record.ReasonLateReceipt, Text: late,
			Values: map[string]float64{"waited": 3, "responses": 120, "longestSeconds": 0.25, "totalSeconds": 0.26},
		}}},
	} {
		counts := xdsprobe.Counts{ByType: []xdsprobe.TypeCounts{{Type: convergence.CDS, Responses: 100}, {Responses: 20}}}
		if c.longest > 0 {
			counts.Waits, counts.LongestWait, counts.Waited = 3, c.longest, c.longest+10*time.Millisecond
		}
		got := symptoms{
			lags: newLags(), counts: counts, xds: worker.XDSCounts(counts),
			starts: fleet.NewLatencies(), latencies: &record.Latencies{},
		}.warnings()
		for i := range got {
			got[i] = record.NewWarning(got[i])
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Warnings come in the same order in every run.
func TestOrderOfWarnings(t *testing.T) {
	lags := newLags()
	lags.rollout.Record(time.Second)
	lags.probe.Record(time.Second)
	for range 20 {
		s := symptoms{
			lags: lags, xds: worker.XDSCounts(xdsprobe.Counts{}),
			starts: fleet.NewLatencies(), latencies: &record.Latencies{},
		}
		var about []string
		for _, w := range s.warnings() {
			about = append(about, w.About)
		}
		if diff := cmp.Diff([]string{"latencies", "latencies.push"}, about); diff != "" {
			t.Fatalf("warnings about (-want +got):\n%s", diff)
		}
	}
}

// Refusals delay the starts of sidecars. Proxies of nodes start before anything is measured.
func TestRefusedConnections(t *testing.T) {
	for _, starting := range []bool{true, false} {
		starts := fleet.NewLatencies()
		starts.Starts.Sidecars = starting
		got := symptoms{
			lags: newLags(), xds: worker.XDSCounts(xdsprobe.Counts{Attempts: 9, Refusals: 4}),
			starts: starts, latencies: &record.Latencies{},
		}.warnings()
		if refused := len(got) == 1 && got[0].Reason == record.ReasonRefused; refused != starting {
			t.Errorf("with starts %v: %+v", starting, got)
		}
	}
}

// Where time is slowed down and the wait for the limiter is not, refusals are marked.
func TestEarlyRefusals(t *testing.T) {
	for _, test := range []struct {
		slowdown, limiter float64
		refused           int64
		want              map[string]float64
	}{
		{4, 1, 9, map[string]float64{"refused": 9, "attempts": 20, "factor": 4, "waitSeconds": 0.25, "stockSeconds": 1}},
		{4, 1, 0, nil}, {4, 0, 9, nil}, {1, 1, 9, nil}, {0, 1, 9, nil},
	} {
		starts := fleet.NewLatencies()
		starts.Starts.Sidecars = true
		var got map[string]float64
		for _, w := range (symptoms{
			lags: newLags(), xds: worker.XDSCounts(xdsprobe.Counts{Attempts: 20, Refusals: test.refused}),
			slowdown: test.slowdown, limiter: test.limiter, starts: starts, latencies: &record.Latencies{},
		}).warnings() {
			if w.Reason == record.ReasonEarlyRefusals {
				got = w.Values
			}
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("K = %g, %g s, %d refused (-want +got):\n%s", test.slowdown, test.limiter, test.refused, diff)
		}
	}
}

func TestWaitingCluster(t *testing.T) {
	waited := func(share float64) record.ByPhase[*record.Usage] {
		return record.ByPhase[*record.Usage]{Rollout: &record.Usage{Saturation: &share}}
	}
	for name, test := range map[string]struct {
		control, etcd, apiserver float64
		want                     string
		share                    float64
	}{
		"none":                  {0.01, 0.02, 0.1, "", record.Saturated},
		"the control plane too": {0.2, 0.3, 0.99, "", 0},
		"the cluster alone":     {0.1, 0.3, 0.99, "kube-apiserver", 0.99},
	} {
		t.Run(name, func(t *testing.T) {
			control := waited(test.control)
			run := &record.Run{ControlPlane: &control, Cluster: map[string]record.ByPhase[*record.Usage]{
				"etcd": waited(test.etcd), "kube-apiserver": waited(test.apiserver), "kwok": {},
			}}
			if got, share := waitingCluster(run, record.PhaseRollout); got != test.want || share != test.share {
				t.Errorf("%q for %v, want %q for %v", got, share, test.want, test.share)
			}
		})
	}
}

// Cores that were measured on this machine are compared with the processors of the one that
// is modelled: 1.95 cores here are 7.8 of 8 where time is slowed down by 4.
func TestLimitOfModelledProcessors(t *testing.T) {
	for _, test := range []struct {
		k, peak float64
		procs   int
		want    float64 // cores that the warning states; 0 = no warning
	}{
		{1, 1.95, 2, 1.95}, {1, 1.8, 2, 0},
		{4, 1.95, 8, 7.8}, {4, 1.8, 8, 0},
		{4, 0.5, 2, 2}, // fewer processors than the machine could model
	} {
		source := record.ControlPlaneSource{Name: "istiod", GOMAXPROCS: test.procs}
		used := measure.Usage{CoresPeak: test.peak, Saturation: new(0.01)}
		var got float64
		if w := limitWarning(source, test.k, record.PhaseRollout, used); w != nil {
			got = w.Values["peakCores"]
		}
		if got != test.want {
			t.Errorf("K = %g, %g cores here, %d processors there: a warning with %g cores, want %g", test.k, test.peak, test.procs, got, test.want)
		}
		if w := limitWarning(source, 1, record.PhaseSteady, used); test.k > 1 && w != nil {
			t.Errorf("K = %g: %g cores in a phase that is not slowed down are the limit of %d processors", test.k, test.peak, test.procs)
		}
		used.Saturation = new(0.5)
		if w := limitWarning(source, test.k, record.PhaseRollout, used); w != nil {
			t.Errorf("K = %g: a second warning next to that of saturation", test.k)
		}
	}
}
