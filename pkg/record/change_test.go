package record

import "testing"

// A 99th percentile of changes at a rate takes 100 changes; how late they were, and their
// writes, have one observation for each change and are no less known for that.
func TestWithholdOfChange(t *testing.T) {
	for changes, withheld := range map[int]bool{99: true, 100: false} {
		latency := func() *Latency { return &Latency{Unit: "s", Count: 1000, P50: new(0.1), P99: new(0.9), P999: new(1.0)} }
		r := &Run{Change: &Change{Changes: &changes, Push: latency(), FromDue: latency(), First: latency(), Last: latency(), Late: latency(), Write: latency()}}
		r.Change.Withhold()
		found := map[string]Value{}
		for _, v := range r.Values() {
			found[v.Path] = v
		}
		for _, path := range []string{"change.push.p99", "change.push.p999", "change.fromDue.p99", "change.first.p99", "change.last.p99"} {
			if v := found[path]; v.Path == "" || v.Withheld != withheld || (v.Value == nil) != withheld {
				t.Errorf("%d changes: %s is %+v", changes, path, v)
			}
		}
		for _, path := range []string{"change.push.p50", "change.late.p99", "change.write.p99"} {
			if v := found[path]; v.Value == nil || v.Withheld {
				t.Errorf("%d changes: %s is %+v", changes, path, v)
			}
		}
	}
	none := &Run{Change: &Change{Kind: "metadata", Changes: new(5)}}
	none.Change.Withhold()
	for _, v := range none.Values() {
		if Within(v.Path, "change.push") {
			t.Errorf("of metadata: %s", v.Path)
		}
	}
}
