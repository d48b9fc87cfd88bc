package rollout

import (
	"context"
	"maps"
	"time"

	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/faults"
	"scaler.mesh/scaler/pkg/fleet"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/workload"
)

// lateSteps is the share of the interval between two bursts above which a burst
// that came late makes the arrival doubtful.
const lateSteps = 0.1

// deployment creates the mesh of a rollout as planned.
type deployment struct {
	plan     []workload.Step
	applier  *workload.Applier
	injector *faults.Injector
	fleet    *fleet.Fleet
	journal  *experiment.Journal
	stepLate time.Duration // the greatest lateness of a burst
}

// create follows the plan, with the faults of that phase, and returns when the mesh
// has converged.
func (d *deployment) create(ctx context.Context) error {
	if err := d.applier.Surroundings(ctx); err != nil {
		return err
	}
	if err := d.injector.DuringRollout(ctx, d.follow); err != nil {
		return err
	}
	return d.fleet.AwaitConverged(ctx)
}

// follow follows the plan: each step when it is due, or as soon after as the one
// before is done.
func (d *deployment) follow(ctx context.Context) error {
	begin := time.Now()
	for i, step := range d.plan {
		due := begin.Add(step.At)
		if err := experiment.WaitUntil(ctx, due); err != nil {
			return err
		}
		began := time.Now()
		if err := d.applier.Step(ctx, step); err != nil {
			return err
		}
		d.stepLate = max(d.stepLate, time.Since(due))
		if len(d.plan) > 1 {
			d.journal.Event(record.Step{
				Step: i + 1, Of: len(d.plan), Services: len(step.Replicas),
				LateSeconds: began.Sub(due).Seconds(), Seconds: time.Since(began).Seconds(),
			})
		}
	}
	return nil
}

// arrival is how the rollout's pods came.
func (d *deployment) arrival() *record.Arrival {
	plan := d.plan
	a := &record.Arrival{}
	a.OfferedPerSecond, a.AchievedPerSecond = arrivalRates(plan, d.fleet.Pods.Arrivals())
	if len(plan) > 1 {
		a.Steps, a.StepsLateSeconds = new(len(plan)), new(d.stepLate.Seconds())
		if interval := plan[1].At; d.stepLate.Seconds() > lateSteps*interval.Seconds() {
			d.journal.Warn(record.Warning{About: "arrival", Reason: record.ReasonLateBurst, Values: map[string]float64{
				"lateSeconds": d.stepLate.Seconds(), "intervalSeconds": interval.Seconds(),
			}})
		}
	}
	if *a == (record.Arrival{}) {
		return nil
	}
	return a
}

// arrivalRates are the pods a second that a plan offers, and those that were
// seen at these times, in order. Both leave the first burst out of the count and
// begin with it, so that bursts of 100 every 10 s are 10 a second however many
// there are. For a plan of one step there is no offered rate, and the achieved
// one is of all pods. What is not known is nil.
func arrivalRates(plan []workload.Step, seen []time.Time) (offered, achieved *float64) {
	rate := func(pods int, over time.Duration) *float64 {
		if pods <= 0 || over <= 0 {
			return nil
		}
		return new(float64(pods) / over.Seconds())
	}
	if len(plan) == 0 || len(seen) == 0 {
		return nil, nil
	}
	last := seen[len(seen)-1]
	if len(plan) == 1 {
		return nil, rate(len(seen), last.Sub(seen[0]))
	}
	replicas := map[int]int{}
	pods := func(steps []workload.Step) (sum int) {
		for _, step := range steps {
			maps.Copy(replicas, step.Replicas)
		}
		for _, n := range replicas {
			sum += n
		}
		return sum
	}
	burst := pods(plan[:1])
	offered = rate(pods(plan)-burst, plan[len(plan)-1].At)
	if len(seen) > burst {
		achieved = rate(len(seen)-burst, last.Sub(seen[burst-1]))
	}
	return offered, achieved
}
