package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"

	"scaler.mesh/scaler/pkg/convergence"
)

// cache holds the resources that go-control-plane's server serves: every resource
// once, encoded once, for all sidecars; what differs between them is which of
// these they see (view). Each watch is one stream's for one type of resource;
// it is answered at once if its stream lacks something, or else when something
// changes. A stream that has not acknowledged its last response has no watch,
// so changes gather until it has.
//
// It is a cache of our own because go-control-plane's do not fit: a snapshot
// cache holds a snapshot for each node, and a linear cache enters every watch
// under each of its names, which for sidecars that are configured for
// everything costs more than the push itself, see BenchmarkPush.
type cache struct {
	faults *faults
	count  *counters

	mu       sync.Mutex
	revision uint64 // of the state of the world
	clusters view
	listener view
	byName   map[convergence.Type]set // load assignments and route configurations
	watches  map[convergence.Type]map[*watch]struct{}
	awaited  int           // watches
	reached  chan struct{} // closed when there are as many; nil = nobody waits
}

var _ cachev3.Cache = (*cache)(nil)

// served are the types of resources, in the order in which changes of them are
// sent: so that what is named exists when its name comes, as far as one stream
// that acknowledges at once goes.
var served = []convergence.Type{convergence.EDS, convergence.CDS, convergence.RDS, convergence.LDS}

func newCache(f *faults, c *counters) *cache {
	cache := &cache{
		faults: f, count: c,
		byName:  map[convergence.Type]set{convergence.EDS: {}, convergence.RDS: {}},
		watches: map[convergence.Type]map[*watch]struct{}{},
	}
	for _, t := range served {
		cache.watches[t] = map[*watch]struct{}{}
	}
	return cache
}

