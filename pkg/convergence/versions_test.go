package convergence

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// markedVersions reads markers such as v1.7, version 7 of object 1.
func markedVersions(c *Content) []Version {
	var all []Version
	for _, m := range c.Markers {
		object, number, _ := strings.Cut(strings.TrimPrefix(m, "v"), ".")
		o, _ := strconv.Atoi(object)
		n, _ := strconv.Atoi(number)
		all = append(all, Version{o, n})
	}
	return all
}

// A sidecar has a version once it has that version or a later one, of that object.
func TestFollowVersions(t *testing.T) {
	f := newFollowed()
	for _, id := range []string{"a", "b"} {
		f.FirstRequest(id, f.after(2))
	}
	v := f.FollowVersions(markedVersions)
	holds := func(markers ...string) *Content {
		return &Content{Endpoints: Endpoints{addrA: Healthy}, Markers: markers}
	}
	both := []string{"a", "b", "outside", "unknown"} // two are complete
	f.receive("a", 10, holds("v1.0", "v2.0"))
	f.receive("b", 10, holds("v1.0", "v2.0"))
	v.Expect(Version{1, 1}, both)
	v.Expect(Version{1, 2}, both)
	v.Expect(Version{2, 1}, both)
	f.receive("a", 20, holds("v1.1", "v2.0"))
	f.receive("a", 30, holds("v1.2", "v2.0"))
	f.receive("a", 40, holds("v1.2", "v2.0")) // once more
	f.receive("b", 50, holds("v1.2", "v2.1")) // without 1.1
	v.Expect(Version{1, 3}, both)
	v.Withdraw(1)
	v.End()
	select {
	case <-v.Done():
		t.Fatal("done, though a sidecar lacks a version")
	default:
	}
	f.receive("a", 60, holds("v1.1", "v2.0")) // an older one takes nothing away
	f.Remove("a")
	select {
	case <-v.Done():
	default:
		t.Fatal("a sidecar that is gone is waited for")
	}
	all := v.Stop()
	f.receive("b", 70, holds("v1.9"))
	for _, want := range []struct {
		Version
		reached    []time.Time
		superseded int
	}{
		{Version{1, 1}, []time.Time{f.after(20), f.after(50)}, 1},
		{Version{1, 2}, []time.Time{f.after(30), f.after(50)}, 0},
		{Version{2, 1}, []time.Time{f.after(50)}, 0},
	} {
		at := slices.IndexFunc(all[want.Object], func(a VersionArrivals) bool { return a.Version == want.Version })
		if at < 0 {
			t.Errorf("nothing is known of %v", want.Version)
			continue
		}
		got := all[want.Object][at]
		if !slices.EqualFunc(got.Reached, want.reached, time.Time.Equal) || got.Superseded != want.superseded || got.Pending != 0 {
			t.Errorf("%v: %+v", want.Version, got)
		}
	}
	if len(all[1]) != 2 {
		t.Errorf("%d versions of the first object, want 2: one was withdrawn", len(all[1]))
	}
}

// What never came is pending in the end, and a sidecar that was not complete when a
// version was written is not asked for it.
func TestFollowVersionsLost(t *testing.T) {
	f := newFollowed()
	f.FirstRequest("a", f.after(2))
	v := f.FollowVersions(markedVersions)
	v.Expect(Version{0, 1}, []string{"a", "b"})
	v.Expect(Version{0, 2}, []string{"a", "b"})
	f.receive("a", 10, &Content{Endpoints: Endpoints{addrA: Healthy}, Markers: []string{"v0.1"}})
	f.receive("b", 10, &Content{Endpoints: Endpoints{addrA: Healthy}, Markers: []string{"v0.1"}})
	v.End()
	all := v.Stop()[0]
	if len(all) != 2 || len(all[0].Reached) != 1 || all[0].Pending != 0 || len(all[1].Reached) != 0 || all[1].Pending != 1 {
		t.Errorf("%+v", all)
	}
}
