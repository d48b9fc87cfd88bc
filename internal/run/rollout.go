package run

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/run/faults"
	"scaler.mesh/scaler/internal/run/journal"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/workload"
	"scaler.mesh/scaler/internal/ztunnel"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// rollout is the phase in which the mesh is created and comes to rest.
type rollout struct {
	plan      []workload.Step
	overlap   bool          // a step does not wait for the one before
	atOnce    bool          // that was asked for
	second    time.Duration // of the modelled machine
	debounce  float64       // seconds without a change after which the control plane pushes, of the modelled machine; 0 = not known, or pauses are the mesh's own
	applier   *workload.Applier
	injector  *faults.Injector
	fleet     *fleet.Fleet
	journal   *journal.Journal
	dataplane dataplane
	timeline  *phases.Timeline
	timeout   time.Duration
	observed  *observed // takes what the proxies received and hold at the end

	mu       sync.Mutex
	stepLate time.Duration // the greatest lateness of a burst
}

// debounceSeconds returns the seconds without a change after which the control plane pushes, of the modelled machine; 0 = not known.
func (r *run) debounceSeconds() float64 {
	if limits := r.journal.Run().Environment.ControlPlane.Limits; limits != nil {
		return limits.DebounceSeconds
	}
	return 0
}

// rollOut creates the mesh as planned and waits until it is at rest.
func (r *run) rollOut(ctx context.Context) error {
	debounce := r.debounceSeconds()
	unlisted := slices.ContainsFunc(r.mesh.Services, func(s topology.Service) bool { return len(s.Listings()) == 0 }) // whose pods change no EndpointSlice
	if unlisted {
		debounce = 0
	}
	phase := &rollout{
		plan: workload.Plan(r.mesh, r.spec.Load.Arrival), overlap: r.spec.Load.Arrival.Rate > 0, atOnce: r.spec.Load.Arrival == scenario.Arrival{}, second: r.spec.slowed(time.Second), debounce: debounce,
		applier: r.applier, injector: r.injector, fleet: r.fleet, journal: r.journal,
		dataplane: r.dataplane(), timeline: r.timeline, timeout: time.Duration(r.spec.Phases.ConvergeTimeout), observed: &r.observed,
	}
	defer r.lastLookAtWaits()
	return phase.run(ctx)
}

func (d *rollout) run(ctx context.Context) error {
	defer d.fleet.Rollout()()
	limited, cancel := context.WithTimeoutCause(ctx, d.timeout, phases.ErrUnconverged)
	defer cancel()
	err := d.timeline.Measure(ctx, record.PhaseRollout, 0, func(ctx context.Context) (record.EndedBy, error) {
		settled, err := d.create(limited)
		return d.timeline.EndedBy(ctx, limited, "pods.converged", settled, errors.Join(err, d.injector.End(settled, err)))
	})
	// Counting is no part of the phase.
	c := d.fleet.Count()
	d.observed.perSidecar, d.observed.perNode = d.dataplane.received(d.fleet.Workers.Counts(), c)
	d.journal.Update(func(run *record.Run) {
		pods := run.Pods
		pods.Created, pods.Ready, pods.Connected = &c.Created, &c.Ready, &c.Connected
		pods.Complete, pods.Converged = &c.Complete, &c.Converged
	})
	arrival := d.arrival()
	d.journal.Update(func(run *record.Run) { run.Arrival = arrival })
	holdings, heldErr := d.fleet.Holdings(ctx)
	d.observed.holdings = holdings
	return errors.Join(err, heldErr)
}

// received returns the responses and bytes so far for each proxy that was ever connected. In a mixed mesh the
// proxies of nodes have types of their own, which are counted apart from those of sidecars.
func (d dataplane) received(counts xdsprobe.Counts, c fleet.Counts) (sidecar, node *record.PerSidecar) {
	if !d.mixed() {
		return perProxy(counts, c.Simulated), nil
	}
	ofNodes := counts
	ofNodes.ByType = nil
	counts.ByType = slices.DeleteFunc(slices.Clone(counts.ByType), func(of xdsprobe.TypeCounts) bool {
		nodes := slices.ContainsFunc(ztunnel.Types(), func(t xdsprobe.ResourceType) bool { return t.Name == of.Type })
		if nodes {
			ofNodes.ByType = append(ofNodes.ByType, of)
		}
		return nodes
	})
	if node = perProxy(ofNodes, c.Nodes); d.adapter.Waypoints() != nil {
		return nil, node // waypoints request what sidecars do, and are counted with them
	}
	return perProxy(counts, c.Simulated-c.Nodes), node
}

// perProxy divides what was received by the number of proxies; nil if there are none.
func perProxy(received xdsprobe.Counts, proxies int) *record.PerSidecar {
	if proxies == 0 {
		return nil
	}
	responses, bytes := received.AllResponses()
	return &record.PerSidecar{Responses: new(float64(responses) / float64(proxies)), Bytes: new(float64(bytes) / float64(proxies))}
}