// ServeHTTP answers GET /acknowledged?sidecars=N when so many streams have a watch
// for each type of resource: they have acknowledged everything they were sent, and the server
// has processed it. So waiting for it takes one request; one at a time may wait.
func (c *cache) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sidecars, err := strconv.Atoi(r.URL.Query().Get("sidecars"))
	if err != nil || sidecars < 0 {
		http.Error(w, fmt.Sprintf("parsing sidecars %q: want a number", r.URL.Query().Get("sidecars")), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	c.awaited, c.reached = sidecars*len(served), make(chan struct{})
	reached := c.reached
	c.tellReached()
	c.mu.Unlock()
	select {
	case <-reached:
	case <-r.Context().Done():
	}
}

// tellReached closes reached if as many watches are open as are awaited. The caller
// holds mu.
func (c *cache) tellReached() {
	if c.reached == nil {
		return
	}
	open := 0
	for _, t := range served {
		open += len(c.watches[t])
	}
	if open >= c.awaited {
		close(c.reached)
		c.reached = nil
	}
}

// pushBatch is the number of streams that are notified of a push before they can
// send it. With all of them ready to run at once, the first would wait
// for the last: gRPC lets others run before it flushes a small message.
const pushBatch = 16

// structure has all resources but load assignments.
type structure struct {
	clusters, listeners view
	routes              set
}

// update replaces load assignments by name, those that are nil by nothing, and
// the structure unless it is nil; then it notifies every watch that this concerns
// and returns how many these were.
func (c *cache) update(assignments set, st *structure) (pushes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.revision++
	changed := map[convergence.Type][]string{}
	for name, r := range assignments {
		if replace(c.byName[convergence.EDS], name, r) {
			changed[convergence.EDS] = append(changed[convergence.EDS], name)
		}
	}
	if st != nil {
		routes := c.byName[convergence.RDS]
		for name := range routes {
			if st.routes[name] == nil {
				delete(routes, name)
				changed[convergence.RDS] = append(changed[convergence.RDS], name)
			}
		}
		for name, r := range st.routes {
			if replace(routes, name, r) {
				changed[convergence.RDS] = append(changed[convergence.RDS], name)
			}
		}
		c.clusters, c.listener = st.clusters, st.listeners
	}
	for _, t := range served {
		everything := st != nil && (t == convergence.CDS || t == convergence.LDS)
		if !everything && len(changed[t]) == 0 {
			continue
		}
		for w := range c.watches[t] {
			names := changed[t]
			if everything {
				names = nil
			}
			if d := c.lacks(w, names); !d.empty() {
				c.push(w, d)
				if pushes++; pushes%pushBatch == 0 {
					runtime.Gosched()
				}
			}
		}
	}
	return pushes
}

// replace puts r into s, or removes what is there if r is nil, and reports
// whether that is a change.
func replace(s set, name string, r *resource) bool {
	old := s[name]
	switch {
	case r == nil:
		delete(s, name)
		return old != nil
	case old != nil && old.version == r.version:
		return false
	default:
		s[name] = r
		return true
	}
}

// layers returns the resources of a type that a workload's sidecars may see.
func (c *cache) layers(t convergence.Type, workload string) layers {
	switch t {
	case convergence.CDS:
		return c.clusters.of(workload)
	case convergence.LDS:
		return c.listener.of(workload)
	default:
		return layers{c.byName[t]}
	}
}

// watch is a stream's for one type, from its request until it was answered.
type watch struct {
	kind     convergence.Type
	node     *corev3.Node // the same pointer for all requests of a stream
	sub      cachev3.Subscription
	known    map[string]string // versions that the stream has, by name; read only
	whole    bool              // a response holds all or nothing: clusters and listeners of the state of the world
	absences bool              // names that do not exist are reported: the delta variant
	respond  func(d diff, revision uint64)

	held *time.Timer // a response is held back
	done bool        // was answered or cancelled: its channel must not be used
}

// CreateWatch implements cachev3.ConfigWatcher for the state of the world.
func (c *cache) CreateWatch(request *cachev3.Request, sub cachev3.Subscription, responses chan cachev3.Response) (func(), error) {
	t, err := kindOf(request.GetTypeUrl())
	if err != nil {
		return nil, err
	}
	w := &watch{kind: t, node: request.GetNode(), sub: sub, whole: t == convergence.CDS || t == convergence.LDS}
	w.respond = func(d diff, revision uint64) { responses <- d.sotw(request, revision) }
	// A proxy starts when it has an answer of each type, if an empty one.
	first := request.GetVersionInfo() == "" && request.GetResponseNonce() == ""
	return c.create(w, first, request.GetResponseNonce() == ""), nil
}

// CreateDeltaWatch implements cachev3.ConfigWatcher for the delta variant.
func (c *cache) CreateDeltaWatch(request *cachev3.DeltaRequest, sub cachev3.Subscription, responses chan cachev3.DeltaResponse) (func(), error) {
	t, err := kindOf(request.GetTypeUrl())
	if err != nil {
		return nil, err
	}
	w := &watch{kind: t, node: request.GetNode(), sub: sub, absences: true}
	w.respond = func(d diff, revision uint64) { responses <- d.delta(request, revision) }
	first := sub.IsWildcard() && request.GetResponseNonce() == ""
	return c.create(w, first, request.GetResponseNonce() == ""), nil
}

// Fetch implements cachev3.ConfigFetcher. There is no polling.
func (c *cache) Fetch(context.Context, *cachev3.Request) (cachev3.Response, error) {
	return nil, errors.New("fetching resources: want a stream")
}

// create opens a watch and answers it at once if its stream lacks something, or
// if it must have an answer. asked reports that its request is no answer to a
// response.
func (c *cache) create(w *watch, must, asked bool) (cancel func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.known = c.faults.known(w)
	d := c.lacks(w, nil)
	switch {
	case must || !d.empty() && (asked || d.news(w)):
		w.done = true
		c.send(w, d)
	case !d.empty():
		c.watches[w.kind][w] = struct{}{}
		c.push(w, d)
	default:
		c.watches[w.kind][w] = struct{}{}
	}
	c.tellReached()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		w.done = true
		if w.held != nil {
			w.held.Stop()
		}
		delete(c.watches[w.kind], w)
	}
}

// push sends an update, which is what --delay and --drop are for. The caller
// holds mu.
func (c *cache) push(w *watch, d diff) {
	if c.faults.drops(w.node) {
		c.count.dropped(w.kind)
		w.known = c.faults.forget(w, d)
		return
	}
	delete(c.watches[w.kind], w)
	if delay := c.faults.delay(); delay > 0 {
		c.count.delayed(w.kind)
		w.held = time.AfterFunc(delay, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			if !w.done {
				w.done = true
				c.send(w, d)
			}
		})
		return
	}
	w.done = true
	c.send(w, d)
}

// send hands a response to the stream, whose channel has room for it. The
// caller holds mu.
func (c *cache) send(w *watch, d diff) {
	c.faults.sent(w, d)
	d.known = w.known
	w.respond(d, c.revision)
}

// closed forgets what was kept of a stream.
func (c *cache) closed(node *corev3.Node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.faults.closed(node)
}

func kindOf(typeURL string) (convergence.Type, error) {
	for _, t := range served {
		if typeURLs[t] == typeURL {
			return t, nil
		}
	}
	return convergence.Type{}, fmt.Errorf("serving resources of type %q: want clusters, load assignments, listeners or route configurations", typeURL)
}
