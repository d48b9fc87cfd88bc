package xdsprobe

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

// state is what a sidecar asked for, holds and owes its server. It does no I/O:
// responses go in, requests come out, in the order in which Envoy 1.40 sends
// them:
//
//   - Clusters are asked for first. The load assignments of all EDS clusters are
//     asked for in one request, which goes out before the clusters' ACK.
//   - Listeners are asked for once every load assignment was answered, before the
//     ACK of the last; then at once on every stream, with all the rest. A cluster
//     that speaks TLS also waits for the sidecar's certificate, which comes by a
//     stream of its own that is opened meanwhile: where there is one, listeners
//     are asked for after that ACK, and not before the first certificate is there.
//   - Routes and extension configurations that listeners name are asked for
//     before the listeners' ACK.
//   - From then on the ACK of clusters waits until their load assignments are
//     there: until the clusters are warm. (Envoy also waits, with the delta
//     variant possibly for ever, for assignments that it holds to be sent again
//     when their clusters change. A state does not.)
//   - Neither wait lasts longer than the clusters' initial_fetch_timeout, which
//     Istio sets to none.
//
// What is asked for by name is computed from what is held: a name is asked for
// as long as one parent names it, and what no parent names any more is not held
// any more. A listener that is gone, or was another, counts until it is drained.
type state struct {
	variant Variant
	store   *Store
	tables  [kinds]table
	bytes   int // of all that is held

	// listening says that listeners have been asked for, on any stream.
	listening bool

	// drain is how long a listener lives on that is gone; 0 means not at all.
	drain    time.Duration
	draining []draining
	gone     []convergence.Key // not held any more since it drained, and not told yet

	// certified says that there is nothing to wait for: the sidecar has its first
	// certificate, or asks for none. It is set from outside, at any time.
	certified atomic.Bool

	waiting []step          // cluster ACKs that wait for load assignments
	owed    []*proxy.Update // of responses whose ACK was lost with its stream
	opened  bool            // on the current stream, a response came
}

// step is one request to send, and what can be said when it was sent.
type step struct {
	request request
	updates []*proxy.Update
}

// open forgets the stream that was and returns the first requests of a new one.
func (st *state) open() []step {
	for i := range st.tables {
		st.tables[i].requested, st.tables[i].nonce = false, ""
	}
	for _, s := range st.waiting {
		st.owed = append(st.owed, s.updates...)
	}
	st.waiting, st.opened = nil, false

	var steps []step
	for _, t := range []convergence.Type{convergence.CDS, convergence.EDS, convergence.LDS, convergence.RDS, convergence.ECDS} {
		// An empty list of names in the first request of a stream would ask for
		// everything.
		if t == convergence.CDS || t == convergence.LDS && st.listening || len(st.tables[t].names) > 0 {
			steps = append(steps, step{request: st.first(t)})
		}
	}
	// The versions in these requests acknowledge what an earlier stream left
	// unacknowledged.
	last := &steps[len(steps)-1]
	last.updates, st.owed = st.owed, nil
	return steps
}

// first returns the first request for a type on the current stream.
func (st *state) first(t convergence.Type) request {
	table := &st.tables[t]
	table.requested = true
	if st.variant == SotW {
		return st.full(t)
	}
	return request{kind: t, subscribe: table.names, initial: table.held}
}

// full returns a state-of-the-world request: an ACK, a change of names and a
// first request are all the same.
func (st *state) full(t convergence.Type) request {
	table := &st.tables[t]
	return request{kind: t, names: table.names, version: table.version, nonce: table.nonce}
}

