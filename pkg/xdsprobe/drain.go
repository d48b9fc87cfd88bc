package xdsprobe

import (
	"slices"
	"time"

	"scaler.mesh/scaler/pkg/convergence"
)

// A listener that is removed or changed lives on in Envoy until its connections are
// drained (--drain-time-s), and still needs its routes and extensions: meanwhile they
// stay subscribed to, and their updates are received and acknowledged.

// draining is a name that no current listener names any more.
type draining struct {
	kind  *kind
	name  string
	until time.Time
}

// linger adds the names that are still draining to the names of a type, which are sorted,
// and starts to drain the subscribed names that are not named any more.
func (st *state) linger(kind *kind, names []string, now time.Time) []string {
	if st.drain == 0 {
		return names
	}
	before := st.draining
	st.draining = slices.DeleteFunc(slices.Clone(before), func(d draining) bool { return d.kind == kind })
	for _, name := range minus(st.tables[kind.index].names, names) {
		d := draining{kind, name, now.Add(st.drain)}
		if i := slices.IndexFunc(before, func(o draining) bool { return o.kind == kind && o.name == name }); i >= 0 {
			d = before[i]
		}
		if d.until.After(now) {
			st.draining = append(st.draining, d)
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// drained drops the resources that have drained by now and returns the requests that this
// needs. Dropped resources are reported with the next response.
func (st *state) drained(now time.Time) (steps []step) {
	var c change
	for _, k := range st.types.kinds {
		if k.lingers {
			steps = st.subscribe(steps, k, &c, now)
		}
	}
	st.gone = append(st.gone, c.gone...)
	return steps
}

// nextDrained returns the earliest time at which a draining resource will be gone; the
// zero time if none is draining.
func (st *state) nextDrained() (next time.Time) {
	for _, d := range st.draining {
		if next.IsZero() || d.until.Before(next) {
			next = d.until
		}
	}
	return next
}

// takeGone returns the resources that finished draining and were not reported yet, except
// those that the change c brings back.
func (st *state) takeGone(c *change) []convergence.Key {
	gone := slices.DeleteFunc(st.gone, func(k convergence.Key) bool {
		return slices.ContainsFunc(c.set, func(r convergence.Resource) bool { return r.Key == k })
	})
	st.gone = nil
	return gone
}

// Draining returns the keys of the resources that the sidecar subscribes to only until
// the listeners that named them have drained. It may be called while the sidecar runs.
func (s *Client) Draining() []convergence.Key {
	s.holding.Lock()
	defer s.holding.Unlock()
	var keys []convergence.Key
	for _, d := range s.state.draining {
		keys = append(keys, convergence.Key{Type: d.kind.Name, Name: d.name})
	}
	return keys
}

// giveUpDrained calls [state.drained] with the current time, under the lock that protects
// readers of the held resources. The caller holds the stream's mu.
func (s *Client) giveUpDrained() []step {
	s.holding.Lock()
	defer s.holding.Unlock()
	return s.state.drained(time.Now())
}

// scheduleDrained schedules giveUpDrained for the time at which the next draining
// resource expires. The caller holds mu.
func (s *stream) scheduleDrained() {
	next := s.client.state.nextDrained()
	if next.IsZero() {
		return
	}
	s.draining.After(max(0, time.Until(next)), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		steps := s.client.giveUpDrained()
		s.scheduleDrained()
		_ = s.send(steps) // an error ends the stream
	})
}
