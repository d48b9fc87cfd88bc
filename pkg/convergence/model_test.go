package convergence

import (
	"maps"
	"net/netip"
	"time"
)

// event is one call of a Tracker.
type event struct {
	endpoints *endpointsEvent
	add       *addEvent
	remove    string
	request   string
	certified string
	update    *updateEvent
	at        time.Time // of request and certified
}

type endpointsEvent struct {
	service string
	eps     Endpoints
	at      time.Time
}

type addEvent struct {
	id    string
	scope int // into the history's scopes
}

type updateEvent struct {
	id string
	Update
}

// apply makes the call.
func (e event) apply(t *Tracker, scopes []*Scope) {
	switch {
	case e.endpoints != nil:
		t.SetEndpoints(e.endpoints.service, e.endpoints.eps, e.endpoints.at)
	case e.add != nil:
		t.Add(e.add.id, scopes[e.add.scope])
	case e.remove != "":
		t.Remove(e.remove)
	case e.request != "":
		t.FirstRequest(e.request, e.at)
	case e.certified != "":
		t.Certified(e.certified, e.at)
	case e.update != nil:
		t.Update(e.update.id, e.update.Update)
	}
}

// model is the definition of complete and converged taken literally: all state is
// replayed from the log after every event, every comparison is made anew. What is
// carried over from event to event is only what the definitions say is for ever.
type model struct {
	scopes [][]Want
	log    []event

	last      replay
	completed map[string]time.Time // by id; of sidecars registered now
	latest    time.Time
}

// replay is the state after the log.
type replay struct {
	versions map[string][]versionOf
	sidecars map[string]*sidecarOf
}

type versionOf struct {
	eps Endpoints
	at  time.Time
}

type sidecarOf struct {
	born      int // the event that added it
	wants     []Want
	requestAt time.Time
	request   map[string]int // version of each service at the first request; nil before
	certAt    time.Time
	held      map[Key][]heldOf // every content since the resource was last not held
}

type heldOf struct {
	content *Content
	acked   time.Time
}

func newModel(scopes [][]Want) *model {
	return &model{scopes: scopes, completed: make(map[string]time.Time)}
}

// add appends an event and returns the sidecars that it completed.
func (m *model) add(e event) map[string]time.Time {
	m.log = append(m.log, e)
	now := m.replay()
	if e.add != nil {
		delete(m.completed, e.add.id)
	}
	if e.remove != "" {
		delete(m.completed, e.remove)
	}
	fresh := make(map[string]time.Time)
	for id, s := range now.sidecars {
		if _, done := m.completed[id]; !done {
			if at, ok := now.complete(s); ok {
				fresh[id] = at
			}
		}
		m.advance(s, m.last.sidecars[id], now)
	}
	maps.Copy(m.completed, fresh)
	m.last = now
	return fresh
}

// advance raises latest if the sidecar, which was as before says, came nearer to
// convergence.
func (m *model) advance(s, before *sidecarOf, now replay) {
	if before != nil && before.born != s.born {
		before = nil
	}
	if !s.certAt.IsZero() && (before == nil || before.certAt.IsZero()) && s.certAt.After(m.latest) {
		m.latest = s.certAt
	}
	for _, w := range s.wants {
		if !now.current(s, w) || before != nil && m.last.current(before, w) {
			continue
		}
		row := s.held[w.Key]
		at := row[len(row)-1].acked
		if vs := now.versions[w.Service]; len(vs) > 0 && vs[len(vs)-1].at.After(at) {
			at = vs[len(vs)-1].at
		}
		if at.After(m.latest) {
			m.latest = at
		}
	}
}

func (m *model) counts() Counts {
	c := Counts{Sidecars: len(m.last.sidecars), Complete: len(m.completed)}
	for _, s := range m.last.sidecars {
		if !s.certAt.IsZero() {
			c.Certified++
		}
		if m.last.converged(s) {
			c.Converged++
		}
	}
	return c
}

