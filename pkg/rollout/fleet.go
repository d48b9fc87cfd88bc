package rollout

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/observe"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/recorder"
	"scaler.mesh/scaler/pkg/stats"
	"scaler.mesh/scaler/pkg/topology"
	"scaler.mesh/scaler/pkg/workload"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// fleet gives every pod of the run that has its IP a simulated sidecar, and
// tells the pod when that sidecar is complete and certified: the Stages under
// kwok/ then make the pod Ready.
type fleet struct {
	// fixed after newFleet
	adapter   *controlplane.ControlPlane
	client    kubernetes.Interface
	variant   xdsprobe.Variant
	keys      *experiment.KeyPool
	probes    *xdsprobe.Store
	tracker   *convergence.Tracker
	scopes    map[string]*convergence.Scope // by service name
	latencies *latencies                    // of the rollout's pods
	renewals  *stats.Histogram              // certificates issued in place of one that grew old
	metrics   *recorder.Metrics
	event     func(record.Event)
	fail      func(error) // ends the run
	delay     workload.Delay
	lifetime  time.Duration // of certificates, as asked for; 0 = the agent's own
	seed      uint64        // of the delays
	real      *realFleet    // the real sidecars among them; nil = none
	ready     *reports      // sidecars to report to their pods
	changed   chan struct{} // something that convergence waits for has changed

	sidecars sync.WaitGroup

	bursting atomic.Bool // the rollout goes on: latencies are those of its pods

	mu         sync.Mutex
	wanted     int // pods of the mesh
	healthy    int // endpoints of the mesh when all is well
	pods       map[string]*pod
	owners     map[string][]batch               // by service: when pods were asked for
	seen       map[string]int                   // by service: pods seen
	listed     map[string]convergence.Endpoints // by service port, as the API server lists them
	held       bool                             // sidecars that are done are not reported for now
	subscriber chan endpointChange              // of changes of those; nil = nobody
	answered   time.Time                        // the last response of the control plane
	progressed time.Time                        // a sidecar became complete, or none waited to be, last
	csr        firstCertificates
	storm      *storm // that goes on; nil = none

	total     int         // pods ever seen
	arrivals  []time.Time // of the rollout's pods, in order
	impatient int         // sidecars that were reported without all that was expected of them
	away      int         // sidecars that lost their stream and are not back
	apart     *apart      // what goes on beside the run's own figures
	gone      []*pod      // pods that ended, in order; they are forgotten later
}

// firstCertificates are those of the rollout's pods: when the first was asked
// for, when the last was there, and how many came.
type firstCertificates struct {
	first, last time.Time
	issued      int
}

// newFleet makes the fleet of a run, without a sidecar yet.
func (r *rolloutRun) newFleet() *fleet {
	f := &fleet{
		adapter:   r.adapter,
		client:    r.Client,
		variant:   xdsprobe.Variant(r.spec.XDS),
		keys:      r.keys,
		probes:    xdsprobe.NewStore(),
		tracker:   convergence.New(),
		scopes:    map[string]*convergence.Scope{},
		latencies: r.latencies,
		renewals:  stats.NewHistogram(),
		metrics:   r.metrics,
		event:     r.event,
		fail:      r.fail,
		delay:     r.spec.StartDelay,
		lifetime:  r.spec.CertificateLifetime,
		seed:      r.spec.Topology.Seed,
		ready:     newReports(),
		apart:     newApart(),
		changed:   make(chan struct{}, 1),
		pods:      map[string]*pod{},
		owners:    map[string][]batch{},
		seen:      map[string]int{},
		listed:    map[string]convergence.Endpoints{},
	}
	f.tracker.OnComplete = f.complete
	if f.real = r.newRealFleet(); f.real != nil {
		f.real.tracker.OnComplete = f.complete
	}
	f.tracker.Delivered = f.delivered
	for i, s := range r.mesh.Services {
		f.scopes[s.Name] = f.tracker.Scope(r.adapter.Mesh.Wants(r.mesh, r.spec.Knobs(), i))
		f.wanted += s.Pods
		f.healthy += s.Pods * len(s.Ports)
	}
	return f
}

// batch says when a service was asked to have this many pods.
type batch struct {
	replicas int
	sent     time.Time
}

// pod is one pod of the run and its sidecar.
type pod struct {
	id, namespace, name, service string

	in     *latencies // that it belongs to: the rollout's, or others
	order  int        // among all pods seen
	number int        // of the apart that there was when it was first seen

	// guarded by fleet.mu
	stop      context.CancelFunc // of its sidecar; nil until it was started
	sidecar   *xdsprobe.Sidecar  // nil where it is a real one
	real      *realPod           // nil where it is a simulated one
	times     startup
	addr      netip.Addr
	ready     bool // as last seen
	reported  bool // handed to the reporters
	impatient bool // and that though it lacked something
	chosen    bool // to be replaced
	gone      bool
	ended     time.Time // when it was seen gone
	line      line      // to the control plane
}

// startup are the moments of one pod's start, zero until they come.
type startup struct {
	record.Startup

	served time.Time // the connection was up of the attempt that was answered first
}

// ownerScaled takes that a service is being given pods.
func (f *fleet) ownerScaled(s topology.Service, replicas int, sent time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.owners[s.Name] = append(f.owners[s.Name], batch{replicas, sent})
}

// owner is when the pod that is a service's n-th was asked for. The caller
// holds mu.
func (f *fleet) owner(service string, n int) time.Time {
	for _, b := range f.owners[service] {
		if n <= b.replicas {
			return b.sent
		}
	}
	return time.Time{}
}

