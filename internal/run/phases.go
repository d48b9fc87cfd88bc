package run

import (
	"context"
	"errors"
	"time"

	"scaler.mesh/scaler/internal/run/changes"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/run/probes"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
)

func (r *run) baseline(ctx context.Context) error {
	return r.timeline.Measure(ctx, record.PhaseBaseline, time.Duration(r.spec.Phases.Baseline), phases.Wait(time.Duration(r.spec.Phases.Baseline)))
}

func (r *run) steady(ctx context.Context) error {
	return r.timeline.Measure(ctx, record.PhaseSteady, time.Duration(r.spec.Phases.Steady), phases.Wait(time.Duration(r.spec.Phases.Steady)))
}

func (r *run) probe(ctx context.Context) error {
	if r.driver.External != nil {
		return nil // the record states why
	}
	debounce := time.Duration(r.debounceSeconds() * float64(time.Second))
	return probes.Run(ctx, probes.Options{
		Changes: r.spec.Load.Probes, Mesh: r.mesh, Knobs: r.spec.Knobs(), Adapter: r.adapter, API: r.api, Label: r.runLabel(),
		Fleet: r.fleet, Timeline: r.timeline, Journal: r.journal, Metrics: r.metrics, Say: r.progress.say,
		Captured: r.spec.Captured != nil, Disturb: r.injector.DuringProbe, Debounce: debounce, Slowdown: proxy.Slowdown(r.spec.dilation()),
	})
}

// change makes changes at a rate, and replaces pods at the same time if that was asked
// for, too.
func (r *run) change(ctx context.Context) error {
	if r.spec.Load.Changes.PerSecond == 0 {
		return nil
	}
	defer r.lastLookAtWaits()
	o := changes.Options{
		Load: r.spec.Load.Changes, Length: time.Duration(r.spec.Phases.Changes), Timeout: time.Duration(r.spec.Phases.ConvergeTimeout),
		Mesh: r.mesh, Knobs: r.spec.Knobs(), Adapter: r.adapter, API: r.api, Label: r.runLabel(),
		Fleet: r.fleet, Timeline: r.timeline, Journal: r.journal, Say: r.progress.say, Slowdown: proxy.Slowdown(r.spec.dilation()),
	}
	if r.spec.Load.Churn == 0 {
		return changes.Run(ctx, o)
	}
	c := r.newChurn(time.Duration(r.spec.Phases.Changes))
	o.Meanwhile = c.replace
	err := changes.Run(ctx, o)
	return errors.Join(err, c.finish(err))
}

func (r *run) faultsInSteady(ctx context.Context) error {
	return r.injector.InSteady(ctx)
}
