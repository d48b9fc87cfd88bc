// Package fleet keeps the pods of a run and their proxies: it starts a proxy for
// every pod that has its IP address, annotates the pod when that proxy is initialized
// and certified, and detects that the whole mesh has converged. Each kind of pod is
// a type, see member. What a run does with the mesh (phases, changes, faults) is left
// to others.
package fleet

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/kubernetes"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// Options configures a fleet. Fields whose comment states no zero value are needed.
type Options struct {
	Driver    controlplane.Driver        // of the control plane
	Adapter   *controlplane.ControlPlane // of the control plane
	Client    kubernetes.Interface       // of the cluster that the pods are in
	Mesh      topology.Mesh              // that is rolled out; zero = none is expected
	Knobs     scenario.Settings          // that the mesh has
	Variant   xdsprobe.Variant           // of xDS; zero = delta
	Latencies *Latencies                 // of the pods of the rollout
	Metrics   *measure.Metrics           // scaler's own
	Event     func(record.Event)         // records what happened
	Fail      func(error)                // ends the run

	// StartWorkers starts the workers that run the simulated sidecars, in turn, and
	// report to this observer; nil = there are no simulated sidecars.
	StartWorkers func(proxy.Observer) ([]worker.Worker, error)

	Delay scenario.Delay // between a pod's IP address and the start of its proxy; zero = none
	// Anew is the delay, in place of Delay, of proxies that take the place of others where nodes have proxies; zero = none.
	Anew     scenario.Delay
	Seed     uint64        // of the delays
	Lifetime time.Duration // of certificates, as requested; 0 = the agent's default
	// Slowdown is the factor by which timeouts and intervals of sidecars, and of the simulated agents, are
	// longer; 0 = 1.
	Slowdown proxy.Slowdown
	Real     *RealOptions // the real sidecars among them; nil = none
	// Machines are endpoints, by "namespace/name:port", that services have in addition to those that the API
	// server lists. They do not change and are none of the mesh's; nil = none.
	Machines map[string]convergence.Endpoints
	// Rest reports whether the control plane is at rest; nil = nothing does, and the mesh is awaited until it has converged.
	Rest *Rest
	// Nodes is the number of nodes whose proxy serves pods: all of them, or those of the namespaces that the
	// Adapter's Nodes serve; 0 = each pod has a proxy of its own.
	Nodes int
}

// Fleet holds the pods of a run and their proxies. Its methods are safe for
// concurrent use.
type Fleet struct {
	// fixed after New
	Options
	Pods      *Pods
	Endpoints *Endpoints
	Readiness *Readiness
	Renewals  *stats.Histogram     // latencies of certificates that replaced one that grew old
	tracker   *convergence.Tracker // of the first revision
	Revisions Revisions
	real      *realSidecars
	nodes     *nodes
	Workers   Workers
	changed   chan struct{} // holds a notice when something changed that convergence depends on
	listed    bool          // Endpoints are of OnListed, and not of OnEndpoints

	reals sync.WaitGroup // the real sidecars

	bursting atomic.Bool           // the rollout is under way: latencies are those of its pods
	prompt   atomic.Bool           // sidecars start without Delay
	wanted   atomic.Int64          // pods of the mesh
	healthy  atomic.Int64          // endpoints of the mesh when all is well
	storm    atomic.Pointer[Storm] // the present one; nil = none
	events   atomic.Int64          // changes of pods, endpoints and sidecars that were seen

	known map[convergence.Key]bool // by which the mesh differed when it was last at rest; nil = by any. Guarded by Pods.mu.
}

// New returns the fleet of a run, without a proxy yet. It fails if StartWorkers does.
func New(o Options) (*Fleet, error) {
	o.Latencies.Starts = Starts{Sidecars: true, Certificates: o.Driver.Proxy.Certificates != nil, Tokens: o.Driver.Proxy.Tokens}
	f := &Fleet{
		Options:  o,
		Pods:     newPods(o.Latencies),
		Renewals: stats.NewHistogram(),
		changed:  make(chan struct{}, 1),
	}
	f.Readiness = newReadiness(f)
	f.Pods.returned = f.notify
	f.Revisions.fleet, f.Revisions.listed = f, map[string]listing{}
	f.nodes = newNodes(f, o)
	f.listed = o.Nodes > 0 && o.Mesh.Endpoints > 0 // pods outside of a captured mesh are endpoints, too
	o.Latencies.Starts.Sidecars = o.Nodes == 0 || f.nodes.mixed
	first := newRevision(f, o.Adapter)
	f.tracker = first.tracker
	f.Revisions.all.Store(&[]*revision{first})
	f.real = newRealSidecars(f, first)
	f.wanted.Store(int64(o.Mesh.Sidecars()))
	f.healthy.Store(int64(o.Mesh.Healthy()))
	f.Endpoints = newEndpoints(int(f.wanted.Load()), o.Mesh.Uncounted)
	if o.StartWorkers == nil {
		return f, nil
	}
	var err error
	f.Workers, err = o.StartWorkers(observer{f})
	return f, err
}

