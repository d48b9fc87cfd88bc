package compare

import "testing"

func TestPublishedLatencies(t *testing.T) {
	all, err := PublishedLatencies([]float64{100, 3500, 7})
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
	if none, err := PublishedLatencies(nil); err != nil || len(none) != 0 {
		t.Errorf("of no rate: %v, %v", none, err)
	}
}
