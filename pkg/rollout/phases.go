package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/workload"
)

// quietTime is how long before the end of settle the control plane must have
// sent nothing for steady to deserve its name.
const quietTime = 2 * time.Second

// window is one phase: from its first edge to its last the processes' counters
// were read.
func (r *rolloutRun) window(ctx context.Context, name record.PhaseName, length time.Duration, body func(context.Context) (record.EndedBy, error)) error {
	r.mu.Lock()
	r.phase, r.since, r.length = name, time.Now(), length
	index := len(r.record.Phases)
	r.record.Phases = append(r.record.Phases, record.Phase{Name: name, Start: r.since.UTC()})
	r.mu.Unlock()
	r.metrics.Phase(string(name))
	if err := r.save(); err != nil {
		return err
	}
	// What was written to the disk before is no part of the phase.
	begin, err := r.sampler.Edge()
	if err != nil {
		return fmt.Errorf("reading the counters at the start of %s: %w", name, err)
	}
	r.mu.Lock()
	r.since, r.record.Phases[index].Start = begin, begin.UTC()
	r.mu.Unlock()
	endedBy, bodyErr := body(ctx)
	switch {
	case errors.Is(context.Cause(ctx), context.Canceled):
		endedBy = record.EndedByInterrupt
	case endedBy == "":
		endedBy = record.EndedByFailure
	}
	streams := r.fleet.streams()
	end, err := r.sampler.Edge()
	if err != nil && bodyErr == nil {
		bodyErr = fmt.Errorf("reading the counters at the end of %s: %w", name, err)
	}
	r.mu.Lock()
	p := &r.record.Phases[index]
	p.End, p.Seconds, p.EndedBy = new(end.UTC()), new(end.Sub(begin).Seconds()), endedBy
	r.windows = append(r.windows, window{name, begin, end, streams})
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
	streams    int // of simulated sidecars that were open and served at its end
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
			return "", context.Cause(ctx)
		}
	}
}

func (r *rolloutRun) baseline(ctx context.Context) (experiment.Undo, error) {
	return nil, r.window(ctx, record.PhaseBaseline, r.spec.Baseline, wait(r.spec.Baseline))
}

func (r *rolloutRun) steady(ctx context.Context) (experiment.Undo, error) {
	return nil, r.window(ctx, record.PhaseSteady, r.spec.Steady, wait(r.spec.Steady))
}

// complete is the last step: all phases were done.
func (r *rolloutRun) complete(context.Context) (experiment.Undo, error) {
	r.completed = true
	return nil, nil
}

// settle lets the control plane come to rest, and warns when it has not.
func (r *rolloutRun) settle(ctx context.Context) (experiment.Undo, error) {
	if err := r.window(ctx, record.PhaseSettle, r.spec.Settle, wait(r.spec.Settle)); err != nil {
		return nil, err
	}
	r.holdings = r.fleet.holdings()
	r.compareHoldings()
	if last := r.fleet.lastResponse(); time.Since(last) < quietTime {
		r.warn(record.Warning{
			About: "controlPlane.steady", Reason: record.ReasonNotQuiet, Values: map[string]float64{"agoSeconds": time.Since(last).Seconds()},
		})
	}
	return nil, nil
}

// rollout creates the mesh as planned and waits until it has converged.
func (r *rolloutRun) rollout(ctx context.Context) (experiment.Undo, error) {
	burst, err := workload.ParseBurst(r.spec.Burst)
	if err != nil {
		return nil, err
	}
	plan := workload.Plan(r.mesh, burst)
	r.applier = &workload.Applier{
		Client: r.Client, Run: r.runLabel(), Mesh: r.mesh,
		NamespaceLabels: r.adapter.Mesh.NamespaceLabels(),
		Objects:         r.adapter.Mesh.Objects(r.mesh, r.spec.Knobs()), Dynamic: r.Dynamic,
		Scaling: r.fleet.ownerScaled,
	}
	r.fleet.bursting.Store(true)
	defer r.fleet.bursting.Store(false)
	limited, cancel := context.WithTimeoutCause(ctx, r.spec.ConvergeTimeout, experiment.ErrUnconverged)
	defer cancel()
	err = r.window(ctx, record.PhaseRollout, 0, func(ctx context.Context) (record.EndedBy, error) {
		err := r.roll(limited, plan)
		return r.endedBy(ctx, limited, errors.Join(err, r.endFaults(err)))
	})
	// Counting is no part of the phase.
	r.countPods()
	r.record.Arrival = r.arrival(plan)
	r.holdings = r.fleet.holdings()
	return nil, err
}

// roll follows the plan and returns when the mesh has converged.
func (r *rolloutRun) roll(ctx context.Context, plan []workload.Step) error {
	if err := r.applier.Surroundings(ctx); err != nil {
		return err
	}
	err := r.rollWithFaults(ctx, func(ctx context.Context) error { return r.steps(ctx, r.applier, plan) })
	if err != nil {
		return err
	}
	return r.fleet.awaitConverged(ctx)
}

// awaitQuiet returns once the control plane has sent nothing for quietTime.
func (r *rolloutRun) awaitQuiet(ctx context.Context) error {
	for {
		quiet := r.fleet.lastResponse().Add(quietTime)
		if !time.Now().Before(quiet) {
			return nil
		}
		if err := experiment.WaitUntil(ctx, quiet); err != nil {
			return err
		}
	}
}
