package run

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/speed"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/pkg/record"
)

// measureSpeed measures how fast this machine is, while no phase of the run goes on, and has
// set put it into the record. A run in an existing cluster says nothing about the
// machine of its control plane. A failure does not end the run; it is a warning.
func (r *run) measureSpeed(ctx context.Context, set func(*record.Processor, *record.Speed)) {
	if r.spec.Place.Context != "" || ctx.Err() != nil {
		return
	}
	measured, err := speed.Measure(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		r.journal.Warn(record.Warning{About: "environment.processor", Reason: record.ReasonNotMeasured, Detail: output.FirstLine(err)})
		return
	}
	r.journal.Update(func(run *record.Run) { set(run.Environment.Processor, &measured) })
}

// speedsBefore is the number of measurements before a run in slowed time. The control plane's quota follows from their mean, and the speed of a
// shared machine can change by a third from one second to the next.
const speedsBefore = 3

func (r *run) speedBefore(ctx context.Context) {
	times := 1
	if r.spec.dilation() > 1 {
		times = speedsBefore
	}
	var all []record.Speed
	for range times {
		r.measureSpeed(ctx, func(p *record.Processor, s *record.Speed) {
			all = append(all, *s)
			if mean, ok := record.MeanSpeed(all); ok {
				p.Before = &mean
			}
		})
		if len(all) == 0 {
			return // the record states why
		}
	}
}

// brief is the length of rollout and steady together below which the speed is measured before the run and after it alone: these are
// close to each other, and three measurements would take as long as the phases.
const brief = 30 * time.Second

// speedInPause measures the speed between two phases, if that was possible before the run and nothing goes on.
func (r *run) speedInPause(ctx context.Context) (steps.Undo, error) {
	if r.rolloutLength+time.Duration(r.spec.Phases.Steady) < brief {
		return nil, nil
	}
	if p := r.journal.Run().Environment.Processor; p == nil || p.Before == nil || r.spec.Profile().OutsideChurn > 0 {
		return nil, nil
	}
	r.measureSpeed(ctx, func(p *record.Processor, s *record.Speed) { p.Pauses = append(p.Pauses, *s) })
	return nil, context.Cause(ctx)
}

// speedAfter measures the speed once all that the run started has ended, unless it is kept,
// and puts what the run used into units of the reference processor.
func (r *run) speedAfter(ctx context.Context) {
	if r.spec.Keep && r.completed {
		return
	}
	r.measureSpeed(ctx, func(p *record.Processor, s *record.Speed) { p.After = s })
	r.journal.Update(func(run *record.Run) { run.Normalize() })
	p := r.journal.Run().Environment.Processor
	if drift := p.Drift(); math.Abs(drift) > record.SpeedBound {
		r.journal.Warn(record.Warning{About: "environment.processor", Reason: record.ReasonSpeedDrifted, Values: map[string]float64{
			"before": p.Before.Speed, "after": p.After.Speed, "share": math.Abs(drift), "bound": record.SpeedBound,
		}})
	}
	if s, ok := p.Speed(); ok {
		r.progress.say(fmt.Sprintf("a processor of this machine: %.3g reference processors (%.3g before the run, %.3g after it)", s.Speed, p.Before.Speed, p.After.Speed))
	}
}

// steals are the counters of all processors at the edges of phases.
type steals struct {
	mu sync.Mutex
	at map[time.Time]speed.Times
}

// read takes them at an edge. What cannot be read is absent.
func (s *steals) read(at time.Time) {
	times, err := speed.ReadTimes()
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = map[time.Time]speed.Times{}
	}
	s.at[at] = times
}

// measureSteal records what the hypervisor took in each phase.
func (r *run) measureSteal(m measurement) {
	p := m.document.Environment.Processor
	if p == nil {
		return
	}
	r.steals.mu.Lock()
	defer r.steals.mu.Unlock()
	for _, w := range m.windows {
		from, begun := r.steals.at[w.Begin]
		to, ended := r.steals.at[w.End]
		if !begun || !ended {
			continue
		}
		if p.Steal == nil {
			p.Steal = map[record.PhaseName]float64{}
		}
		p.Steal[w.Name] = speed.Steal(from, to)
	}
}