// receive takes a response and returns what to send, in order. It returns nil
// for a response of a type that was not asked for, as Envoy drops those.
func (st *state) receive(r *response) []step {
	t := typeOf(r.typeURL)
	table := &st.tables[t]
	if !table.requested {
		return nil
	}
	u := &proxy.Update{Type: t, First: !st.opened, Bytes: r.size}
	u.ReceivedAt = r.receivedAt
	st.opened = true
	table.nonce = r.nonce

	resources, err := st.resources(t, r)
	if err != nil {
		u.Rejected = err
		return st.finish(nil, u)
	}
	var c change
	st.apply(t, resources, r, &c)
	if st.variant == SotW {
		table.version = r.version
	}
	st.supersede(&c)
	steps := st.follow(t, &c, r.receivedAt)
	secured := st.secured()
	if !secured {
		steps = st.listen(steps)
	}
	st.bytes += c.bytes
	u.Set, u.Removed = c.set, append(st.takeGone(&c), c.gone...)
	u.Wasted = c.empty() && len(r.resources) > 0
	steps = st.finish(steps, u)
	if secured {
		steps = st.listen(steps)
	}
	return steps
}

// resources returns the resources of a response, sorted by name. An error
// rejects the response as a whole.
func (st *state) resources(t convergence.Type, r *response) ([]*Resource, error) {
	resources := make([]*Resource, 0, len(r.resources))
	for i := range r.resources {
		b := &r.resources[i]
		if st.variant == SotW {
			if err := b.unwrap(); err != nil {
				return nil, fmt.Errorf("parsing a wrapped resource: %w", err)
			}
		}
		if !b.present && (b.aliases || st.heartbeat(t, b)) {
			continue
		}
		if string(b.resource.typeURL) != string(r.typeURL) {
			return nil, fmt.Errorf("resource %q has type %q in a response of type %q", b.name, b.resource.typeURL, r.typeURL)
		}
		one, err := st.store.resource(t, b)
		if err != nil {
			return nil, fmt.Errorf("resource %q: %w", b.name, err)
		}
		resources = append(resources, one)
	}
	slices.SortFunc(resources, byName)
	for i, one := range resources {
		if i > 0 && resources[i-1].Name == one.Name {
			return nil, fmt.Errorf("resource %q is named twice", one.Name)
		}
	}
	slices.Sort(r.removed)
	for i, name := range r.removed {
		if _, set := find(resources, name); set || i > 0 && r.removed[i-1] == name {
			return nil, fmt.Errorf("resource %q is named twice", name)
		}
	}
	return resources, nil
}

// heartbeat reports whether a resource without content says that the version
// that is held is still good.
func (st *state) heartbeat(t convergence.Type, b *body) bool {
	held := st.tables[t].held
	i, ok := find(held, string(b.name))
	return ok && held[i].version == string(b.version)
}

// apply changes the table of a type as an accepted response says.
func (st *state) apply(t convergence.Type, resources []*Resource, r *response, c *change) {
	table := &st.tables[t]
	if t == convergence.CDS || t == convergence.LDS {
		if st.variant == SotW { // the whole truth: what it doesn't name is gone
			table.keep(resources, c)
		}
	} else {
		// What was not asked for, or not any more, is ignored.
		resources = table.asked(resources)
	}
	if len(r.removed) > 0 {
		table.drop(func(held *Resource) bool { return contains(r.removed, held.Name) }, c)
		for _, name := range r.removed {
			table.setAbsent(name)
		}
	}
	table.put(resources, c)
}

// supersede keeps updates that wait to be told from taking away, when they are,
// what has come again meanwhile.
func (st *state) supersede(c *change) {
	for _, s := range st.waiting {
		for _, u := range s.updates {
			u.Removed = slices.DeleteFunc(u.Removed, func(k convergence.Key) bool {
				return slices.ContainsFunc(c.set, func(r convergence.Resource) bool { return r.Key == k })
			})
		}
	}
}

// follow brings the names asked for in line with a change of a type's resources,
// and returns the requests that this takes.
func (st *state) follow(t convergence.Type, c *change, now time.Time) (steps []step) {
	switch {
	case t == convergence.CDS && !c.empty():
		steps = st.subscribe(steps, convergence.EDS, c, now, func(r *Resource, names []string) []string {
			if r.assignment == "" {
				return names
			}
			return append(names, r.assignment)
		})
	case t == convergence.LDS && !c.empty():
		steps = st.followListeners(c, now)
	}
	return steps
}

