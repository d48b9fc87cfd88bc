package fleet

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/sidecar"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

const (
	// askEvery is how often a real sidecar's Envoy is queried for whether it received
	// anything: its times have this resolution. Its whole configuration is read
	// only if it did, and not more often than dumpEvery, as that costs it some
	// milliseconds.
	askEvery  = 200 * time.Millisecond
	dumpEvery = time.Second
	// refusalTimeout is how long an Envoy may go on refusing something before the
	// run is given up: it would never converge.
	refusalTimeout = 20 * time.Second
)

// RealOptions are the real sidecars of a run.
type RealOptions struct {
	Count     int                       // how many pods have one
	InPods    *RealPods                 // where they are pods' own; nil = they are processes of this machine
	Place     controlplane.RealSidecars // where they run
	Certified bool                      // a proxy has its certificate from its start: nobody sends it one
	Sampler   *measure.Sampler          // takes their processes; needed
	Quiet     func() bool               // nothing may be asked of an Envoy now: it is being measured at rest
	Say       func(string)              // shows progress
	Warn      func(record.Warning)      // puts a doubt into the record
}

// realSidecars are the real sidecars of a fleet.
type realSidecars struct {
	// fixed after newRealSidecars
	RealOptions
	fleet     *Fleet
	quota     map[string]int // of each service's pods, how many are real
	latencies *Latencies     // of the starts of the rollout's real pods
	others    *Latencies     // of the starts of those that replace others, which are in no figure
	tracker   *convergence.Tracker
	scopes    map[string]*convergence.Scope // by service name

	// guarded by Pods.mu
	all []*realPod
}

// realPod is a pod's real sidecar.
type realPod struct {
	id, name, service string
	sidecar           *sidecar.Sidecar
	starts            *Latencies // where its start is recorded
	inPod             bool       // it is a pod's own, on a real node

	reporting sync.Mutex // held while what it holds is reported; taken before Pods.mu
	crashes   int        // so far. Guarded by reporting.

	life  atomic.Pointer[sidecar.Life] // of one in a pod, as its pod was last seen; nil = it does not run yet, or is a process
	lives atomic.Int64                 // of one in a pod: number of the life that is followed
	image string                       // of its container. Guarded by Pods.mu.

	mu   sync.Mutex
	held sidecar.Configuration // as last read, nothing since a crash
}

// envoyName and agentName are the components that a sidecar's processes are
// sampled as.
func (p *realPod) envoyName() string { return "envoy " + p.name }
func (p *realPod) agentName() string { return "agent " + p.name }

// newRealSidecars makes the real sidecars' part of a fleet, nil where there are none.
func newRealSidecars(f *Fleet) *realSidecars {
	if f.Real == nil {
		return nil
	}
	real := &realSidecars{
		RealOptions: *f.Real,
		fleet:       f,
		quota:       realQuota(f.Mesh.Services, f.Real.Count),
		latencies:   NewLatencies(),
		others:      NewLatencies(),
		tracker:     convergence.New(),
		scopes:      map[string]*convergence.Scope{},
	}
	real.tracker.OnUsable, real.tracker.OnComplete = observer{f}.usable, observer{f}.complete
	for i, s := range f.Mesh.Services {
		real.scopes[s.Name] = real.tracker.Scope(f.Adapter.Mesh.Wants(f.Mesh, f.Knobs, i))
	}
	return real
}

// realQuota spreads n real pods over the services as evenly as their pods allow,
// a pod for each service at a time, services that lie evenly among all first.
func realQuota(services []topology.Service, n int) map[string]int {
	quota := map[string]int{}
	var order []topology.Service
	if n < len(services) {
		for k := range n {
			order = append(order, services[k*len(services)/n])
		}
	} else {
		order = services
	}
	for n > 0 {
		before := n
		for _, s := range order {
			if n > 0 && quota[s.Name] < s.Pods {
				quota[s.Name]++
				n--
			}
		}
		if n == before {
			order = services // those chosen first have no more pods
		}
	}
	return quota
}

