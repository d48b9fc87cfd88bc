package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/record"
)

// faultRun is one fault that is being made, or was.
type faultRun struct {
	fault Fault
	index int // in the record
	begin time.Time
	end   time.Time // converged again, or no longer waited for; zero before
	apart *apart
	count exchange // at its begin
}

// exchange are counts of the sidecars' doings since the run's begin.
type exchange struct{ attempts, refusals int64 }

func (f *fleet) exchange() exchange {
	c := f.probes.Counters()
	return exchange{c.Attempts.Load(), c.Refusals.Load()}
}

// faultsInRollout makes the faults asked for in rollout, each when so many
// sidecars are complete as are due for it. They end when the rollout does.
func (r *rolloutRun) faultsInRollout(ctx context.Context) error {
	faults := faultsIn(r.spec.Faults, record.PhaseRollout)
	for i, fault := range faults {
		if err := r.fleet.awaitComplete(ctx, faultDue(i, len(faults), r.spec.Topology.Pods)); err != nil {
			return err
		}
		run, err := r.beginFault(fault)
		if err != nil {
			return err
		}
		if err := r.makeFault(ctx, run); err != nil {
			return err
		}
	}
	return nil
}

// faultsInSteady makes the faults asked for in steady state, each in a phase of
// its own that lasts until the mesh has converged again. One that it does not
// come back from is the last.
func (r *rolloutRun) faultsInSteady(ctx context.Context) (experiment.Undo, error) {
	faults := faultsIn(r.spec.Faults, record.PhaseSteady)
	for i, fault := range faults {
		if err := r.awaitQuiet(ctx); err != nil { // what went before is no part of it
			return nil, err
		}
		limited, cancel := context.WithTimeoutCause(ctx, r.spec.ConvergeTimeout, experiment.ErrUnconverged)
		var run *faultRun
		err := r.window(ctx, record.PhaseFault, 0, func(ctx context.Context) (_ record.EndedBy, err error) {
			if run, err = r.beginFault(fault); err != nil {
				return "", err
			}
			err = r.makeFault(limited, run)
			if err == nil {
				err = r.fleet.awaitConverged(limited)
			}
			return r.endedBy(ctx, limited, errors.Join(err, r.endFaults(err)))
		})
		cancel()
		if err == nil && fault.Kind == APIServerGone && i < len(faults)-1 {
			err = r.awaitWatches(ctx, fmt.Sprintf("faults.%d", run.index), run.begin)
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// healthWithFaults are the changes of endpoints' health with the faults asked for
// in probe, made one after the other while the middle one of the changes is
// followed. It returns when the mesh has converged again.
func (p *prober) healthWithFaults(ctx context.Context) error {
	faults := faultsIn(p.spec.Faults, record.PhaseProbe)
	if len(faults) == 0 {
		return p.probeHealth(ctx, func() {})
	}
	half := make(chan struct{})
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.probeHealth(groupCtx, func() { close(half) }) })
	group.Go(func() error {
		select {
		case <-half:
		case <-groupCtx.Done():
			return context.Cause(groupCtx)
		}
		for _, fault := range faults {
			run, err := p.beginFault(fault)
			if err != nil {
				return err
			}
			if err := p.makeFault(groupCtx, run); err != nil {
				return err
			}
		}
		return nil
	})
	err := group.Wait()
	if err == nil {
		err = p.fleet.awaitConverged(ctx)
	}
	return errors.Join(err, p.endFaults(err))
}

// endedBy is what ended a phase that waits for convergence: err, if anything
// but that, the limit's passing, or the run's own end.
func (r *rolloutRun) endedBy(ctx, limited context.Context, err error) (record.EndedBy, error) {
	switch {
	case err == nil:
		return record.EndedByConverged, nil
	case ctx.Err() == nil && context.Cause(limited) == experiment.ErrUnconverged:
		r.explain("pods.converged")
		return record.EndedByTimeout, experiment.ErrUnconverged
	default:
		return "", err
	}
}

// beginFault opens a fault's section in the record.
func (r *rolloutRun) beginFault(fault Fault) (*faultRun, error) {
	at, err := r.sampler.Edge()
	if err != nil {
		return nil, fmt.Errorf("reading the counters before %s: %w", fault.Name(), err)
	}
	run := &faultRun{fault: fault, begin: at, apart: r.fleet.setApart(newLatencies()), count: r.fleet.exchange()}
	r.progress.say("fault: " + fault.Name())
	r.mu.Lock()
	run.index = len(r.record.Faults)
	r.record.Faults = append(r.record.Faults, record.Fault{Name: fault.Name(), Phase: fault.Phase, At: at.UTC()})
	r.faults = append(r.faults, run)
	r.mu.Unlock()
	r.event(record.FaultBegun{Name: fault.Name()})
	return run, r.save()
}

// makeFault breaks what is to be broken and returns when it is there again.
func (r *rolloutRun) makeFault(ctx context.Context, run *faultRun) error {
	var err error
	switch run.fault.Kind {
	case KillControlPlane, RestartControlPlane:
		err = r.endControlPlane(ctx, run.fault.Kind == RestartControlPlane)
	case ResetStreams:
		err = r.resetStreams(run.fault.Share)
	case APIServerGone:
		err = r.takeAPIServer(ctx, run.fault.Time)
	case PauseScaler:
		err = r.group.PauseSelf(ctx, run.fault.Time)
	case RollingRestart:
		r.fleet.renew()
		err = r.applier.Restart(ctx, run.begin)
	default:
		err = fmt.Errorf("no such fault")
	}
	if err != nil {
		return fmt.Errorf("making the fault %s: %w", run.fault.Name(), err)
	}
	lasted := time.Since(run.begin)
	r.mu.Lock()
	r.record.Faults[run.index].LastedSeconds = new(lasted.Seconds())
	r.mu.Unlock()
	r.event(record.FaultOver{Name: run.fault.Name(), Seconds: lasted.Seconds()})
	return nil
}

// endFaults closes the sections of all faults that go on: the mesh has converged
// again, or err says why that is no longer waited for.
func (r *rolloutRun) endFaults(err error) error {
	converged := err == nil
	why := record.Warning{Reason: record.ReasonEndedUnconverged}
	if errors.Is(err, experiment.ErrUnconverged) {
		why.Reason, why.Values = record.ReasonNotConvergedAgain, map[string]float64{"limitSeconds": r.spec.ConvergeTimeout.Seconds()}
	}
	r.mu.Lock()
	faults := r.faults
	r.mu.Unlock()
	if len(faults) == 0 || !faults[len(faults)-1].end.IsZero() {
		return nil
	}
	end, err := r.sampler.Edge()
	if err != nil {
		return fmt.Errorf("reading the counters after a fault: %w", err)
	}
	count := r.fleet.exchange()
	for _, run := range faults {
		if !run.end.IsZero() {
			continue
		}
		run.end = end
		replaced, returned := r.fleet.closeApart(run.apart)
		r.mu.Lock()
		fault := &r.record.Faults[run.index]
		if converged {
			fault.Seconds = new(end.Sub(run.begin).Seconds())
		}
		fault.Replaced, fault.Reconnected = &replaced, &returned
		fault.Attempts, fault.Refusals = new(count.attempts-run.count.attempts), new(count.refusals-run.count.refusals)
		r.mu.Unlock()
		if converged {
			r.progress.say(fmt.Sprintf("converged again %.1f s after %s", end.Sub(run.begin).Seconds(), run.fault.Name()))
		} else {
			why.About, why.Component, why.Phase = fmt.Sprintf("faults.%d", run.index), run.fault.Name(), fault.Phase
			r.warn(why)
		}
	}
	return nil
}

// measureFaults computes what the faults cost, for the record.
func (r *rolloutRun) measureFaults(ctx context.Context) error {
	for _, run := range r.faults {
		if run.end.IsZero() {
			continue // the run ended in the middle of it
		}
		fault := &r.record.Faults[run.index]
		usage, err := r.recorder.Figures(ctx, r.sampler, r.controlPlaneName(), run.begin, run.end)
		if err != nil {
			return fmt.Errorf("reading the figures of %s: %w", run.fault.Name(), err)
		}
		fault.ControlPlane = experiment.UsageOf(usage)
		r.doubtUsage(fmt.Sprintf("faults.%d.controlPlane", run.index), fault.Phase, usage)
		if err := run.apart.latencies.save(r.writer, fmt.Sprintf("faults.%d.", run.index), &fault.Latencies); err != nil {
			return err
		}
	}
	return nil
}

// rollWithFaults follows the plan while the faults of rollout are made, and
// returns when both are done.
func (r *rolloutRun) rollWithFaults(ctx context.Context, steps func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return steps(ctx) })
	group.Go(func() error { return r.faultsInRollout(ctx) })
	return group.Wait()
}
