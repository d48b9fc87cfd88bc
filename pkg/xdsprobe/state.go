package xdsprobe

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

// state holds a client's subscriptions, the resources it holds and the requests it has
// yet to send. It does no I/O: responses go in, requests come out. With EnvoyTypes it
// sends requests in the order of Envoy 1.40:
//
//   - Clusters are subscribed to first. The load assignments of all EDS clusters are
//     subscribed to in one request, which is sent before the clusters' ACK.
//   - Listeners are first subscribed to when every load assignment was answered, before
//     the ACK of the last one; on later streams at once, together with all other types.
//     A cluster that uses TLS also waits for the sidecar's certificate, which arrives
//     on a separate stream that is opened meanwhile. Where there is such a cluster,
//     listeners are subscribed to after that ACK and not before the first certificate
//     has arrived.
//   - Routes and extension configurations that listeners name are subscribed to
//     before the listeners' ACK.
//   - From then on the ACK of clusters waits until their load assignments have arrived,
//     that is, until the clusters are warm. (Envoy also waits for the assignments that
//     it already holds to be sent again when their clusters change; with the delta
//     variant this may take for ever. A state does not wait for them.)
//   - Both waits are limited by the clusters' initial_fetch_timeout, which Istio sets
//     to none. The wait of listeners for the first response of clusters is limited by
//     the FetchTimeout of their type, which for Istio is also none.
//
// Subscriptions by name are computed from the resources held: a name is subscribed to
// while at least one parent names it, and a resource that no parent names any more is
// dropped. A listener that was removed or replaced counts as a parent until it has
// drained.
type state struct {
	variant Variant
	store   *Store
	types   *Types  // that are subscribed to, of the store's
	tables  []table // by the index of the type

	// drain is the time that a removed listener lives on; 0 means that it is gone at once.
	drain    time.Duration
	draining []draining
	gone     []convergence.Key // not held any more since it drained, and not reported yet

	// certified means that the client has its first certificate, or needs none. It may be
	// set from outside at any time.
	certified atomic.Bool

	secrets secretTimes // when secrets were requested

	waiting []step          // cluster ACKs that wait for load assignments
	owed    []*proxy.Update // of responses whose ACK was lost with its stream
}

// step is one request to send, with the updates to report after it was sent.
type step struct {
	request request
	updates []*proxy.Update
}

func (st *state) prepare(c *Config, store *Store) (err error) {
	if st.types, err = store.types.only(c.Types); err != nil {
		return err
	}
	st.variant, st.store, st.drain = c.Variant, store, c.Drain
	st.tables = make([]table, len(store.types.kinds))
	return nil
}

// open discards the state of the previous stream and returns the first requests of a new
// one.
func (st *state) open() []step {
	for i := range st.tables {
		st.tables[i].requested, st.tables[i].nonce = false, ""
	}
	for _, s := range st.waiting {
		st.owed = append(st.owed, s.updates...)
	}
	st.waiting = nil

	var steps []step
	for _, k := range st.types.kinds {
		// An empty list of names in the first request of a stream would subscribe to
		// everything.
		t := &st.tables[k.index]
		if k.wildcard() && (!k.AfterWarming || t.begun) || len(t.names) > 0 {
			steps = append(steps, step{request: st.first(k)})
		}
	}
	// The versions in these requests acknowledge what an earlier stream left
	// unacknowledged.
	last := &steps[len(steps)-1]
	last.updates, st.owed = st.owed, nil
	return steps
}

// first returns the first request for a type on the current stream.
func (st *state) first(k *kind) request {
	table := &st.tables[k.index]
	table.requested = true
	if k.Name == convergence.SDS {
		st.secrets.request(table.names)
	}
	if st.variant == SotW {
		return st.full(k)
	}
	return request{url: k.URL, subscribe: table.names, initial: table.held}
}

// full returns a state-of-the-world request. An ACK, a change of names and a first
// request have the same form.
func (st *state) full(k *kind) request {
	table := &st.tables[k.index]
	return request{url: k.URL, names: table.names, version: table.version, nonce: table.nonce}
}

// receive processes a response and returns the requests to send, in order. It returns nil
// for a response of a type that is not subscribed to, because Envoy drops those.
func (st *state) receive(k *kind, r *response) []step {
	if k == nil || !st.tables[k.index].requested {
		return nil
	}
	table := &st.tables[k.index]
	u := &proxy.Update{Type: k.Name, Bytes: r.size}
	u.ReceivedAt = r.receivedAt
	table.nonce = r.nonce

	resources, err := st.resources(k, r)
	if err != nil {
		u.Rejected = err
		return st.finish(nil, k, u)
	}
	if k.Name == convergence.SDS {
		st.secrets.answer(resources)
	}
	var c change
	st.apply(k, resources, r, &c)
	if st.variant == SotW {
		table.version = r.version
	}
	st.supersede(&c)
	var steps []step
	if !c.empty() {
		for _, child := range k.children {
			steps = st.subscribe(steps, child, &c, r.receivedAt)
		}
	}
	secured := st.secured()
	if !secured {
		steps = st.proceed(steps)
	}
	u.Set, u.Removed = c.set, append(st.takeGone(&c), c.gone...)
	u.Wasted = c.empty() && len(r.resources) > 0
	steps = st.finish(steps, k, u)
	if secured {
		steps = st.proceed(steps)
	}
	return steps
}

