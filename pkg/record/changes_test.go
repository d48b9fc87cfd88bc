package record

import "testing"

// changed returns a run with so many changes of routes.
func changed(changes, lost int64) *Run {
	latency := func(count int64) *Latency {
		return &Latency{Unit: "s", Count: count, Lost: lost, P50: new(0.1), P99: new(0.9), P999: new(1.0), Max: new(1.1)}
	}
	return &Run{Latencies: Latencies{
		Push:        map[ChangeKind]*Latency{RouteChange: latency(changes * 200)},
		Propagation: map[ChangeKind]Propagation{RouteChange: {First: latency(changes - lost), Last: latency(changes - lost)}},
	}}
}

// A 99th percentile takes changes, not sidecars that saw them.
func TestWithhold(t *testing.T) {
	for _, tt := range []struct {
		changes, lost int64
		withheld      bool
	}{{20, 0, true}, {99, 3, true}, {100, 3, false}, {500, 0, false}} {
		r := changed(tt.changes, tt.lost)
		r.Latencies.Withhold()
		for _, path := range []string{"latencies.push.route.p99", "latencies.push.route.p999", "latencies.propagation.route.last.p99"} {
			var found *Value
			for _, v := range r.Values() {
				if v.Path == path {
					found = &v
				}
			}
			if found == nil || found.Withheld != tt.withheld || (found.Value == nil) != tt.withheld || found.Lost {
				t.Errorf("%d changes: %s is %+v", tt.changes, path, found)
			}
		}
		if r.Value("latencies.push.route.p50") == nil {
			t.Errorf("%d changes: the median is withheld", tt.changes)
		}
	}
	// Of a run that does not state how many changes there were, nothing is taken away.
	r := changed(20, 0)
	r.Latencies.Propagation = nil
	if r.Latencies.Withhold(); r.Value("latencies.push.route.p99") == nil {
		t.Error("withheld without knowing the changes")
	}
}