// takes reports whether a pod is to have a real sidecar: its service has fewer
// than it should have, not counting those that others are to replace. The caller
// holds Pods.mu.
func (f *realSidecars) takes(p *pod) bool {
	if f == nil || f.InPods != nil {
		return false // those in pods are marked
	}
	there := 0
	for other := range f.fleet.Pods.there {
		if other.real != nil && f.fleet.Pods.current(other) && other.service == p.service {
			there++
		}
	}
	return there < f.quota[p.service]
}

// start starts the real sidecar of a pod. The caller holds Pods.mu.
func (f *realSidecars) start(ctx context.Context, p *pod, object *corev1.Pod) {
	real := &realPod{id: p.id, name: p.name, service: p.service, starts: f.latencies, inPod: f.InPods != nil}
	if p.latencies != f.fleet.Latencies {
		real.starts = f.others
	}
	if background := f.fleet.Pods.background; p.latencies == background.Latencies {
		background.withoutStart++
	}
	p.real = real
	f.all = append(f.all, real)
	f.tracker.Add(p.id, f.scopes[object.Labels[kwok.ServiceLabel]])
	ctx, p.stop = context.WithCancel(ctx)
	delay := f.fleet.Delay.Of(f.fleet.Seed, p.order)
	if f.InPods != nil {
		f.fleet.reals.Go(func() { f.followPod(ctx, p, real, object) })
		return
	}
	f.fleet.reals.Go(func() {
		if delay > 0 && task.WaitUntil(ctx, time.Now().Add(delay)) != nil {
			return
		}
		application, err := f.startApplication(real)
		if err != nil {
			f.fleet.Fail(err)
			return
		}
		defer func() { _ = application.Stop(context.WithoutCancel(ctx)) }() // stopping the group reports it, too
		if err := f.run(ctx, p, real, object); err != nil && ctx.Err() == nil {
			f.fleet.Fail(fmt.Errorf("running the real sidecar of pod %s: %w", p.id, err))
		}
	})
}

// run runs the sidecar of a pod and follows what it holds until ctx ends.
func (f *realSidecars) run(ctx context.Context, p *pod, real *realPod, object *corev1.Pod) error {
	s, err := f.Place.ForPod(ctx, object, func(o *sidecar.Options) { f.observe(p, real, o) })
	if err != nil {
		return err
	}
	f.fleet.Pods.update(p.id, func(*pod) { real.sidecar = s })
	var following sync.WaitGroup
	life, end := context.WithCancel(ctx)
	following.Go(func() { f.follow(life, p, real) })
	err = s.Run(ctx)
	end()
	following.Wait()
	return err
}

// RealSidecar is one real sidecar of a run.
type RealSidecar struct {
	Pod, Service string // NAMESPACE/NAME of its pod; name of the service
	Node, Image  string // of one in a pod
	Envoy, Agent string // components that its processes are sampled as
	Crashes      int
}

// RealSidecars are all real sidecars that there ever were, in the order of their
// starts, and the latencies of the starts of the rollout's; nil if there are none.
func (f *Fleet) RealSidecars() ([]RealSidecar, *Latencies) {
	if f.real == nil {
		return nil, nil
	}
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	var all []RealSidecar
	for _, p := range f.real.all {
		each := RealSidecar{Pod: p.id, Service: p.service, Envoy: p.envoyName(), Agent: p.agentName()}
		if f.real.InPods != nil {
			each.Crashes, each.Image = max(0, int(p.lives.Load())-1), p.image
			if pod := f.Pods.byID[p.id]; pod != nil {
				each.Node = pod.node
			}
		} else if p.sidecar != nil {
			each.Crashes = len(p.sidecar.Crashes())
		}
		all = append(all, each)
	}
	return all, f.real.latencies
}