// OnPod takes an observed change of a pod, and starts or stops its proxy. Proxies run until
// their pod is gone or ctx ends.
func (f *Fleet) OnPod(ctx context.Context, ev observe.PodEvent) {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	deleted := ev.Kind == observe.Deleted || ev.Pod.DeletionTimestamp != nil
	p := f.Pods.byID[ev.Pod.Namespace+"/"+ev.Pod.Name]
	if p == nil {
		if deleted {
			return
		}
		p = f.add(ev)
	}
	switch {
	case deleted && ev.Kind != observe.Deleted && kwok.HasGracePeriod(ev.Pod):
		f.leave(p)
	case deleted:
		f.end(p, ev.Seen)
	case p.stop == nil && ev.Pod.Status.PodIP != "":
		p.setAddress(ev)
		p.member.start(ctx, ev.Pod)
	}
	p.member.seen(ev.Pod)
	p.setMoments(ev)
	p.ready = observe.Ready(ev.Pod)
	if p.ready && setOnce(&p.times.Ready, ev.Seen) {
		if p.rollout {
			f.Pods.readies = append(f.Pods.readies, ev.Seen)
		}
		p.member.becameReady()
		f.Event(record.PodStartup{Pod: p.id, Times: p.times.Startup})
	}
	f.notify()
}

// end stops the proxy of a pod that is gone. The caller holds Pods.mu.
func (f *Fleet) end(p *pod, at time.Time) {
	f.leave(p)
	if f.Pods.end(p, at) && p.stop != nil {
		p.stop()
	}
}

// leave records that a pod is being deleted: it does not belong to the mesh any more, and nothing waits for
// it. Its proxy runs until the pod is gone. The caller holds Pods.mu.
func (f *Fleet) leave(p *pod) {
	if !p.gone {
		p.gone = true
		p.member.leave()
	}
}

// OnEndpoints takes the present endpoints of a service: as the API server lists them or, where the
// control plane reads pods instead, as PodEndpoints derives them.
func (f *Fleet) OnEndpoints(ev observe.EndpointsEvent) { f.takeEndpoints(ev, false) }

// OnListed takes the present endpoints of a service as the API server lists them, where OnEndpoints
// takes those of pods. Waypoints receive these, and so do the sidecars of a mesh that has both.
func (f *Fleet) OnListed(ev observe.EndpointsEvent) { f.takeEndpoints(ev, true) }

// takeEndpoints takes endpoints as the API server lists them (OnListed) or as pods have them (OnEndpoints). They are kept under different names.
func (f *Fleet) takeEndpoints(ev observe.EndpointsEvent, listed bool) {
	if f.bursting.Load() {
		f.Endpoints.change(ev.Seen)
	}
	f.Revisions.mu.Lock()
	for port, present := range ev.Ports {
		service := ev.Service + ":" + port
		name := service
		if listed {
			name = controlplane.Listed(service)
		}
		l := listing{present, ev.Seen, listed}
		f.Revisions.listed[name] = l
		for i, r := range f.Revisions.list() {
			endpoints := r.endpoints(l)
			r.set(name, endpoints, ev.Seen)
			if i == 0 && listed == f.listed && service != controlplane.Serviceless && !f.nodes.isWaypoint(ev.Service) {
				f.Endpoints.set(service, endpoints, ev.Seen)
			}
		}
	}
	f.Revisions.mu.Unlock()
	f.notify()
}

// withMachines adds the Machines of a service port to the endpoints that the API server lists.
func (f *Fleet) withMachines(name string, listed convergence.Endpoints) convergence.Endpoints {
	machines := f.Machines[controlplane.Unlisted(name)]
	if len(machines) == 0 {
		return listed
	}
	all := maps.Clone(listed)
	maps.Copy(all, machines)
	return all
}

// IDs returns the ids of all pods that are not gone, those of nodes' proxies and waypoints among them.
func (f *Fleet) IDs() []string {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	var ids []string
	for p := range f.Pods.there {
		ids = append(ids, p.id)
	}
	return ids
}

// Rollout marks the rollout: until end is called, latencies of the pods that the plan creates, and
// changes of endpoints, belong to the rollout.
func (f *Fleet) Rollout() (end func()) {
	f.bursting.Store(true)
	return func() { f.bursting.Store(false) }
}

// Promptly makes sidecars start as soon as their pods have addresses, without Delay, until end is called.
func (f *Fleet) Promptly() (end func()) {
	f.prompt.Store(true)
	return func() { f.prompt.Store(false) }
}

// delay returns how long the n-th pod's proxy, which may take the place of another, waits before it starts.
func (f *Fleet) delay(n int, anew bool) time.Duration {
	switch {
	case f.prompt.Load():
		return 0
	case anew:
		return f.Anew.Of(f.Seed, n)
	}
	return f.Delay.Of(f.Seed, n)
}

// Expect raises the number of pods that the converged mesh has. Each has so many ports.
func (f *Fleet) Expect(more, ports int) {
	f.wanted.Add(int64(more))
	f.healthy.Add(int64(more * ports))
}

// Close ends every proxy, and returns when all have ended and everything that they
// reported was taken. The context of OnPod must have ended.
func (f *Fleet) Close(ctx context.Context) error {
	f.reals.Wait()
	return f.Workers.close(ctx)
}

// Tracker returns the tracker of the simulated proxies of the first revision. Real sidecars have
// another one: the times at which an Envoy is read are no times of a push.
func (f *Fleet) Tracker() *convergence.Tracker { return f.tracker }

// trackers returns the trackers of all proxies, simulated and real.
func (f *Fleet) trackers() []*convergence.Tracker {
	var all []*convergence.Tracker
	for _, r := range f.Revisions.list() {
		all = append(all, r.trackers...)
	}
	return all
}

// observe adds one latency to the record and to scaler's own metrics. A negative one,
// which began where it was seen late, counts as 0; the record counts these as clamped.
func (f *Fleet) observe(h *stats.Histogram, name measure.Latency, d time.Duration) {
	f.Metrics.Observe(name, max(0, d))
	h.Record(d)
}

// notify wakes up AwaitSettled.
func (f *Fleet) notify() {
	f.events.Add(1)
	task.Notify(f.changed)
}