// secured reports whether a cluster speaks TLS, as long as it matters.
func (st *state) secured() bool {
	return !st.listening && slices.ContainsFunc(st.tables[convergence.CDS].held, func(r *Resource) bool { return r.secured })
}

// listen asks for listeners when it is time.
func (st *state) listen(steps []step) []step {
	clusters := &st.tables[convergence.CDS]
	if st.listening || clusters.nonce == "" || !st.tables[convergence.EDS].answered() || !st.certified.Load() && st.secured() {
		return steps
	}
	st.listening = true
	return append(steps, step{request: st.first(convergence.LDS)})
}

// patience reports whether anything waits for load assignments with a time-out,
// and how long it may: until the last of the clusters gives up.
func (st *state) patience() (limit time.Duration, waiting bool) {
	assignments := &st.tables[convergence.EDS]
	if assignments.answered() || st.listening && len(st.waiting) == 0 {
		return 0, false
	}
	for _, cluster := range st.tables[convergence.CDS].held {
		if cluster.assignment == "" || assignments.has(cluster.assignment) {
			continue
		}
		if cluster.timeout == 0 {
			return 0, false
		}
		limit = max(limit, cluster.timeout)
	}
	return limit, true
}

// giveUp stops waiting for load assignments that have not come, and returns what
// can be sent now.
func (st *state) giveUp() []step {
	assignments := &st.tables[convergence.EDS]
	for _, name := range assignments.names {
		if !assignments.has(name) {
			assignments.setAbsent(name)
		}
	}
	steps := append(st.listen(nil), st.waiting...)
	st.waiting = nil
	return steps
}

// subscribe asks for the names that the resources of child's parent type name.
func (st *state) subscribe(steps []step, child convergence.Type, c *change, now time.Time, name func(*Resource, []string) []string) []step {
	parent := convergence.LDS
	if child == convergence.EDS {
		parent = convergence.CDS
	}
	var names []string
	for _, r := range st.tables[parent].held {
		names = name(r, names)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if parent == convergence.LDS {
		names = st.linger(child, names, now)
	}

	table := &st.tables[child]
	added, removed := table.subscribe(names, c)
	changed := len(added)+len(removed) > 0
	switch {
	case changed && !table.requested:
		return append(steps, step{request: st.first(child)})
	case st.variant == SotW && (changed || child == convergence.EDS && c.assignments && table.requested):
		// Envoy subscribes anew for a cluster that changed, which in this
		// variant repeats the request.
		return append(steps, step{request: st.full(child)})
	case st.variant != SotW && changed:
		return append(steps, step{request: request{kind: child, subscribe: added, unsubscribe: removed}})
	}
	return steps
}

// finish adds the ACK or NACK of a response to the requests that it caused, and
// the cluster ACKs that have waited long enough.
func (st *state) finish(steps []step, u *proxy.Update) []step {
	ack := step{request: st.ack(u), updates: []*proxy.Update{u}}
	warm := !st.listening || st.tables[convergence.EDS].answered()
	if u.Type == convergence.CDS {
		if st.variant == SotW && len(st.waiting) > 0 { // one request acknowledges all
			ack.updates = append(st.waiting[0].updates, u)
			st.waiting = nil
		}
		st.waiting = append(st.waiting, ack)
	}
	if warm {
		steps = append(steps, st.waiting...)
		st.waiting = nil
	}
	if u.Type != convergence.CDS {
		steps = append(steps, ack)
	}
	return steps
}

// ack returns the request that acknowledges or rejects a response.
func (st *state) ack(u *proxy.Update) request {
	if st.variant == SotW {
		ack := st.full(u.Type)
		ack.err = u.Rejected
		return ack
	}
	return request{kind: u.Type, nonce: st.tables[u.Type].nonce, err: u.Rejected}
}

// lose takes back what could not be sent because the stream was lost.
func (st *state) lose(steps []step) {
	for _, s := range steps {
		for _, u := range s.updates {
			if u.Rejected == nil {
				st.owed = append(st.owed, u)
			}
		}
	}
}
