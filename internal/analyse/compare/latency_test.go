package compare

import (
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

func TestPublishedLatencies(t *testing.T) {
	all, err := PublishedLatencies(record.LatencySpec{RPS: []float64{100, 3500, 7}, Topology: "star"})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 5 { // one p99, and four quantiles of the other source
		t.Fatalf("%d figures: want 5: %+v", len(all), all)
	}
	if first := all[0]; first.Name != "osm-edge-latency" || first.RPS != 100 || first.Quantile != "p99" || first.Seconds["none"] != 0.0044 || first.Seconds["sidecars"] != 0.0096 {
		t.Errorf("first: %+v", first)
	}
	if last := all[4]; last.Quantile != "max" || last.Seconds["istio"] != 0.29714 {
		t.Errorf("last: %+v", last)
	}
	for name, spec := range map[string]record.LatencySpec{
		"no rate":        {Connections: []int{100}, Topology: "pair"},
		"a chain":        {RPS: []float64{100}, Topology: "chain", WaitSeconds: []float64{0.1}},
		"killed servers": {RPS: []float64{100}, Topology: "pair", KillEverySeconds: 10},
	} {
		if none, err := PublishedLatencies(spec); err != nil || len(none) != 0 {
			t.Errorf("of %s: %v, %v", name, none, err)
		}
	}
}
