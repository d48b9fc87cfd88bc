package convergence

import (
	"slices"
	"time"
)

// Version identifies one version of one object that is changed repeatedly. Later versions
// have greater numbers. Version 0 is the object as it was created.
type Version struct {
	Object int
	Number int
}

// VersionArrivals reports when the concerned sidecars received one version.
type VersionArrivals struct {
	Version
	Reached []time.Time // when each concerned sidecar received it or a later one, in the order of arrival
	// Superseded counts the concerned sidecars that received a later version and never
	// this one, because the control plane merged the two.
	Superseded int
	Pending    int // concerned sidecars that have received neither it nor a later one
}

// VersionFollowing follows objects that change faster than changes arrive. A sidecar has
// a version when it has received that version or a later one. A removed sidecar is not
// concerned any more.
type VersionFollowing struct {
	tracker *Tracker
	read    func(*Content) []Version
	done    chan struct{}

	// guarded by the tracker's mu
	cache   map[*Content][]Version
	held    map[string]map[int]int // the latest version received, by sidecar and object
	objects map[int][]*followedVersion
	pending int  // sum over all versions
	ended   bool // no version is expected any more
}

type followedVersion struct {
	arrivals VersionArrivals
	pending  map[string]bool
}

// cachedContents limits the contents whose versions are remembered. Sidecars share
// contents, and all receive one within a short time.
const cachedContents = 512

// FollowVersions follows versions until Stop. read returns the versions in a content; it
// is called with the Tracker locked and must not call it.
func (t *Tracker) FollowVersions(read func(*Content) []Version) *VersionFollowing {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := &VersionFollowing{
		tracker: t, read: read,
		done:    make(chan struct{}),
		cache:   map[*Content][]Version{},
		held:    map[string]map[int]int{},
		objects: map[int][]*followedVersion{},
	}
	t.versions = append(t.versions, f)
	return f
}

// Expect follows a version to the concerned sidecars that are complete. It must be called
// before the version is written, and for the versions of an object in their order.
func (f *VersionFollowing) Expect(v Version, concerned []string) {
	t := f.tracker
	t.mu.Lock()
	defer t.mu.Unlock()
	one := &followedVersion{arrivals: VersionArrivals{Version: v}, pending: map[string]bool{}}
	for _, id := range concerned {
		if s := t.sidecars[id]; s != nil && s.complete {
			one.pending[id] = true
		}
	}
	f.pending += len(one.pending)
	f.objects[v.Object] = append(f.objects[v.Object], one)
}

// Withdraw removes the last expected version of an object, because it was not written.
func (f *VersionFollowing) Withdraw(object int) {
	f.tracker.mu.Lock()
	defer f.tracker.mu.Unlock()
	all := f.objects[object]
	if len(all) == 0 {
		return
	}
	f.pending -= len(all[len(all)-1].pending)
	f.objects[object] = all[:len(all)-1]
	f.finish()
}

// End declares that no further version is expected.
func (f *VersionFollowing) End() {
	f.tracker.mu.Lock()
	defer f.tracker.mu.Unlock()
	f.ended = true
	f.finish()
}

// Done is closed when every concerned sidecar has all versions, after End.
func (f *VersionFollowing) Done() <-chan struct{} { return f.done }

// Stop ends the following and returns the arrivals of each version, by object in the
// order of their numbers.
func (f *VersionFollowing) Stop() map[int][]VersionArrivals {
	t := f.tracker
	t.mu.Lock()
	defer t.mu.Unlock()
	t.versions = slices.DeleteFunc(t.versions, func(o *VersionFollowing) bool { return o == f })
	all := map[int][]VersionArrivals{}
	for object, versions := range f.objects {
		for _, one := range versions {
			one.arrivals.Pending = len(one.pending)
			all[object] = append(all[object], one.arrivals)
		}
	}
	return all
}

// see looks for versions in what a sidecar received. The caller holds the tracker's mu.
func (f *VersionFollowing) see(s *sidecar, u Update) {
	for _, r := range u.Set {
		if r.Content == nil {
			continue
		}
		for _, v := range f.versionsIn(r.Content) {
			f.take(s.id, v, u.ReceivedAt)
		}
	}
}

// versionsIn returns the versions that a content holds.
func (f *VersionFollowing) versionsIn(c *Content) []Version {
	found, known := f.cache[c]
	if !known {
		if len(f.cache) >= cachedContents {
			clear(f.cache)
		}
		found = f.read(c)
		f.cache[c] = found
	}
	return found
}

// take records that a sidecar received a version, and with it all earlier ones.
func (f *VersionFollowing) take(id string, v Version, at time.Time) {
	held := f.held[id]
	if held == nil {
		held = map[int]int{}
		f.held[id] = held
	}
	before, had := held[v.Object]
	if had && v.Number <= before {
		return
	}
	held[v.Object] = v.Number
	all := f.objects[v.Object]
	for i := len(all) - 1; i >= 0; i-- {
		one := all[i]
		if had && one.arrivals.Number <= before {
			break // received earlier
		}
		if one.arrivals.Number > v.Number || !one.pending[id] {
			continue
		}
		delete(one.pending, id)
		f.pending--
		one.arrivals.Reached = append(one.arrivals.Reached, at)
		if one.arrivals.Number < v.Number {
			one.arrivals.Superseded++
		}
	}
	f.finish()
}

// drop forgets a sidecar. The caller holds the tracker's mu.
func (f *VersionFollowing) drop(id string) {
	delete(f.held, id)
	for _, all := range f.objects {
		for _, one := range all {
			if one.pending[id] {
				delete(one.pending, id)
				f.pending--
			}
		}
	}
	f.finish()
}

// finish closes done when nothing is left to wait for.
func (f *VersionFollowing) finish() {
	if !f.ended || f.pending > 0 {
		return
	}
	select {
	case <-f.done:
	default:
		close(f.done)
	}
}