// onPod takes a change of a pod as observed.
func (f *fleet) onPod(ctx context.Context, ev observe.PodEvent) {
	id := ev.Pod.Namespace + "/" + ev.Pod.Name
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.pods[id]
	if p == nil {
		if ev.Kind == observe.Deleted || ev.Pod.DeletionTimestamp != nil {
			return
		}
		p = f.newPod(id, ev)
	}
	switch {
	case ev.Kind == observe.Deleted || ev.Pod.DeletionTimestamp != nil:
		f.end(p, ev.Seen)
	case p.stop == nil && ev.Pod.Status.PodIP != "":
		p.times.IP = ev.Seen
		p.addr, _ = netip.ParseAddr(ev.Pod.Status.PodIP) // what is no address equals none
		if f.takes(p) {
			f.startReal(ctx, p, ev.Pod)
		} else {
			f.start(ctx, p, ev.Pod)
		}
	}
	p.ready = isReady(ev.Pod)
	if p.times.Ready.IsZero() && p.ready {
		p.times.Ready = ev.Seen
		if !p.impatient { // else it turned ready without what readiness stands for: lost
			f.observe(p.in.podReady, recorder.PodReady, ev.Seen.Sub(p.times.Seen))
		}
		f.event(record.PodStartup{Pod: p.id, Times: p.times.Startup})
	}
	f.notify()
}

// newPod takes a pod that was not seen before. It belongs to the rollout if the
// plan asked for it, else to what goes on apart. The caller holds mu.
func (f *fleet) newPod(id string, ev observe.PodEvent) *pod {
	p := &pod{
		id: id, namespace: ev.Pod.Namespace, name: ev.Pod.Name, service: ev.Pod.Labels[kwok.ServiceLabel],
		in: f.apart.latencies, order: f.total, number: f.apart.number,
	}
	f.total++
	p.times.Seen = ev.Seen
	f.pods[id] = p
	f.forget(ev.Seen)
	f.seen[p.service]++
	p.times.Owner = f.owner(p.service, f.seen[p.service])
	if p.times.Owner.IsZero() || !f.bursting.Load() {
		f.apart.pods++
		return p
	}
	p.in = f.latencies
	f.arrivals = append(f.arrivals, ev.Seen)
	f.observe(p.in.podAdmission, recorder.PodAdmission, max(0, ev.Seen.Sub(p.times.Owner)))
	return p
}

// observe adds one latency to the record and to scaler's own metrics.
func (f *fleet) observe(h *stats.Histogram, name recorder.Latency, d time.Duration) {
	f.metrics.Observe(name, d)
	h.Record(d)
}

// notify wakes awaitConverged.
func (f *fleet) notify() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// end stops the sidecar of a pod that is gone. The caller holds mu.
func (f *fleet) end(p *pod, at time.Time) {
	if p.gone {
		return
	}
	p.gone, p.ended = true, at
	f.gone = append(f.gone, p)
	f.forgo(p)
	if p.stop != nil {
		p.stop()
		for _, t := range f.trackers() {
			t.Remove(p.id)
		}
	}
}

// remembered is how long a pod that is gone can still be asked for.
const remembered = time.Minute

// forget drops the pods that have been gone for long: under churn they would
// outnumber the others. The caller holds mu.
func (f *fleet) forget(now time.Time) {
	for len(f.gone) > 0 && now.Sub(f.gone[0].ended) > remembered {
		p := f.gone[0]
		f.gone = f.gone[1:]
		if f.pods[p.id] == p {
			delete(f.pods, p.id)
		}
	}
}

// onEndpoints takes the endpoints of one service as the API server lists them
// now.
func (f *fleet) onEndpoints(ev observe.EndpointsEvent) {
	for port, listed := range ev.Ports {
		endpoints := convergence.Endpoints{}
		for _, e := range listed {
			health, ok := f.adapter.Mesh.EndpointHealth(e.Ready, e.Serving, e.Terminating)
			if ok {
				endpoints[e.Addr] = health
			}
		}
		name := ev.Service + ":" + port
		for _, t := range f.trackers() {
			t.SetEndpoints(name, endpoints, ev.Seen)
		}
		f.mu.Lock()
		f.tell(name, endpoints, ev.Seen)
		f.mu.Unlock()
	}
	f.notify()
}

// awaitConverged returns once every pod of the mesh is there and Ready, the API
// server lists every one as a healthy endpoint, and every sidecar holds and has
// acknowledged all that is expected, has its certificate, and is back if it lost
// its stream.
func (f *fleet) awaitConverged(ctx context.Context) error {
	for {
		if f.converged() {
			return nil
		}
		select {
		case <-f.changed:
		case <-f.tracker.Changed():
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (f *fleet) converged() bool {
	sidecars := 0
	for _, t := range f.trackers() {
		counts := t.Counts()
		if counts.Converged < counts.Sidecars {
			return false
		}
		sidecars += counts.Sidecars
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away > 0 {
		return false
	}
	ready, healthy := 0, 0
	for _, p := range f.pods {
		if !p.gone && p.ready && p.number >= f.apart.renewed {
			ready++
		}
	}
	for _, endpoints := range f.listed {
		for _, health := range endpoints {
			if health == convergence.Healthy {
				healthy++
			}
		}
	}
	return sidecars == f.wanted && ready == f.wanted && healthy == f.healthy
}

// lastResponse is when the control plane last sent anything.
func (f *fleet) lastResponse() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.answered
}

// count fills in how many pods and sidecars have come how far.
func (f *fleet) count(s *Status) {
	for _, t := range f.trackers() {
		counts := t.Counts()
		s.Complete += counts.Complete
		s.Converged += counts.Converged
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.pods {
		if p.gone {
			continue
		}
		s.Created++
		if !p.times.Ready.IsZero() {
			s.Ready++
		}
		if !p.times.Connected.IsZero() {
			s.Connected++
		}
	}
}
