package convergence

import (
	"math"
	"sync"
	"time"
)

// Tracker follows sidecars from their first request to convergence. Its methods may be
// called concurrently; each takes effect atomically.
//
// All times must come from one clock. The cost of an event of one sidecar does not depend
// on the number of sidecars. The cost of a change of a service's endpoints is
// proportional to the number of contents held for it, and only sidecars whose standing it
// alters are visited.
//
// A sidecar becomes complete, and stays so, when it holds and has acknowledged every want
// with content at least as new as at its first request, except those that could not be
// sent then (Want.Since). Sidecars are converged while each of them holds and has
// acknowledged exactly the current version of all its wants and has its certificate.
type Tracker struct {
	// OnComplete, if not nil, is called once for each sidecar that becomes complete, by
	// the goroutine whose call made it so, and may call the Tracker. It must be set
	// before the Tracker is used.
	OnComplete func(id string, at time.Time)

	// Delivered, if not nil, is called with changes of a service's endpoints that reached
	// a sidecar which held the service's endpoints before: n changes of a kind, received
	// this long after they were seen. A change that was overtaken counts when a later
	// state of the endpoint arrives. It is called with the Tracker locked, so it must not
	// call it; it must be set before the Tracker is used.
	Delivered func(kind Kind, n int, after time.Duration)

	// Missed, if not nil, is called like Delivered, with changes that reached a sidecar,
	// or would have, while it was not observed: see Miss.
	Missed func(kind Kind, n int)

	changed chan struct{}

	mu        sync.Mutex
	base      time.Time // the first time seen
	services  map[string]*service
	targets   map[string]*target
	sidecars  map[string]*sidecar
	counts    Counts
	latest    stamp // of the events that brought a sidecar nearer to convergence
	reached   []milestone
	following []*Following
	versions  []*VersionFollowing
}

// Counts are the numbers of sidecars in each state at one moment.
type Counts struct {
	Sidecars  int // registered
	Complete  int
	Certified int
	Converged int // counted one by one
}

func (c Counts) converged() bool { return c.Sidecars > 0 && c.Converged == c.Sidecars }

// milestone is a pending call of OnComplete.
type milestone struct {
	id string
	at time.Time
}

// New returns a Tracker without sidecars, in which every service is without
// endpoints.
func New() *Tracker {
	return &Tracker{
		changed:  make(chan struct{}, 1),
		services: make(map[string]*service),
		targets:  make(map[string]*target),
		sidecars: make(map[string]*sidecar),
		latest:   math.MinInt64,
	}
}

// NewBeside returns a Tracker that shares the Changed channel of another one: a receiver
// then learns of the changes of both.
func NewBeside(other *Tracker) *Tracker {
	t := New()
	t.changed = other.changed
	return t
}

// Scope returns the scope of sidecars that must hold all of wants. Without wants, its
// sidecars need only a certificate.
func (t *Tracker) Scope(wants []Want) *Scope {
	t.mu.Lock()
	defer t.mu.Unlock()
	scope := &Scope{index: make(map[string][]int)}
	for i, want := range wants {
		members := sorted(want.Members)
		key := targetKey(want.Service, members)
		tg := t.targets[key]
		if tg == nil {
			var s *service
			if want.Service != "" {
				s = t.service(want.Service)
			}
			tg = newTarget(members, s)
			t.targets[key] = tg
		}
		of := condition{key: want.Key, target: tg}
		if want.Since != "" {
			of.since = t.service(want.Since)
		}
		scope.wants = append(scope.wants, of)
		scope.index[want.Name] = append(scope.index[want.Name], i)
	}
	return scope
}

// SetEndpoints records that the API server lists eps for a service port
// ("namespace/name:port") since at. This is the service's next version, unless eps equal
// the current one. Versions of a service must be set in the order of their times. eps is
// not kept.
func (t *Tracker) SetEndpoints(service string, eps Endpoints, at time.Time) {
	t.apply(func() {
		s := t.service(service)
		if !s.set(eps, t.stamp(at)) {
			return
		}
		for _, tg := range s.targets {
			tg.matches.all(func(v *verdict) { t.rejudge(v, t.stamp(at)) })
		}
	})
}

