package run

import (
	"context"

	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/pkg/record"
)

// startWatching starts what runs in the background from baseline to the end
// of the run: watching pods and endpoints, and supervising the control plane and the
// recorder. Taking it back ends every sidecar.
func (r *run) startWatching(ctx context.Context) (steps.Undo, error) {
	b := newBackground(ctx, r.fail)
	r.watching = b
	b.run("reporting sidecars to their pods", r.fleet.Readiness.Run)
	b.run("watching pods and endpoints", func(ctx context.Context) error {
		return observe.Run(ctx, observe.Options{
			Client:      r.api.Client,
			Run:         r.runLabel(),
			OnPod:       r.dataplane().onPod(ctx, r.fleet),
			OnEndpoints: r.dataplane().onEndpoints(r.fleet),
			OnLost:      func(err error) { r.journal.Event(record.WatchLost{Error: err.Error()}) },
		})
	})
	b.run("creating pods", r.newRefusals().Run)
	switch {
	case r.adapter.Program != nil:
		b.run("supervising the control plane", r.supervisor.Run)
	case r.replicas != nil:
		r.replicas.Begin(r.recorder, func(name string, run func(context.Context) error) { b.run("supervising "+name, run) })
	}
	for name, helper := range r.helpers {
		b.run("supervising "+name, helper.Run)
	}
	b.run("supervising the recorder", func(ctx context.Context) error { return recorderEnded(ctx, r.recorder) })
	if e := r.spec.Existing; e != nil && len(e.AbortIf) > 0 {
		cores := func() (float64, bool) {
			cores, _, ok := r.sampler.Live(r.controlPlaneName())
			return cores, ok
		}
		b.run("watching the cluster", e.guard(r.api.Client, cores).Run)
	}
	b.run("counting", r.count)
	b.run("comparing clocks", r.watchClocks)
	return func(ctx context.Context) error {
		b.stop()
		return r.fleet.Close(ctx)
	}, nil
}
