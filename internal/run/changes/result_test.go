package changes

import (
	"math"
	"slices"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// What addresses and markers say of a version is read back from a content.
func TestVersions(t *testing.T) {
	content := &convergence.Content{
		Endpoints: convergence.Endpoints{address(3, 100_000): convergence.Healthy},
		Markers:   []string{marker(0, 7), marker(12, 345), "scaler-marker-1x2-", "scaler-marker-c1-"},
	}
	got := versions(content)
	slices.SortFunc(got, func(a, b convergence.Version) int { return a.Object - b.Object })
	want := []convergence.Version{{Object: 0, Number: 7}, {Object: 3, Number: 100_000}, {Object: 12, Number: 345}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !benchmarks.Contains(address(0, maxChanges).Addr()) {
		t.Error("the addresses of a phase leave their range")
	}
}

// A sidecar that received a change later than the limit has lost it; latencies count from
// the return of the write, and from the moment at which the change was due.
func TestResult(t *testing.T) {
	begin := time.Unix(1000, 0)
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * time.Millisecond) }
	p := &phase{
		Options: Options{Load: scenario.Changes{PerSecond: 1, Kind: scenario.RouteChange}, Length: 3 * time.Second},
		missed:  []int{1, 0},
		samples: [][]sample{{{at(0), at(5), at(10)}, {at(1000), at(1000), at(1010)}}, {{at(500), at(500), at(600)}}},
	}
	r := p.result(map[int][]convergence.VersionArrivals{
		0: {
			{Reached: []time.Time{at(210), at(110)}, Superseded: 1},
			{Reached: []time.Time{at(1010 + 31_000)}, Pending: 1},
		},
		1: {{}}, // concerns nobody
	}, begin)
	if r.written != 3 || r.missed != 1 || r.concerned != 2 || r.lost != 2 || r.superseded != 1 || !r.latest.Equal(at(32_010)) {
		t.Errorf("%+v", r)
	}
	push, due := r.push.Summary(), r.fromDue.Summary()
	if push.Count != 2 || push.Lost != 2 || math.Abs(*push.Min-0.1) > 1e-3 || math.Abs(*due.Min-0.11) > 1e-3 {
		t.Errorf("push %+v, from due %+v", push, due)
	}
	if first, last := r.first.Summary(), r.last.Summary(); first.Count != 1 || first.Lost != 1 || last.Count != 1 || math.Abs(*last.Max-0.2) > 1e-3 {
		t.Errorf("first %+v, last %+v", first, last)
	}
	if late := r.late.Summary(); late.Count != 3 || math.Abs(*late.Max-0.005) > 1e-4 {
		t.Errorf("late %+v", late)
	}
	if len(r.blocks) != 2 || r.blocks[0].Lost != 0 || r.blocks[1].Lost != 2 {
		t.Errorf("blocks %+v, want those of two seconds", r.blocks)
	}
}

// A rate that was not written, loss, and changes that concern nobody are warnings; that
// metadata concerns nobody is none.
func TestWarnings(t *testing.T) {
	for name, c := range map[string]struct {
		kind     scenario.ChangeKind
		achieved float64
		r        result
		want     []record.Reason
	}{
		"all is well":              {scenario.RouteChange, 9.6, result{written: 10, concerned: 10}, nil},
		"slow":                     {scenario.RouteChange, 9.4, result{written: 10, concerned: 10}, []record.Reason{record.ReasonSlowChange}},
		"lost":                     {scenario.RouteChange, 10, result{written: 10, concerned: 10, lost: 3}, []record.Reason{record.ReasonLost}},
		"unconcerned":              {scenario.RouteChange, 10, result{written: 10, concerned: 9}, []record.Reason{record.ReasonUnconcerned}},
		"metadata only":            {scenario.MetadataChange, 10, result{written: 10}, nil},
		"metadata of a route only": {scenario.RouteMetadataChange, 10, result{written: 10}, nil},
	} {
		section := record.Change{AchievedPerSecond: &c.achieved, Push: &record.Latency{Lost: int64(c.r.lost)}}
		var got []record.Reason
		for _, w := range warnings(section, scenario.Changes{PerSecond: 10, Kind: c.kind}, &c.r) {
			got = append(got, w.Reason)
			if record.NewWarning(w).Text == "" {
				t.Errorf("%s: %s has no sentence", name, w.Reason)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
