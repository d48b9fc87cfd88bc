package convergence

import (
	"slices"
	"testing"
	"time"
)

// What a sidecar would have received while nobody saw it is lost: a change that was followed to it,
// one that begins meanwhile, and changes of endpoints. Later ones reach it again.
func TestMiss(t *testing.T) {
	f := newFollowed()
	f.FirstRequest("a", f.after(0))
	f.FirstRequest("b", f.after(0))
	f.Certified("a", f.after(1))
	var delivered, missed int
	f.Delivered = func(_ Kind, n int, _ time.Duration) { delivered += n }
	f.Missed = func(_ Kind, n int) { missed += n }

	added := Endpoints{addrA: Healthy, addrB: Healthy}
	f.SetEndpoints(probed, added, f.after(10))
	during := f.Follow(Change{Service: probed, Addr: addrB, Health: Healthy}, []string{"a", "b"})
	f.Tracker.Miss("a", "unknown")
	if c := f.Counts(); c.Sidecars != 3 || c.Complete != 1 || c.Certified != 0 {
		t.Fatalf("after the loss: %+v", c)
	}
	f.receive("b", 12, &Content{Endpoints: added})
	if !isDone(during) {
		t.Error("the change is still waited for")
	}
	f.Tracker.Miss("a") // once more, before it was back
	meanwhile := f.Follow(Change{Marker: "m"}, []string{"a"})
	if !isDone(meanwhile) {
		t.Error("a change that begins meanwhile is waited for")
	}
	f.FirstRequest("a", f.after(20))
	f.receive("a", 21, &Content{Endpoints: added, Markers: []string{"m"}})
	for name, c := range map[string]struct {
		f       *Following
		reached int
	}{"during": {during, 1}, "meanwhile": {meanwhile, 0}} {
		reached, lost, strays := c.f.Stop()
		if len(reached) != c.reached || !slices.Equal(lost, []string{"a"}) || len(strays) > 0 {
			t.Errorf("%s: reached %v, lost %v, strays %v", name, reached, lost, strays)
		}
	}
	if delivered != 1 || missed != 1 {
		t.Errorf("%d changes of endpoints delivered and %d missed, want 1 and 1", delivered, missed)
	}
	if c := f.Counts(); c.Complete != 2 {
		t.Errorf("when it is back: %+v", c)
	}

	later := f.Follow(Change{Marker: "later"}, []string{"a"})
	f.receive("a", 30, &Content{Endpoints: added, Markers: []string{"later"}})
	if reached, lost, _ := later.Stop(); len(reached) != 1 || len(lost) > 0 {
		t.Errorf("later: reached %v, lost %v", reached, lost)
	}
}
