package fleet

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

// revision is one version of the control plane with the proxies that it serves: these are
// expected to hold what a control plane of this version sends.
type revision struct {
	// fixed after newRevision
	fleet    *Fleet
	tracker  *convergence.Tracker
	trackers []*convergence.Tracker        // that, and that of the real sidecars that it serves
	scopes   map[string]*convergence.Scope // by service name; "" = that of nodes' proxies; or by the name of a waypoint

	adapter  atomic.Pointer[controlplane.ControlPlane]
	received atomic.Pointer[Received] // nil = nobody wants to know
}

// Revisions holds the revisions of a fleet's control plane: one, unless others joined.
type Revisions struct {
	fleet *Fleet
	all   atomic.Pointer[[]*revision] // replaced as a whole

	mu     sync.Mutex // held while endpoints are taken: one that joins misses none
	listed map[string]listing
}

// listing holds the endpoints of a service port as the API server lists them.
type listing struct {
	endpoints []observe.Endpoint
	seen      time.Time
	slices    bool // they are of EndpointSlices although the revision's own are pods
}

// Received counts what the sidecars of one revision of the control plane received since a moment.
type Received struct {
	Responses atomic.Int64
	endpoints [3]*stats.Histogram // by convergence.Kind
}

// Endpoints returns the latencies of changes of endpoints, as Latencies.RolloutPush has them.
func (r *Received) Endpoints() map[record.ChangeKind]*stats.Histogram {
	all := map[record.ChangeKind]*stats.Histogram{}
	for i, h := range r.endpoints {
		all[changeKinds[i]] = h
	}
	return all
}

func newRevision(f *Fleet, adapter *controlplane.ControlPlane) *revision {
	tracker := convergence.New()
	if f.tracker != nil {
		tracker = convergence.NewBeside(f.tracker) // AwaitSettled receives the changes of all
	}
	r := &revision{fleet: f, tracker: tracker, trackers: []*convergence.Tracker{tracker}, scopes: map[string]*convergence.Scope{}}
	r.adapter.Store(adapter)
	r.tracker.OnComplete = observer{f}.complete
	r.tracker.Delivered, r.tracker.Missed = r.delivered, r.missed
	for name, endpoints := range f.Machines { // from the beginning: nothing may ever be listed with them
		if _, listed := f.Revisions.listed[name]; !listed {
			r.tracker.SetEndpoints(name, endpoints, time.Now())
			r.tracker.SetEndpoints(controlplane.Listed(name), endpoints, time.Now())
		}
	}
	f.nodes.scopes(r, adapter)
	for i, s := range f.Mesh.Services {
		if f.nodes.served[s.Name] {
			continue
		}
		wants := adapter.Mesh.Wants(f.Mesh, f.Knobs, i)
		for at := range wants {
			if f.nodes.mixed && wants[at].Service != "" {
				wants[at].Service = controlplane.Listed(wants[at].Service)
			}
		}
		r.scopes[s.Name] = r.tracker.Scope(wants)
	}
	return r
}

// Join adds another revision of the control plane: pods that are its own are served by it.
func (s *Revisions) Join(adapter *controlplane.ControlPlane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := newRevision(s.fleet, adapter)
	for name, l := range s.listed {
		r.set(name, r.endpoints(l), l.seen)
	}
	all := append(slices.Clone(s.list()), r)
	s.all.Store(&all)
}

// Replace puts another version in the place of the first revision, whose sidecars stay: pods
// that come, and endpoints, are as it says from now on.
func (s *Revisions) Replace(adapter *controlplane.ControlPlane) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.list()[0]
	first.adapter.Store(adapter)
	for name, l := range s.listed {
		first.set(name, first.endpoints(l), time.Now())
	}
}

// Receive counts anew what the sidecars of each revision receive, in the order in which the
// revisions joined. The last call counts.
func (s *Revisions) Receive() []*Received {
	var all []*Received
	for _, r := range s.list() {
		received := &Received{}
		for i := range received.endpoints {
			received.endpoints[i] = stats.NewHistogram()
		}
		r.received.Store(received)
		all = append(all, received)
	}
	return all
}

func (s *Revisions) list() []*revision { return *s.all.Load() }

// of returns the revision that serves a pod.
func (s *Revisions) of(pod *corev1.Pod) *revision {
	all := s.list()
	for _, r := range all {
		if own := r.adapter.Load().Revision; own != nil && own.Serves(pod) {
			return r
		}
	}
	return all[0]
}

// endpoints returns the endpoints that the revision sends for those that the API server lists.
func (r *revision) endpoints(l listing) convergence.Endpoints {
	endpoints, health := convergence.Endpoints{}, r.adapter.Load().EndpointHealth
	if l.slices {
		health = r.adapter.Load().Mesh.EndpointHealth
	}
	for _, e := range l.endpoints {
		if health, ok := health(e.Ready, e.Serving, e.Terminating); ok {
			endpoints[e.Addr] = health
		}
	}
	return endpoints
}

// set makes all trackers expect the endpoints of a service port, and its Machines.
func (r *revision) set(name string, listed convergence.Endpoints, at time.Time) {
	for _, t := range r.trackers {
		t.SetEndpoints(name, r.fleet.withMachines(name, listed), at)
	}
}

// delivered is called by the tracker when changes of endpoints reached a sidecar.
func (r *revision) delivered(kind convergence.Kind, n int, after time.Duration) {
	into := []*stats.Histogram{}
	if r.fleet.bursting.Load() {
		into = append(into, r.fleet.Latencies.RolloutPush[kind])
	}
	if received := r.received.Load(); received != nil {
		into = append(into, received.endpoints[kind])
	}
	for _, h := range into {
		for range n {
			h.Record(after)
		}
	}
}

// missed is called by the tracker when changes of endpoints reached a sidecar whose worker was lost.
func (r *revision) missed(kind convergence.Kind, n int) {
	if r.fleet.bursting.Load() {
		r.fleet.Latencies.RolloutPush[kind].Lose(int64(n))
	}
	if received := r.received.Load(); received != nil {
		received.endpoints[kind].Lose(int64(n))
	}
}