func (m *model) replay() replay {
	r := replay{versions: make(map[string][]versionOf), sidecars: make(map[string]*sidecarOf)}
	for i, e := range m.log {
		switch {
		case e.endpoints != nil:
			name := e.endpoints.service
			vs := r.versions[name]
			var now Endpoints
			if len(vs) > 0 {
				now = vs[len(vs)-1].eps
			}
			if !maps.Equal(now, e.endpoints.eps) {
				r.versions[name] = append(vs, versionOf{e.endpoints.eps, e.endpoints.at})
			}
		case e.add != nil:
			r.sidecars[e.add.id] = &sidecarOf{born: i, wants: m.scopes[e.add.scope], held: make(map[Key][]heldOf)}
		case e.remove != "":
			delete(r.sidecars, e.remove)
		case e.request != "":
			if s := r.sidecars[e.request]; s != nil && s.request == nil {
				s.requestAt, s.request = e.at, make(map[string]int)
				for key, row := range s.held {
					s.held[key] = row[len(row)-1:] // what went before a first request is no part of it
				}
				for name, vs := range r.versions {
					for i, v := range vs {
						if !v.at.After(e.at) {
							s.request[name] = i + 1
						}
					}
				}
			}
		case e.certified != "":
			if s := r.sidecars[e.certified]; s != nil && s.certAt.IsZero() {
				s.certAt = e.at
			}
		case e.update != nil:
			if s := r.sidecars[e.update.id]; s != nil {
				s.update(e.update.Update)
			}
		}
	}
	return r
}

func (s *sidecarOf) update(u Update) {
	for _, key := range u.Removed {
		delete(s.held, key)
	}
	for _, res := range u.Set {
		row := s.held[res.Key]
		if len(row) == 0 || row[len(row)-1].content != res.Content {
			s.held[res.Key] = append(row, heldOf{res.Content, u.AckedAt})
		}
	}
}

// complete reports whether the sidecar holds enough of everything, and since when
// it did without a gap.
func (r replay) complete(s *sidecarOf) (time.Time, bool) {
	if s.request == nil {
		return time.Time{}, false
	}
	at := s.requestAt
	for _, w := range s.wants {
		if w.Since != "" && r.empty(w.Since, s.request[w.Since]) {
			continue
		}
		row := s.held[w.Key]
		if len(row) == 0 || !r.enough(s, w, row[len(row)-1].content) {
			return time.Time{}, false
		}
		first := len(row) - 1
		for first > 0 && r.enough(s, w, row[first-1].content) {
			first--
		}
		if row[first].acked.After(at) {
			at = row[first].acked
		}
	}
	return at, true
}

func (r replay) enough(s *sidecarOf, w Want, c *Content) bool {
	return hasAll(c, w.Members) && (w.Service == "" || r.atLeast(w.Service, c.Endpoints, s.request[w.Service]))
}

// empty reports whether version v of a service has no endpoint.
func (r replay) empty(service string, v int) bool {
	return v == 0 || len(r.versions[service][v-1].eps) == 0
}

// atLeast is the definition: every endpoint's state in eps equals some state that
// it had in version v or later.
func (r replay) atLeast(service string, eps Endpoints, v int) bool {
	all := make(map[netip.AddrPort]bool)
	versions := []Endpoints{nil}
	for _, version := range r.versions[service] {
		versions = append(versions, version.eps)
		for addr := range version.eps {
			all[addr] = true
		}
	}
	for addr := range eps {
		all[addr] = true
	}
	for addr := range all {
		found := false
		for _, version := range versions[v:] {
			found = found || version.state(addr) == eps.state(addr)
		}
		if !found {
			return false
		}
	}
	return true
}

func (r replay) current(s *sidecarOf, w Want) bool {
	row := s.held[w.Key]
	if len(row) == 0 {
		return false
	}
	c := row[len(row)-1].content
	if w.Service == "" {
		return hasAll(c, w.Members)
	}
	var now Endpoints
	if vs := r.versions[w.Service]; len(vs) > 0 {
		now = vs[len(vs)-1].eps
	}
	return hasAll(c, w.Members) && maps.Equal(now, c.Endpoints)
}

func (r replay) converged(s *sidecarOf) bool {
	for _, w := range s.wants {
		if !r.current(s, w) {
			return false
		}
	}
	return !s.certAt.IsZero()
}

func hasAll(c *Content, members []string) bool {
	for _, m := range members {
		found := false
		for _, have := range c.Members {
			found = found || have == m
		}
		if !found {
			return false
		}
	}
	return true
}
