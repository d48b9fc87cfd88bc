// Package fleet keeps the pods of a run and their proxies: it starts a proxy for
// every pod that has its IP address, reports to the pod when that proxy is complete
// and certified, and knows when the whole mesh has converged. What a run does with
// the mesh (phases, changes, faults) is left to others.
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
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// Options are what a fleet is made of. All fields but the last five are needed.
type Options struct {
	Driver    controlplane.Driver        // of the control plane; needed
	Adapter   *controlplane.ControlPlane // of the control plane; needed
	Client    kubernetes.Interface       // of the cluster that the pods are in; needed
	Mesh      topology.Mesh              // that is rolled out; zero = none is expected
	Knobs     controlplane.Knobs         // that the mesh has
	Variant   xdsprobe.Variant           // of xDS; zero = delta
	Latencies *Latencies                 // of the pods of the rollout
	Metrics   *measure.Metrics           // scaler's own; needed
	Event     func(record.Event)         // records what happened
	Fail      func(error)                // ends the run

	// StartWorkers starts the workers that run the simulated sidecars, in turn, and
	// report to this observer; nil = there are no simulated sidecars.
	StartWorkers func(proxy.Observer) ([]worker.Worker, error)

	Delay    scenario.Delay // between a pod's IP address and the start of its proxy; zero = none
	Seed     uint64         // of the delays
	Lifetime time.Duration  // of certificates, as requested; 0 = the agent's default
	// Slowdown is how many times as long sidecars, and what stands in for their agents,
	// wait for what is a matter of time.
	Slowdown proxy.Slowdown
	Real     *RealOptions // the real sidecars among them; nil = none
	// Machines are the endpoints of services, by "namespace/name:port", besides those that the API server
	// lists: always there, and none of the mesh's; nil = none.
	Machines map[string]convergence.Endpoints
	// Nodes is how many nodes there are whose pods are served by a proxy of the node, all or those that
	// the Adapter's Nodes serve; 0 = each pod has a proxy of its own.
	Nodes int
}

// Fleet is the pods of a run and their proxies. Its methods are safe for
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

	reals sync.WaitGroup // the real sidecars

	bursting atomic.Bool           // the rollout goes on: latencies are those of its pods
	wanted   atomic.Int64          // pods of the mesh
	healthy  atomic.Int64          // endpoints of the mesh when all is well
	storm    atomic.Pointer[Storm] // that goes on; nil = none
}

// New returns the fleet of a run, without a proxy yet. Its error is that of StartWorkers.
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
	o.Latencies.Starts.Sidecars = o.Nodes == 0 || f.nodes.mixed
	first := newRevision(f, o.Adapter)
	f.tracker = first.tracker
	f.Revisions.all.Store(&[]*revision{first})
	f.real = newRealSidecars(f, first)
	f.wanted.Store(int64(o.Mesh.Sidecars()))
	f.healthy.Store(int64(o.Mesh.Healthy()))
	f.Endpoints = newEndpoints(int(f.wanted.Load()))
	if o.StartWorkers == nil {
		return f, nil
	}
	var err error
	f.Workers, err = o.StartWorkers(observer{f})
	return f, err
}

// OnPod takes a change of a pod as observed. Proxies that it starts live until
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
		p.located(ev)
		p.member.start(ctx, ev.Pod)
	}
	p.member.seen(ev.Pod)
	p.passed(ev)
	p.ready = observe.Ready(ev.Pod)
	if p.ready && first(&p.times.Ready, ev.Seen) {
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

// leave takes that a pod is being deleted: it is none of the mesh any more, and nothing waits for
// it. Its proxy stays until the pod is gone. The caller holds Pods.mu.
func (f *Fleet) leave(p *pod) {
	if !p.gone {
		p.gone = true
		p.member.leave()
	}
}

// OnEndpoints takes the endpoints of one service as the API server lists them now or, where the
// control plane reads pods in place of them, as PodEndpoints derives them.
func (f *Fleet) OnEndpoints(ev observe.EndpointsEvent) {
	f.Revisions.mu.Lock()
	for port, listed := range ev.Ports {
		name := ev.Service + ":" + port
		l := listing{endpoints: listed, seen: ev.Seen}
		f.Revisions.listed[name] = l
		for i, r := range f.Revisions.list() {
			endpoints := r.endpoints(l)
			r.set(name, endpoints, ev.Seen)
			if i == 0 && name != controlplane.Serviceless && !f.nodes.isWaypoint(ev.Service) {
				f.Endpoints.set(name, endpoints, ev.Seen)
			}
		}
	}
	f.Revisions.mu.Unlock()
	f.notify()
}

// OnListed takes the endpoints of one service as the API server lists them now, where OnEndpoints
// takes those of pods: waypoints are sent these, and sidecars in a mesh that has both.
func (f *Fleet) OnListed(ev observe.EndpointsEvent) {
	f.Revisions.mu.Lock()
	for port, listed := range ev.Ports {
		name := controlplane.Listed(ev.Service + ":" + port)
		l := listing{listed, ev.Seen, true}
		f.Revisions.listed[name] = l
		for _, r := range f.Revisions.list() {
			r.set(name, r.endpoints(l), ev.Seen)
		}
	}
	f.Revisions.mu.Unlock()
	f.notify()
}

// withMachines are the endpoints of a service port with those that the API server does not list.
func (f *Fleet) withMachines(name string, listed convergence.Endpoints) convergence.Endpoints {
	if len(f.Machines[name]) == 0 {
		return listed
	}
	all := maps.Clone(listed)
	maps.Copy(all, f.Machines[name])
	return all
}

// IDs are the ids of the pods that are there, of the mesh and of its nodes' proxies.
func (f *Fleet) IDs() []string {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	var ids []string
	for p := range f.Pods.there {
		ids = append(ids, p.id)
	}
	return ids
}

// Rollout marks the time in which the plan is followed: pods that it creates, and
// changes of endpoints meanwhile, are the rollout's. The returned function ends it.
func (f *Fleet) Rollout() (end func()) {
	f.bursting.Store(true)
	return func() { f.bursting.Store(false) }
}

// Expect changes how many pods the mesh must have to be converged, each of so many ports.
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

// Tracker compares what the simulated sidecars of the first revision hold with what is
// expected. What is read from a real Envoy now and then is no time of a push, and is not in it.
func (f *Fleet) Tracker() *convergence.Tracker { return f.tracker }

// trackers are those of all sidecars, simulated and real.
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

// notify wakes AwaitConverged.
func (f *Fleet) notify() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}
