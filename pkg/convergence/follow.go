package convergence

import (
	"net/netip"
	"slices"
	"time"
)

// Change is a change that is followed to the sidecars: a marker in a resource, or the
// state of one endpoint.
type Change struct {
	// Marker is the marker to look for in contents. "" means that the change has no
	// marker.
	Marker string

	// Key is a resource any change of which is followed; zero, without a Marker, means
	// that an endpoint's change is followed.
	Key Key

	Service string         // service port of the endpoint, as in Want
	Also    string         // another one that the endpoint is of; "" = none
	Addr    netip.AddrPort // the endpoint
	Health  Health         // its new state
	Absent  bool           // it is removed; Health means nothing
}

// ofEndpoint reports whether it is the change of an endpoint.
func (c *Change) ofEndpoint() bool { return c.Marker == "" && c.Key == (Key{}) }

// Following follows one change until every sidecar that it concerns has it.
// Changes that are followed must not overlap.
type Following struct {
	tracker *Tracker
	change  Change
	done    chan struct{}

	// guarded by the tracker's mu
	pending map[string]bool
	reached map[string]time.Time
	strays  map[string]bool
	missed  map[string]bool // concerned, and not seen meanwhile: see Miss
}

// Follow follows a change to the concerned sidecars, which are registered. A change by
// marker or by key must be followed before it is made. A change of an endpoint is
// followed after it was seen: a sidecar that already holds the endpoint in that state has
// had it since it received that content.
func (t *Tracker) Follow(c Change, concerned []string) *Following {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := &Following{
		tracker: t, change: c,
		done:    make(chan struct{}),
		pending: map[string]bool{},
		reached: map[string]time.Time{},
		strays:  map[string]bool{},
		missed:  map[string]bool{},
	}
	for _, id := range concerned {
		f.pending[id] = true
		if s := t.sidecars[id]; s != nil && s.missing {
			f.miss(id)
		}
	}
	t.following = append(t.following, f)
	if c.ofEndpoint() {
		for id := range f.pending {
			if s := t.sidecars[id]; s != nil {
				f.lookAt(s)
			}
		}
	}
	f.finish()
	return f
}

// Subscribers returns the ids of the sidecars whose scope compares the endpoints of a
// service port, sorted.
func (t *Tracker) Subscribers(service string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ids []string
	for id, s := range t.sidecars {
		for i := range s.scope.wants {
			if svc := s.scope.wants[i].target.service; svc != nil && svc.name == service {
				ids = append(ids, id)
				break
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// Done is closed when every concerned sidecar has the change.
func (f *Following) Done() <-chan struct{} { return f.done }

// Stop ends the following. It returns when each sidecar that has the change received its
// bytes, which concerned sidecars never had it, and which had it although it does not
// concern them.
func (f *Following) Stop() (reached map[string]time.Time, lost, strays []string) {
	t := f.tracker
	t.mu.Lock()
	defer t.mu.Unlock()
	t.following = slices.DeleteFunc(t.following, func(o *Following) bool { return o == f })
	for id := range f.pending {
		lost = append(lost, id)
	}
	for id := range f.missed {
		lost = append(lost, id)
	}
	for id := range f.strays {
		strays = append(strays, id)
	}
	slices.Sort(lost)
	slices.Sort(strays)
	return f.reached, lost, strays
}

// see looks for the change in what a sidecar received.
func (f *Following) see(s *sidecar, u Update) {
	if f.missed[s.id] {
		return
	}
	if f.change.ofEndpoint() {
		if f.pending[s.id] {
			f.lookAt(s)
		} else if _, had := f.reached[s.id]; !had && !f.change.Absent && f.listedIn(s, u) {
			f.strays[s.id] = true
		}
		return
	}
	for _, r := range u.Set {
		if f.change.Marker == "" && r.Key == f.change.Key {
			f.hit(s.id, u.ReceivedAt)
			return
		}
		if f.change.Marker != "" && r.Content != nil && slices.Contains(r.Content.Markers, f.change.Marker) {
			f.hit(s.id, u.ReceivedAt)
			return
		}
	}
}

// listedIn reports whether an update lists the endpoint in its new state in a resource
// whose endpoints the sidecar does not compare, for example in another service with the
// same endpoint.
func (f *Following) listedIn(s *sidecar, u Update) bool {
	return slices.ContainsFunc(u.Set, func(r Resource) bool {
		return r.Content != nil && r.Content.Endpoints.state(f.change.Addr) == state(f.change.Health) && !s.scope.compares(r.Key)
	})
}

// lookAt checks what a sidecar holds of the endpoint's service.
func (f *Following) lookAt(s *sidecar) {
	want := state(f.change.Health)
	if f.change.Absent {
		want = absent
	}
	for i := range s.slots {
		sl := &s.slots[i]
		if sl.held == nil || sl.held.target.service == nil {
			continue
		}
		if name := sl.held.target.service.name; name != f.change.Service && name != f.change.Also {
			continue
		}
		if sl.held.content.Endpoints.state(f.change.Addr) == want {
			f.hit(s.id, f.tracker.base.Add(sl.received))
			return
		}
	}
}

// hit notes that a sidecar has the change.
func (f *Following) hit(id string, at time.Time) {
	if !f.pending[id] {
		if _, had := f.reached[id]; !had {
			f.strays[id] = true
		}
		return
	}
	delete(f.pending, id)
	f.reached[id] = at
	f.finish()
}

// finish closes done when no sidecar is left to wait for.
func (f *Following) finish() {
	if len(f.pending) == 0 {
		select {
		case <-f.done:
		default:
			close(f.done)
		}
	}
}
