package run

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/speed"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/pkg/record"
)

// speedBefore measures how fast this machine is before anything of the run is started. A run in an existing cluster says nothing about the
// machine of its control plane. A failure does not end the run; it is a warning.
func (r *run) speedBefore(ctx context.Context) {
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
	r.journal.Update(func(run *record.Run) { run.Environment.Processor.Before = &measured })
}

const (
	// enoughSamples is the minimum for the speed of a phase, and for another quota.
	enoughSamples = 10
	// quotaSamples is the number of samples by whose speed the quota of the control plane is set: those of the last 20 s.
	quotaSamples = 20
	// quotaEvery is the number of samples after which it is set again. Each time the kernel begins a new period.
	quotaEvery = 5
	// quotaStep is the least share by which it is changed.
	quotaStep = 0.02
)

// speeds are the samples of the speed of this machine while a run goes on.
type speeds struct {
	mu  sync.Mutex
	all []speed.Sample
}

// add takes the next sample, and returns how many there are and the latest of them.
func (s *speeds) add(next speed.Sample) (n int, latest []speed.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, next)
	return len(s.all), s.all[max(0, len(s.all)-quotaSamples):]
}

// whole returns all samples.
func (s *speeds) whole() []speed.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}

// in returns the samples of a window.
func (s *speeds) in(w phases.Window) (all []speed.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sample := range s.all {
		if sample.At.After(w.Begin) && !sample.At.After(w.End) {
			all = append(all, sample)
		}
	}
	return all
}

// followSpeed takes samples of the speed while the run goes on, where it could be measured before it. A failure does not end the run.
func (r *run) followSpeed(ctx context.Context) (steps.Undo, error) {
	if r.journal.Run().Environment.Processor.SpeedBefore() == 0 {
		return nil, nil // the record states why
	}
	quota := r.resources.Quota
	b := newBackground(context.WithoutCancel(ctx), r.fail)
	b.run("following the speed of the machine", func(ctx context.Context) error {
		err := speed.Follow(ctx, func(s speed.Sample) {
			if n, latest := r.speeds.add(s); quota.Processors > 0 && n%quotaEvery == 0 {
				quota = r.followQuota(quota, latest)
			}
		})
		if err != nil {
			r.journal.Warn(record.Warning{About: "environment.processor", Reason: record.ReasonNotMeasured, Detail: output.FirstLine(err)})
		}
		return nil
	})
	return b.undo, nil
}

// followQuota holds the control plane to as many reference processors as before, by the latest samples, and returns its quota.
func (r *run) followQuota(quota controlplane.Quota, latest []speed.Sample) controlplane.Quota {
	if len(latest) < enoughSamples {
		return quota
	}
	measured, err := speed.Of(latest)
	if err != nil {
		return quota
	}
	next := r.spec.share(measured.Speed)
	if math.Abs(next.Processors/quota.Processors-1) < quotaStep {
		return quota
	}
	if err := r.group.ChangeQuota(next); err != nil {
		r.journal.Warn(record.Warning{
			About: "environment.controlPlane.processors", Reason: record.ReasonNotMeasured, Detail: "the limit stays that of an earlier speed: " + err.Error(),
		})
		return controlplane.Quota{} // it is not followed any more
	}
	r.limits.Change(next.Processors)
	return next
}

// measureSpeeds puts the speeds in the run and in its phases into the record, and how many processors the control plane could use in the rollout on
// average.
func (m measurement) measureSpeeds() {
	if measured, err := speed.Of(m.speeds.whole()); err == nil { // else there are too few samples
		m.document.Environment.Processor.Run = &measured
	}
	for _, w := range m.windows {
		all := m.speeds.in(w)
		if measured, err := speed.Of(all); err == nil && len(all) >= enoughSamples {
			p := m.document.Environment.Processor
			if p.Phases == nil {
				p.Phases = map[record.PhaseName]record.Speed{}
			}
			p.Phases[w.Name] = measured
		}
		if source := &m.document.Environment.ControlPlane; w.Name == record.PhaseRollout {
			source.Processors = cmp.Or(m.usableIn(w), source.Processors)
		}
	}
}

// usableIn returns how many processors of this machine, in the modelled time, each replica could use in a window on average; 0 = it had no quota.
func (r *run) usableIn(w phases.Window) float64 {
	mean := r.limits.Mean(w.Begin, w.End)
	if mean == 0 {
		return 0
	}
	return r.spec.usable(controlplane.Quota{Processors: mean})
}

// normalize puts what the run used into units of the reference processor.
func (r *run) normalize() {
	r.journal.Update(func(run *record.Run) { run.Normalize() })
	p := r.journal.Run().Environment.Processor
	if s, ok := p.Speed(); ok {
		r.progress.say(fmt.Sprintf("a processor of this machine: %.3g reference processors (%.3g before the run)", s.Speed, p.SpeedBefore()))
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
func (m measurement) measureSteal() {
	p := m.document.Environment.Processor
	if p == nil {
		return
	}
	m.steals.mu.Lock()
	defer m.steals.mu.Unlock()
	for _, w := range m.windows {
		from, begun := m.steals.at[w.Begin]
		to, ended := m.steals.at[w.End]
		if !begun || !ended {
			continue
		}
		if p.Steal == nil {
			p.Steal = map[record.PhaseName]float64{}
		}
		p.Steal[w.Name] = speed.Steal(from, to)
	}
}
