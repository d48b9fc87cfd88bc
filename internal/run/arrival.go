package run

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/internal/workload"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

const (
	// lateSteps is the share of the interval between two bursts above which a burst
	// that came late makes the arrival uncertain.
	lateSteps = 0.1
	// slowArrival is the share of the offered rate below which the achieved one is a
	// warning, where pods come one by one: there the next one does not wait for one that
	// is late.
	slowArrival = 0.95
	// overlapping bounds the pods that are being created at the same time where they arrive one by one.
	overlapping = 64
)

// checkArrival checks that the last pod is due in time.
func (s Spec) checkArrival(controlplane.Driver) error {
	size, interval := s.Load.Arrival.Bursts()
	if size == 0 {
		return nil
	}
	limit := time.Duration(s.Phases.ConvergeTimeout)
	if last := time.Duration((s.Pods()-1)/size) * interval; last >= limit {
		return scenario.Refuse("load.arrival", s.Load.Arrival, "one that ends before phases.convergeTimeout %s; the last of %d pods are due after %s",
			s.Phases.ConvergeTimeout, s.Pods(), last)
	}
	return nil
}

// create follows the plan, with the faults of that phase, and returns when the mesh
// is at rest, and how.
func (d *rollout) create(ctx context.Context) (record.EndedBy, error) {
	if err := d.applier.Surroundings(ctx); err != nil {
		return "", err
	}
	if err := d.injector.DuringRollout(ctx, d.follow); err != nil {
		return "", err
	}
	return d.fleet.AwaitSettled(ctx)
}

// follow follows the plan: each step when it is due and, unless steps overlap, the one
// before is done.
func (d *rollout) follow(ctx context.Context) error {
	requests, during := errgroup.WithContext(ctx)
	requests.SetLimit(1)
	if d.overlap {
		requests.SetLimit(overlapping)
	}
	begin := time.Now()
	for i, step := range d.plan {
		due := begin.Add(step.At)
		if task.WaitUntil(during, due) != nil {
			break // the reason is that of a request, or of ctx
		}
		requests.Go(func() error { return d.step(during, i, due) })
	}
	if err := requests.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// step does a step of the plan, which was due at a moment.
func (d *rollout) step(ctx context.Context, i int, due time.Time) error {
	began := time.Now()
	if err := d.applier.Step(ctx, d.plan[i]); err != nil {
		return err
	}
	d.mu.Lock()
	d.stepLate = max(d.stepLate, time.Since(due))
	d.mu.Unlock()
	if len(d.plan) > 1 {
		d.journal.Event(record.Step{
			Step: i + 1, Of: len(d.plan), Services: len(d.plan[i].Replicas),
			LateSeconds: began.Sub(due).Seconds(), Seconds: time.Since(began).Seconds(),
		})
	}
	return nil
}

// arrival returns the arrival of the rollout's pods as the record has it.
func (d *rollout) arrival() *record.Arrival {
	plan := d.plan
	a := &record.Arrival{}
	seen, ready := d.fleet.Pods.Arrivals()
	a.OfferedPerSecond, a.AchievedPerSecond = workload.ArrivalRates(plan, seen)
	a.ReadyPerSecond, a.ReadyPeakPerSecond = workload.ReadyRates(ready, d.second)
	if len(plan) > 1 {
		a.Steps, a.StepsLateSeconds = new(len(plan)), new(d.stepLate.Seconds())
	}
	if warning := d.warning(a); warning != nil {
		d.journal.Warn(*warning)
	}
	if warning := d.pauses(seen, d.fleet.Endpoints.Changed()); warning != nil {
		d.journal.Warn(*warning)
	}
	if *a == (record.Arrival{}) {
		return nil
	}
	return a
}

// warning reports that pods came more slowly than planned, or all at once, which is as fast as the machine creates them; nil if
// they came as planned.
func (d *rollout) warning(a *record.Arrival) *record.Warning {
	if d.atOnce {
		w := &record.Warning{About: "arrival", Reason: record.ReasonMachineArrival}
		if a.AchievedPerSecond != nil {
			w.Values = map[string]float64{"achievedPerSecond": *a.AchievedPerSecond}
		}
		return w
	}
	if len(d.plan) < 2 {
		return nil
	}
	if d.overlap {
		if a.OfferedPerSecond == nil || a.AchievedPerSecond == nil || *a.AchievedPerSecond >= slowArrival**a.OfferedPerSecond {
			return nil
		}
		return &record.Warning{About: "arrival", Reason: record.ReasonSlowArrival, Values: map[string]float64{
			"achievedPerSecond": *a.AchievedPerSecond, "offeredPerSecond": *a.OfferedPerSecond,
		}}
	}
	interval := d.plan[1].At
	if d.stepLate.Seconds() <= lateSteps*interval.Seconds() {
		return nil
	}
	return &record.Warning{About: "arrival", Reason: record.ReasonLateBurst, Values: map[string]float64{
		"lateSeconds": d.stepLate.Seconds(), "intervalSeconds": interval.Seconds(),
	}}
}

// pauses reports that changes paused while pods came one by one, given the times at which pods and changes of endpoints were seen; nil if
// none did for so long that the control plane pushed, and where it pushes after each pod anyway.
func (d *rollout) pauses(pods, changes []time.Time) *record.Warning {
	debounce := time.Duration(d.debounce * float64(d.second))
	if !d.overlap || len(d.plan) < 2 || d.plan[1].At >= debounce {
		return nil
	}
	n, longest := workload.Pauses(pods, changes, debounce)
	if n == 0 {
		return nil
	}
	return &record.Warning{About: "xds.perSidecar", Reason: record.ReasonChangesPaused, Phase: record.PhaseRollout, Values: map[string]float64{
		"pauses": float64(n), "longestSeconds": longest.Seconds() / d.second.Seconds(), "debounceSeconds": d.debounce,
	}}
}
