package record

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnknownLatency(t *testing.T) {
	for _, test := range []struct {
		count, clamped int64
		want           bool
	}{
		{40, 20, true}, {40, 2, true}, {40, 1, false}, {40, 0, false}, {4000, 40, false}, {4000, 41, true}, {10, 1, false}, {9, 1, true}, {2, 1, true}, {1, 1, true}, {0, 0, false},
	} {
		l := Latency{Unit: "s", Count: test.count, Lost: 3, Clamped: test.clamped, Min: new(0.0), Mean: new(0.1), P50: new(0.0), P90: new(0.2), P99: new(0.3), P999: new(0.3), Max: new(0.4)}
		if got := l.Unknown(); got != test.want {
			t.Errorf("%d of %d clamped: unknown %v, want %v", test.clamped, test.count, got, test.want)
		}
		want := l
		if test.want {
			want = Latency{Unit: "s", Count: test.count, Lost: 3, Clamped: test.clamped}
		}
		if diff := cmp.Diff(want, l.Known()); diff != "" {
			t.Errorf("%d of %d clamped (-want +got):\n%s", test.clamped, test.count, diff)
		}
	}
	if (*Latency)(nil).Unknown() {
		t.Error("a latency that was not measured is unknown")
	}
}

// Of a latency that is not known there are no figures but counts, and its quantiles are not
// lost.
func TestUnknownLatencies(t *testing.T) {
	var run Run
	of := Latency{Unit: "s", Count: 40, Lost: 1, Clamped: 20}
	run.Latencies.Push = map[ChangeKind]*Latency{EndpointAdd: {Count: 40, P50: new(0.1)}, EndpointRemove: &of, RouteChange: &of}
	run.Latencies.PushFromWrite = map[ChangeKind]*Latency{EndpointRemove: {Count: 40, P50: new(0.1)}}
	run.Change = &Change{First: &of}
	run.Upgrade = &Upgrade{Stages: map[string]*UpgradeStage{"wave-1": {From: &UpgradeSide{Push: map[ChangeKind]*Latency{EndpointRemove: &of}}}}}
	for _, v := range run.Values() {
		if Within(v.Path, "latencies.push.endpointRemove") && !slices.Contains([]string{"latencies.push.endpointRemove.count", "latencies.push.endpointRemove.lost"}, v.Path) {
			t.Errorf("%s is a figure: %+v", v.Path, v)
		}
	}
	got := map[string]string{}
	for _, w := range run.UnknownLatencies() {
		got[w.About] = w.Sentence()
	}
	const text = "not known: in 20 of 40 observations its start was seen after its end"
	want := map[string]string{
		"latencies.push.endpointRemove":                  text + "; latencies.pushFromWrite.endpointRemove has the one from the write, an upper bound",
		"latencies.push.route":                           text,
		"change.first":                                   text,
		"upgrade.stages.wave-1.from.push.endpointRemove": text,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// A latency is not known either when more than a few of its observations cannot be.
func TestUnmetLatency(t *testing.T) {
	for _, c := range []struct {
		count, unmet int64
		want         bool
	}{{40, 0, false}, {4, 6, true}, {0, 3, true}, {9, 1, false}, {8, 1, true}, {98, 2, true}, {199, 2, false}, {990, 10, false}} {
		l := Latency{Unit: "s", Count: c.count, Unmet: c.unmet, P50: new(0.1)}
		if got := l.Unknown(); got != c.want {
			t.Errorf("%d and %d unmet: unknown %v, want %v", c.count, c.unmet, got, c.want)
		}
		if k := l.Known(); c.want && (k.P50 != nil || k.Unmet != c.unmet || k.Count != c.count) {
			t.Errorf("%d and %d unmet: %+v", c.count, c.unmet, k)
		}
	}
	run := Run{Latencies: Latencies{CompleteConfiguration: &Latency{Unit: "s", Count: 4, Unmet: 6}}}
	want := []Warning{{About: "latencies.completeConfiguration", Reason: ReasonUnmet, Values: map[string]float64{"unmet": 6, "all": 10}}}
	if diff := cmp.Diff(want, run.UnknownLatencies()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}