// Add registers a sidecar. A sidecar that is already registered under this id is replaced
// by a new one that holds nothing.
func (t *Tracker) Add(id string, scope *Scope) {
	t.apply(func() { t.add(newSidecar(id, scope)) })
}

// Remove unregisters a sidecar. Convergence no longer waits for it.
//
// This method and those below ignore events of a sidecar that is not registered, because
// its last events may come after its removal.
func (t *Tracker) Remove(id string) {
	t.apply(func() { t.remove(id) })
}

// FirstRequest records that a sidecar sent the first request of its life at that time. It
// needs the versions of that time to be complete. A later call, as after a reconnect,
// changes nothing.
func (t *Tracker) FirstRequest(id string, at time.Time) {
	t.apply(func() {
		if s := t.sidecars[id]; s != nil && !s.requested {
			t.request(s, t.stamp(at))
		}
	})
}

// Update records that a sidecar received and acknowledged a response. Resources
// that are not in its scope are ignored.
func (t *Tracker) Update(id string, u Update) {
	t.apply(func() {
		s := t.sidecars[id]
		if s == nil {
			return
		}
		received, at := t.stamp(u.ReceivedAt), t.stamp(u.AckedAt)
		for _, key := range u.Removed {
			for _, i := range s.scope.index[key.Name] {
				if s.scope.wants[i].key.Type == key.Type {
					t.drop(&s.slots[i])
				}
			}
		}
		for _, r := range u.Set {
			for _, i := range s.scope.index[r.Name] {
				if want := &s.scope.wants[i]; want.key.Type == r.Type {
					t.hold(&s.slots[i], want.target, r.Content, received, at)
				}
			}
		}
		for _, f := range t.following {
			f.see(s, u)
		}
		for _, f := range t.versions {
			f.see(s, u)
		}
		t.finish(s)
	})
}

// Certified records that a sidecar had its certificate at that time. Only the first call
// counts, because a renewed certificate was never missing.
func (t *Tracker) Certified(id string, at time.Time) {
	t.apply(func() {
		s := t.sidecars[id]
		if s == nil || s.certified {
			return
		}
		s.certified = true
		t.counts.Certified++
		t.latest = max(t.latest, t.stamp(at))
		if s.converged() {
			t.counts.Converged++
		}
	})
}

// Changed returns a channel that receives after Counts or Converged changed. Changes that
// were not received yet are merged into one. There is only one channel, for one receiver.
func (t *Tracker) Changed() <-chan struct{} { return t.changed }

// Counts returns the number of sidecars in each state.
func (t *Tracker) Counts() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts
}

// Converged reports whether all sidecars have converged, and since when: the latest of
// the acknowledgements, certificates and endpoint changes that led to it. It is false
// while there is no sidecar.
func (t *Tracker) Converged() (at time.Time, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.counts.converged() {
		return time.Time{}, false
	}
	return t.base.Add(t.latest), true
}

// apply makes a change under the lock, then calls the listeners for its effects.
func (t *Tracker) apply(change func()) {
	t.mu.Lock()
	counts, latest := t.counts, t.latest
	change()
	changed := t.counts != counts || t.counts.converged() && t.latest != latest
	reached := t.reached
	t.reached = nil
	t.mu.Unlock()

	if t.OnComplete != nil {
		for _, m := range reached {
			t.OnComplete(m.id, m.at)
		}
	}
	if changed {
		select {
		case t.changed <- struct{}{}:
		default: // one is waiting already
		}
	}
}

// service returns the service port of that name, new if it is not known.
func (t *Tracker) service(name string) *service {
	s := t.services[name]
	if s == nil {
		s = newService(name)
		t.services[name] = s
	}
	return s
}

// stamp returns a time as it is kept.
func (t *Tracker) stamp(at time.Time) stamp {
	if t.base.IsZero() {
		t.base = at
	}
	return at.Sub(t.base)
}
