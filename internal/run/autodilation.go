package run

import (
	"context"
	"fmt"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/dilation"
	"scaler.mesh/scaler/internal/linux"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/speed"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// DefaultDilation returns the factor of rollouts for which none was given: chosen by what they are expected to need, or none where time
// cannot be slowed down, where what the control plane uses at rest would be recorded as K times that, and where the mesh
// is kept for other uses.
func (s Spec) DefaultDilation() scenario.Dilation {
	driver, err := s.Driver()
	s.Instrument.Dilation = scenario.Dilation{Factor: scenario.MaxDilation}
	if err != nil || s.Keep || s.inRealTime(driver) != nil || s.realTime() == nil {
		return scenario.Dilation{Factor: 1}
	}
	return scenario.Dilation{Auto: true}
}

// checkAuto checks that it is known what the control plane needs.
func (s Spec) checkAuto(d controlplane.Driver) error {
	if s.Instrument.Dilation.Auto && d.Dilation != nil && d.Dilation.Cost == nil {
		return scenario.Refuse("instrument.dilation", s.Instrument.Dilation, "a number with controlPlane.name %s: what it needs is not known", s.ControlPlane.Name)
	}
	return nil
}

// Machine returns what this machine can do now, by which factors are chosen. Where one of the specifications leaves its
// factor to scaler, that takes three seconds, in which nothing that is measured should run.
func Machine(ctx context.Context, specs ...Spec) dilation.Machine {
	m := dilation.Machine{Processors: len(linux.Processors())}
	for _, s := range specs {
		if !s.Instrument.Dilation.Auto {
			continue
		}
		if measured, err := speed.Measure(ctx); err == nil { // else it is not known, and the record says so
			m.Speed = measured.Speed
		}
		break
	}
	return m
}

// ChooseDilation sets the factor of specifications that leave it to scaler: one for all of them, without which their runs could not be
// compared, which is the largest that one of them needs. Others are left as they are.
func ChooseDilation(m dilation.Machine, specs ...*Spec) {
	var auto []*Spec
	var all []dilation.Demand
	for _, s := range specs {
		if !s.Instrument.Dilation.Auto {
			continue
		}
		auto = append(auto, s)
		if d, known := s.demand(); known {
			all = append(all, d)
		}
	}
	factor, choice := dilation.Choose(all, m)
	for _, s := range auto {
		s.Instrument.Dilation, s.Choice, s.StartsAgain = scenario.Dilation{Factor: factor}, &choice, factor < scenario.MaxDilation
	}
}

// SlowAs sets the factor to that of a run that was done, with which this one is compared.
func (s *Spec) SlowAs(done *record.Run) {
	s.Instrument.Dilation, s.Choice, s.StartsAgain = scenario.Dilation{Factor: done.Slowdown()}, nil, false
	if d := done.Environment.Dilation; d != nil {
		s.Choice = d.Auto
	}
}

// slower returns the ladder with a larger factor, after programs waited too long with the one that was chosen.
func (l Ladder) slower(slow *tooFast) Ladder {
	choice := *l.Spec.Choice
	choice.Restart = &slow.DilationRestart
	l.Spec.Instrument.Dilation, l.Spec.Choice, l.Spec.StartsAgain = scenario.Dilation{Factor: dilation.Slower(slow.Factor)}, &choice, false
	return l
}

// choose sets the factor of a ladder that leaves it to scaler.
func (l Ladder) choose(m dilation.Machine) Ladder {
	runs := l.Runs()
	all := make([]*Spec, len(runs))
	for i := range runs {
		all[i] = &runs[i]
	}
	ChooseDilation(m, all...)
	first := runs[0]
	l.Spec.Instrument.Dilation, l.Spec.Choice, l.Spec.StartsAgain = first.Instrument.Dilation, first.Choice, first.StartsAgain
	return l
}

// pace says how much time is slowed down, and why.
func (s Spec) pace() string {
	text := "time is not slowed down"
	if k := s.dilation(); k > 1 {
		text = fmt.Sprintf("time is slowed down %g times", k)
	}
	if c := s.Choice; c != nil {
		machine := output.Many(c.Processors, "processor")
		if c.Speed > 0 {
			machine += fmt.Sprintf(" of speed %.3g", c.Speed)
		}
		text += fmt.Sprintf(": %.3g reference processors are expected to be needed, and %.0f %% of this machine's %s may be used", c.Cores, c.Limit*100, machine)
		if c.RoundSeconds > 0 {
			text += fmt.Sprintf("; a push to all sidecars takes %.2g s of a reference processor, and must leave processors for the pods that come meanwhile", c.RoundSeconds)
		}
	}
	return text
}

// load returns the load of a run on its programs.
func (s Spec) load() dilation.Load {
	t := s.topology().Defaults()
	l := dilation.Load{
		Pods: t.Pods, Services: t.Services, Scoped: s.Knobs().Scope == scenario.ScopeDeclared,
		Starts: s.startDelay().Spread().Seconds(), Equal: !s.Instrument.Priority,
		Replicas: s.ControlPlane.Replicas, Processors: s.processors(), Changes: float64(s.Load.Changes.PerSecond) + float64(s.Load.Churn),
	}
	l.PerSecond, l.Peak = s.Load.Arrival.PerSecond()
	size, _ := s.Load.Arrival.Bursts()
	l.OneByOne = size == 1
	if t.Shape == topology.Captured {
		l.Scoped = false // as far as is known before it is read
	}
	if u := s.upgrade(); u != nil && u.Rate == 0 && s.hasSidecars() {
		l.PerSecond, l.Peak, l.OneByOne = 0, 0, false // all workloads of a wave are restarted at once
	}
	return l
}

// demand returns the expected demand of a run; false if it is not known of its control plane.
func (s Spec) demand() (dilation.Demand, bool) {
	driver, err := s.Driver()
	if err != nil || driver.Dilation == nil || driver.Dilation.Cost == nil {
		return dilation.Demand{}, false
	}
	return dilation.Expect(s.load(), *driver.Dilation.Cost), true
}
