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
