package fleet

import (
	"slices"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/sidecar"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
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
	Warn      func(record.Warning)      // adds a warning to the record
	// Patches are objects of the mesh that change what proxies are sent, as EnvoyFilters: an Envoy may refuse a resource for
	// one of them. They are named, or some of them, where it does.
	Patches []string
}

// realSidecars are the real sidecars of a fleet. Most have none.
type realSidecars struct {
	// fixed after newRealSidecars
	RealOptions
	fleet     *Fleet
	quota     map[string]int // of each service's pods, how many have processes of this machine
	latencies *Latencies     // of the starts of the rollout's real pods; nil if there are none
	others    *Latencies     // of the starts of those that replace others, which are in no figure
	tracker   *convergence.Tracker
	scopes    map[string]*convergence.Scope // by service name

	// guarded by Pods.mu
	all  []realMember    // that there ever were, in the order in which their pods were seen
	held map[string]bool // containers, with reasons, for which a pod that waits was reported
}

// realMember is a member with a real sidecar.
type realMember interface {
	member
	// envoy returns the part that all real sidecars have in common.
	envoy() *realPod
	// life returns the present life of the sidecar, or the last one; its number is 0 before the first.
	life() sidecar.Life
	// answered is called when Envoy answers for the first time in a life.
	answered(sidecar.Life)
	// describe returns the sidecar as Fleet.RealSidecars has it. The caller holds Pods.mu.
	describe() RealSidecar
}

// newRealSidecars makes the real sidecars of a fleet, and has a revision of the control plane serve them.
func newRealSidecars(f *Fleet, by *revision) *realSidecars {
	real := &realSidecars{fleet: f, held: map[string]bool{}}
	if f.Real == nil {
		return real
	}
	real.RealOptions = *f.Real
	real.latencies, real.others = NewLatencies(), NewLatencies()
	real.tracker, real.scopes = convergence.New(), map[string]*convergence.Scope{}
	real.tracker.OnComplete = func(id string, at time.Time) { real.find(id).complete(at) }
	if real.InPods == nil { // those in pods are marked
		real.quota = realQuota(f.Mesh.Services, f.Real.Count)
	}
	for i, s := range f.Mesh.Services {
		real.scopes[s.Name] = real.tracker.Scope(f.Adapter.Mesh.Wants(f.Mesh, f.Knobs, i))
	}
	by.trackers = append(by.trackers, real.tracker)
	return real
}

// realQuota spreads n real pods over the services as evenly as their pods allow, a pod for each service at a time,
// services that lie evenly among all first. Services whose pods have no sidecars, or are gateways, have none.
func realQuota(services []topology.Service, n int) map[string]int {
	services = slices.DeleteFunc(slices.Clone(services), func(s topology.Service) bool { return s.Outside || s.Gateway })
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

// takes reports whether a pod is to have a real sidecar that is processes of this machine: its service has fewer
// than it should have, not counting those that others are to replace. The caller holds Pods.mu.
func (f *realSidecars) takes(p *pod) bool {
	there := 0
	for _, r := range f.all {
		if other := r.envoy(); !other.gone && f.fleet.Pods.current(other.pod) && other.service == p.service {
			there++
		}
	}
	return there < f.quota[p.service]
}

// find returns the pod of this id, which has a real sidecar.
func (f *realSidecars) find(id string) *realPod {
	f.fleet.Pods.mu.Lock()
	defer f.fleet.Pods.mu.Unlock()
	i := slices.IndexFunc(f.all, func(r realMember) bool { return r.envoy().id == id })
	return f.all[i].envoy()
}

// RealSidecar describes a real sidecar of a run.
type RealSidecar struct {
	Pod, Service string // NAMESPACE/NAME of its pod; name of the service
	Node, Image  string // of one in a pod
	Envoy, Agent string // components that its processes are sampled as
	Crashes      int
}

// RealSidecars returns all real sidecars that there ever were, in the order in which their pods were seen, and the
// latencies of the starts of the rollout's; nil if there are none.
func (f *Fleet) RealSidecars() ([]RealSidecar, *Latencies) {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	var all []RealSidecar
	for _, r := range f.real.all {
		all = append(all, r.describe())
	}
	return all, f.real.latencies
}
