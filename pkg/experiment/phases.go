package experiment

import (
	"context"
	"fmt"
	"time"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/rollout"
)

// quietTime is how long before the end of settle the control plane must have
// sent nothing for steady to deserve its name.
const quietTime = 2 * time.Second

type undo = func(context.Context) error

// window is one phase: from its first edge to its last the processes' counters
// were read.
func (r *rolloutRun) window(ctx context.Context, name record.PhaseName, length time.Duration, body func(context.Context) (record.EndedBy, error)) error {
	begin, err := r.sampler.Edge()
	if err != nil {
		return fmt.Errorf("reading the counters at the start of %s: %w", name, err)
	}
	r.mu.Lock()
	r.phase, r.since, r.length = name, begin, length
	r.record.Phases = append(r.record.Phases, record.Phase{Name: name, Start: begin.UTC()})
	r.mu.Unlock()
	r.metrics.Phase(string(name))
	if err := r.save(); err != nil {
		return err
	}
	endedBy, bodyErr := body(ctx)
	if ctx.Err() != nil {
		endedBy = record.EndedByInterrupt
	}
	end, err := r.sampler.Edge()
	if err != nil && bodyErr == nil {
		bodyErr = fmt.Errorf("reading the counters at the end of %s: %w", name, err)
	}
	r.mu.Lock()
	p := r.record.Phase(name)
	p.End, p.Seconds, p.EndedBy = new(end.UTC()), new(end.Sub(begin).Seconds()), endedBy
	r.windows = append(r.windows, window{name, begin, end})
	r.phase = ""
	r.mu.Unlock()
	r.metrics.Phase("")
	r.progress.say(fmt.Sprintf("%s: %.1f s", name, end.Sub(begin).Seconds()))
	if err := r.save(); err != nil && bodyErr == nil {
		bodyErr = err
	}
	return bodyErr
}

// window is a phase on the monotonic clock.
type window struct {
	name       record.PhaseName
	begin, end time.Time
}

// wait is the body of a phase of fixed length.
func wait(length time.Duration) func(context.Context) (record.EndedBy, error) {
	return func(ctx context.Context) (record.EndedBy, error) {
		timer := time.NewTimer(length)
		defer timer.Stop()
		select {
		case <-timer.C:
			return record.EndedByDuration, nil
		case <-ctx.Done():
			return record.EndedByInterrupt, context.Cause(ctx)
		}
	}
}

func (r *rolloutRun) baseline(ctx context.Context) (undo, error) {
	return nil, r.window(ctx, record.PhaseBaseline, r.spec.Baseline, wait(r.spec.Baseline))
}

func (r *rolloutRun) steady(ctx context.Context) (undo, error) {
	return nil, r.window(ctx, record.PhaseSteady, r.spec.Steady, wait(r.spec.Steady))
}

// complete is the last step: all phases were done.
func (r *rolloutRun) complete(context.Context) (undo, error) {
	r.completed = true
	return nil, nil
}

// settle lets the control plane come to rest, and warns when it has not.
func (r *rolloutRun) settle(ctx context.Context) (undo, error) {
	if err := r.window(ctx, record.PhaseSettle, r.spec.Settle, wait(r.spec.Settle)); err != nil {
		return nil, err
	}
	r.holdings = r.fleet.holdings()
	r.compareHoldings()
	if last := r.fleet.lastResponse(); time.Since(last) < quietTime {
		r.warn("controlPlane.steady", "the control plane still sent responses %.1f s before steady began", time.Since(last).Seconds())
	}
	return nil, nil
}

// rollout creates the mesh as planned and waits until it has converged.
func (r *rolloutRun) rollout(ctx context.Context) (undo, error) {
	burst, err := rollout.ParseBurst(r.spec.Burst)
	if err != nil {
		return nil, err
	}
	applier := &rollout.Applier{
		Client: r.client, Run: r.runLabel(), Mesh: r.mesh,
		NamespaceLabels: r.adapter.NamespaceLabels(),
		Objects:         r.adapter.Objects(r.mesh, r.spec.Knobs()), Dynamic: r.dynamic,
		Scaling: r.fleet.ownerScaled,
	}
	r.fleet.bursting.Store(true)
	defer r.fleet.bursting.Store(false)
	limited, cancel := context.WithTimeoutCause(ctx, r.spec.ConvergeTimeout, ErrUnconverged)
	defer cancel()
	return nil, r.window(ctx, record.PhaseRollout, 0, func(ctx context.Context) (record.EndedBy, error) {
		err := r.roll(limited, applier, rollout.Plan(r.mesh, burst))
		r.countPods()
		r.holdings = r.fleet.holdings()
		switch {
		case err == nil:
			return record.EndedByConverged, nil
		case ctx.Err() == nil && context.Cause(limited) == ErrUnconverged:
			return record.EndedByTimeout, ErrUnconverged
		default:
			return "", err
		}
	})
}

// roll follows the plan and returns when the mesh has converged.
func (r *rolloutRun) roll(ctx context.Context, applier *rollout.Applier, plan []rollout.Step) error {
	begin := time.Now()
	if err := applier.Surroundings(ctx); err != nil {
		return err
	}
	for _, step := range plan {
		if err := until(ctx, begin.Add(step.At)); err != nil {
			return err
		}
		if err := applier.Step(ctx, step); err != nil {
			return err
		}
	}
	return r.fleet.awaitConverged(ctx)
}

// until returns at the moment at.
func until(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