// resources returns the resources of a response, sorted by name. An error
// rejects the response as a whole.
func (st *state) resources(t *kind, r *response) ([]*Resource, error) {
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

// heartbeat reports whether a resource without content says that the held version is
// still valid.
func (st *state) heartbeat(t *kind, b *body) bool {
	held := st.tables[t.index].held
	i, ok := find(held, string(b.name))
	return ok && held[i].version == string(b.version)
}

// apply changes the table of a type according to an accepted response.
func (st *state) apply(k *kind, resources []*Resource, r *response, c *change) {
	table := &st.tables[k.index]
	if k.wildcard() {
		if st.variant == SotW { // the response is complete: what it does not name was removed
			table.keep(resources, c)
		}
	} else {
		// Resources that are not subscribed to, or no longer, are ignored.
		resources = table.subscribed(resources)
	}
	if len(r.removed) > 0 {
		table.drop(func(held *Resource) bool { return contains(r.removed, held.Name) }, c)
		for _, name := range r.removed {
			table.setAbsent(name)
		}
	}
	table.put(resources, c)
}

// supersede prevents updates that wait to be reported from removing resources that have
// come again meanwhile.
func (st *state) supersede(c *change) {
	for _, s := range st.waiting {
		for _, u := range s.updates {
			u.Removed = slices.DeleteFunc(u.Removed, func(k convergence.Key) bool {
				return slices.ContainsFunc(c.set, func(r convergence.Resource) bool { return r.Key == k })
			})
		}
	}
}

// subscribe subscribes to the names of a type that the resources of its parents name, and
// returns the requests that this needs.
func (st *state) subscribe(steps []step, k *kind, c *change, now time.Time) []step {
	var names []string
	for _, parent := range k.parents {
		for _, r := range st.tables[parent.index].held {
			names = r.naming(k.Name, names)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if k.lingers {
		names = st.linger(k, names, now)
	}

	table := &st.tables[k.index]
	held := len(table.held)
	added, removed := table.subscribe(names, c)
	if k.Name == convergence.SDS {
		st.secrets.forget(removed)
		st.secrets.request(added)
	}
	changed := len(added)+len(removed) > 0
	switch {
	case changed && !table.requested:
		steps = append(steps, step{request: st.first(k)})
	case st.variant == SotW && (changed || k.Resubscribed && c.repeats && table.requested):
		// Envoy subscribes again for a changed cluster. In this variant, that repeats the
		// request.
		steps = append(steps, step{request: st.full(k)})
	case st.variant != SotW && changed:
		steps = append(steps, step{request: request{url: k.URL, subscribe: added, unsubscribe: removed}})
	}
	if len(table.held) < held { // what those named may be named no more
		for _, child := range k.children {
			steps = st.subscribe(steps, child, c, now)
		}
	}
	return steps
}

// finish adds the ACK or NACK of a response to the requests that it caused, and the ACKs
// whose wait is over.
func (st *state) finish(steps []step, k *kind, u *proxy.Update) []step {
	ack := step{request: st.ack(k, u), updates: []*proxy.Update{u}}
	waits := k.warmed()
	if waits {
		if st.variant == SotW { // one request acknowledges all of a type
			same := func(s step) bool { return s.request.url == k.URL }
			if i := slices.IndexFunc(st.waiting, same); i >= 0 {
				ack.updates = append(st.waiting[i].updates, u)
				st.waiting = slices.Delete(st.waiting, i, i+1)
			}
		}
		st.waiting = append(st.waiting, ack)
	}
	if !st.begun() || st.warm() {
		steps = append(steps, st.waiting...)
		st.waiting = nil
	}
	if !waits {
		steps = append(steps, ack)
	}
	return steps
}

// ack returns the request that acknowledges or rejects a response.
func (st *state) ack(k *kind, u *proxy.Update) request {
	if st.variant == SotW {
		ack := st.full(k)
		ack.err = u.Rejected
		return ack
	}
	return request{url: k.URL, nonce: st.tables[k.index].nonce, err: u.Rejected}
}

// lose keeps the updates that could not be sent because the stream was lost.
func (st *state) lose(steps []step) {
	for _, s := range steps {
		for _, u := range s.updates {
			if u.Rejected == nil {
				st.owed = append(st.owed, u)
			}
		}
	}
}
