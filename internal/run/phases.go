package run

import (
	"context"
	"errors"
	"time"

	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/run/changes"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/run/probes"
	"scaler.mesh/scaler/internal/workload"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
)

// course are the phases of a run, in the order of execute.
type course struct{ *run }

func (r course) baseline(ctx context.Context) (experiment.Undo, error) {
	return nil, r.timeline.Measure(ctx, record.PhaseBaseline, r.spec.Baseline, phases.Wait(r.spec.Baseline))
}

func (r course) steady(ctx context.Context) (experiment.Undo, error) {
	return nil, r.timeline.Measure(ctx, record.PhaseSteady, r.spec.Steady, phases.Wait(r.spec.Steady))
}

// rollOut creates the mesh as planned and waits until it has converged.
func (r course) rollOut(ctx context.Context) (experiment.Undo, error) {
	burst, err := r.spec.burst()
	if err != nil {
		return nil, err
	}
	d := &deployment{
		plan: workload.Plan(r.mesh, burst), overlap: r.spec.Arrival > 0, second: r.spec.slowed(time.Second),
		applier: r.applier, injector: r.injector, fleet: r.fleet, journal: r.journal,
	}
	defer r.fleet.Rollout()()
	limited, cancel := context.WithTimeoutCause(ctx, r.spec.ConvergeTimeout, experiment.ErrUnconverged)
	defer cancel()
	err = r.timeline.Measure(ctx, record.PhaseRollout, 0, func(ctx context.Context) (record.EndedBy, error) {
		err := d.create(limited)
		return r.timeline.EndedBy(ctx, limited, "pods.converged", errors.Join(err, r.injector.End(err)))
	})
	// Counting is no part of the phase.
	c := r.fleet.Count()
	r.observed.perSidecar, r.observed.perNode = received(r.run, c)
	r.journal.Update(func(run *record.Run) {
		pods := run.Pods
		pods.Created, pods.Ready, pods.Connected = &c.Created, &c.Ready, &c.Connected
		pods.Complete, pods.Converged = &c.Complete, &c.Converged
	})
	arrival := d.arrival()
	r.journal.Update(func(run *record.Run) { run.Arrival = arrival })
	holdings, heldErr := r.fleet.Holdings(ctx)
	r.observed.holdings = holdings
	return nil, errors.Join(err, heldErr)
}

// settle lets the control plane come to rest, and warns when it has not.
func (r course) settle(ctx context.Context) (experiment.Undo, error) {
	if err := r.timeline.Measure(ctx, record.PhaseSettle, r.spec.Settle, phases.Wait(r.spec.Settle)); err != nil {
		return nil, err
	}
	var err error
	if r.observed.holdings, err = r.fleet.Holdings(ctx); err != nil {
		return nil, err
	}
	if expected, optional := expectedHoldings(r.run); expected != nil {
		warnings, err := r.fleet.CompareHoldings(ctx, expected, optional)
		if err != nil {
			return nil, err
		}
		for _, w := range warnings {
			r.journal.Warn(w)
		}
	}
	if ago := time.Since(r.fleet.Pods.LastResponse()); ago < r.fleet.QuietTime() {
		r.journal.Warn(record.Warning{
			About: "controlPlane.steady", Reason: record.ReasonNotQuiet, Values: map[string]float64{"agoSeconds": ago.Seconds()},
		})
	}
	return nil, nil
}

// expectedHoldings are the names of all resources that the sidecars of each service
// hold when converged; nil if the adapter cannot say. "" stands for the proxies of nodes, the name of a waypoint for it.
// optional are those that sidecars may hold.
func expectedHoldings(r *run) (expected map[string]map[convergence.Key]bool, optional map[convergence.Key]bool) {
	expected, optional = map[string]map[convergence.Key]bool{}, map[convergence.Key]bool{}
	add := func(service string, all []convergence.Key) {
		if all == nil {
			expected = nil
		}
		if expected == nil {
			return
		}
		expected[service] = map[convergence.Key]bool{}
		for _, key := range all {
			expected[service][key] = true
		}
	}
	var discovered []convergence.Key // by sidecars, where others have the proxy of their node
	if r.adapter.Nodes != nil {
		pods := r.fleet.IDs()
		add("", r.adapter.Nodes.Holds(r.mesh, r.spec.Knobs(), pods))
		for _, w := range waypoints(r) {
			add(w.Name, r.adapter.Waypoints.Holds(r.mesh, w, pods))
		}
		keys, all := r.adapter.Nodes.Discovered(pods)
		if all {
			discovered = keys
		}
		for _, key := range keys {
			optional[key] = !all
		}
	}
	for i, s := range r.mesh.Services {
		if r.adapter.ServedByNode(r.mesh, s.Namespace) {
			continue
		}
		holds := r.adapter.Mesh.Holds(r.mesh, r.spec.Knobs(), i)
		if holds != nil {
			holds = append(holds, discovered...)
		}
		add(s.Name, holds)
	}
	return expected, optional
}

func (r course) probe(ctx context.Context) (experiment.Undo, error) {
	if r.driver.External {
		return nil, nil // the record states why
	}
	return nil, probes.Run(ctx, probes.Options{
		Changes: r.spec.Probes, Mesh: r.mesh, Knobs: r.spec.Knobs(), Adapter: r.adapter, API: r.api, Label: r.runLabel(),
		Fleet: r.fleet, Timeline: r.timeline, Journal: r.journal, Metrics: r.metrics, Say: r.progress.say,
		Disturb: r.injector.DuringProbe, Slowdown: proxy.Slowdown(r.spec.dilation()),
	})
}

// change makes changes at a rate, and replaces pods at the same time if that was asked
// for, too.
func (r course) change(ctx context.Context) (experiment.Undo, error) {
	if r.spec.Change.PerSecond == 0 {
		return nil, nil
	}
	o := changes.Options{
		Load: r.spec.Change, Length: r.spec.ChangeDuration, Timeout: r.spec.ConvergeTimeout,
		Mesh: r.mesh, Knobs: r.spec.Knobs(), Adapter: r.adapter, API: r.api, Label: r.runLabel(),
		Fleet: r.fleet, Timeline: r.timeline, Journal: r.journal, Say: r.progress.say, Slowdown: proxy.Slowdown(r.spec.dilation()),
	}
	if r.spec.Churn == 0 {
		return nil, changes.Run(ctx, o)
	}
	c := r.newChurn(r.spec.ChangeDuration)
	o.Meanwhile = c.replace
	err := changes.Run(ctx, o)
	return nil, errors.Join(err, c.finish(err))
}

func (r course) faultsInSteady(ctx context.Context) (experiment.Undo, error) {
	return nil, r.injector.InSteady(ctx)
}
