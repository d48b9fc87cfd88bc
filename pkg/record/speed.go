package record

import (
	"fmt"
	"slices"
)

// Processor is the processor of the machine of a run, and how fast it was.
type Processor struct {
	Model string `json:"model,omitempty"` // as the kernel calls it
	// Steal is, by phase, the share of the time of all processors, 0 to 1, that the hypervisor
	// gave to others while this machine wanted it.
	Steal map[PhaseName]float64 `json:"steal,omitempty"`
	// Before is the speed before anything of the run was started.
	Before *Speed `json:"before,omitempty"`
	// Phases are the speeds in phases that are long enough, by a sample of the work each second, next to what ran. Run is the speed by the samples
	// of all of the run.
	Phases map[PhaseName]Speed `json:"phases,omitempty"`
	Run    *Speed              `json:"run,omitempty"`
}

// Speed is the speed of a processor at a fixed piece of work, in units of the reference
// processor, which package speed defines: 2 = it needs half the processor time.
type Speed struct {
	// Work is the version of the work. Speeds of different works are different units.
	Work  string  `json:"work"`
	Speed float64 `json:"speed"` // of all the work
	// Low and High are the speeds of the slowest and of the quickest of ten parts of it, or of its samples, if they are fewer.
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	CPUSeconds float64 `json:"cpuSeconds"` // processor time of all the work
}

// SpeedBound is the share by which speeds may differ before processor times that were
// measured at them are not in one unit. It is half of the 10 % within which figures are claimed to
// be equal.
const SpeedBound = 0.05

// MeanSpeed returns the mean of speeds, with the lowest and the highest of their parts; false where there is none, one is not above 0, or they
// are of different works.
func MeanSpeed(all []Speed) (mean Speed, ok bool) {
	for i, s := range all {
		if i == 0 {
			mean = Speed{Work: s.Work, Low: s.Low, High: s.High}
		}
		if s.Work != mean.Work || !(s.Speed > 0) {
			return Speed{}, false
		}
		mean.Speed, mean.CPUSeconds = mean.Speed+s.Speed/float64(len(all)), mean.CPUSeconds+s.CPUSeconds
		mean.Low, mean.High = min(mean.Low, s.Low), max(mean.High, s.High)
	}
	return mean, len(all) > 0
}

// Speed returns the speed of the run: that in its rollout or, where Phases does not have it, Run; false where it is not known.
func (p *Processor) Speed() (Speed, bool) {
	if p == nil {
		return Speed{}, false
	}
	s, sampled := p.Phases[PhaseRollout]
	if !sampled && p.Run != nil {
		s = *p.Run
	}
	return s, s.Speed > 0
}

// SpeedIn returns the speed in a phase or, where Phases does not have it, Speed.
func (p *Processor) SpeedIn(phase PhaseName) (Speed, bool) {
	if p != nil {
		if s, sampled := p.Phases[phase]; sampled {
			return s, s.Speed > 0
		}
	}
	return p.Speed()
}

// SpeedBefore returns the speed before the run; 0 = it is not known.
func (p *Processor) SpeedBefore() float64 {
	if p == nil || p.Before == nil {
		return 0
	}
	return p.Before.Speed
}

// SpeedsOf states how the speeds of runs differ: differing says in words that they do by more than
// SpeedBound, or are of different works, "" where they do not; oneWork reports that they are of one work. Runs whose speed is not
// known are left out.
func SpeedsOf(runs []*Run) (differing string, oneWork bool) {
	var known []Speed
	for _, run := range runs {
		if s, ok := run.Environment.Processor.Speed(); ok {
			known = append(known, s)
		}
	}
	_, oneWork = MeanSpeed(known)
	return speedsText(known), oneWork
}

// speedsText returns the first result of SpeedsOf.
func speedsText(speeds []Speed) string {
	if len(speeds) == 0 {
		return ""
	}
	low, high := speeds[0].Speed, speeds[0].Speed
	for _, s := range speeds {
		if s.Work != speeds[0].Work {
			return fmt.Sprintf("their speeds are of different works, %s and %s, which are different units", speeds[0].Work, s.Work)
		}
		low, high = min(low, s.Speed), max(high, s.Speed)
	}
	if high <= (1+SpeedBound)*low {
		return ""
	}
	return fmt.Sprintf("processors did the work of %.3g to %.3g reference processors, which differ by more than %.0f%%", low, high, SpeedBound*100)
}

// Normalize sets the processor time and cores of the control plane in units of the reference processor, where the speed of its machine is
// known. It is called on the run as it was measured, before Undilated.
//
// A control plane does some things in each second of real time, whatever K is: it renews leases, its runtime returns memory. In a phase that was
// slowed down, the machine that is modelled would do these for 1/K of the time. So what it used at rest is left
// out for the rest of the time, where that was measured in real time. The phase needs 1/K of its processor time at least.
func (r *Run) Normalize() {
	if r.ControlPlane == nil {
		return
	}
	for _, phase := range FigurePhases {
		speed, ok := r.Environment.Processor.SpeedIn(phase)
		u := *r.ControlPlane.At(phase)
		if !ok || u == nil || u.CPUSeconds == nil || u.Cores == nil || u.Cores.Mean == nil {
			continue
		}
		share, k := 1.0, r.SlowdownIn(phase)
		if rest, known := r.coresAtRest(phase); known && k > 1 && *u.Cores.Mean > 0 {
			share = max(1/k, 1-(1-1/k)*rest/(*u.Cores.Mean))
		}
		u.ReferenceCPUSeconds, u.ReferenceCores = new(*u.CPUSeconds*share*speed.Speed), new(*u.Cores.Mean*share*speed.Speed)
	}
}

// RestKnown reports whether what the control plane of a run in slowed time uses at rest was measured in real time, and is no part of its reference
// processor time.
func (r *Run) RestKnown() bool {
	_, known := r.coresAtRest(PhaseRollout)
	return known
}

// coresAtRest returns the mean cores that the control plane uses at rest with the mesh of a phase; false where that was not measured in real time.
// A mesh grows evenly in a rollout, so that the mean of baseline and steady is taken for it; phases after it have that of steady.
func (r *Run) coresAtRest(phase PhaseName) (cores float64, known bool) {
	if r.Environment.Dilation == nil {
		return 0, false
	}
	before, knownBefore := r.Environment.Dilation.AtRest[PhaseBaseline]
	after, knownAfter := r.Environment.Dilation.AtRest[PhaseSteady]
	if phase == PhaseRollout {
		return (before + after) / 2, knownBefore && knownAfter
	}
	return after, knownBefore && knownAfter
}

// OnProcessor returns a copy of the run in which the processor time and the cores of its control plane are those that a processor of
// another speed needs, with what is done at rest in slowed time, as measured. What other programs used is as it was, and all of a run whose own
// speed is not known.
func (r *Run) OnProcessor(speed float64) *Run {
	of := r.Environment.Processor
	own, ok := of.Speed()
	if !ok {
		return r
	}
	scaled := func(v *float64, own Speed) *float64 {
		if v == nil {
			return nil
		}
		return new(*v * own.Speed / speed)
	}
	usage := func(of *Usage, own Speed) *Usage {
		if of == nil {
			return nil
		}
		u := *of
		u.CPUSeconds = scaled(u.CPUSeconds, own)
		if u.Cores != nil {
			u.Cores = &Level{Mean: scaled(u.Cores.Mean, own), Peak: scaled(u.Cores.Peak, own), Peak100ms: scaled(u.Cores.Peak100ms, own)}
		}
		return &u
	}
	byPhase := func(all *ByPhase[*Usage]) {
		for _, phase := range FigurePhases {
			in, _ := of.SpeedIn(phase)
			u := all.At(phase)
			*u = usage(*u, in)
		}
	}
	to := *r
	if to.ControlPlane != nil {
		to.ControlPlane = new(*r.ControlPlane)
		byPhase(to.ControlPlane)
	}
	if to.Replicas != nil {
		to.Replicas = new(*r.Replicas)
		to.Replicas.Each = map[string]*Replica{}
		for name, of := range r.Replicas.Each {
			one := *of
			byPhase(&one.Usage)
			to.Replicas.Each[name] = &one
		}
	}
	to.Faults = slices.Clone(r.Faults)
	for i := range to.Faults {
		to.Faults[i].ControlPlane = usage(to.Faults[i].ControlPlane, own)
	}
	if to.Cycle != nil {
		in, _ := of.SpeedIn(PhaseCycle)
		to.Cycle = new(*r.Cycle)
		to.Cycle.Cores, to.Cycle.CPUSeconds = scaled(to.Cycle.Cores, in), scaled(to.Cycle.CPUSeconds, in)
	}
	if to.Upgrade != nil {
		to.Upgrade = new(*r.Upgrade)
		if to.Upgrade.Room != nil {
			to.Upgrade.Room = new(*r.Upgrade.Room)
			to.Upgrade.Room.Cores = scaled(to.Upgrade.Room.Cores, own)
		}
		to.Upgrade.Stages = map[string]*UpgradeStage{}
		for name, of := range r.Upgrade.Stages {
			in, _ := r.Environment.Processor.SpeedIn(UpgradePhase(name))
			one := *of
			one.PeakCores = scaled(one.PeakCores, in)
			for _, side := range []**UpgradeSide{&one.From, &one.To} {
				if *side != nil {
					*side = new(**side)
					(*side).ControlPlane = usage((*side).ControlPlane, in)
				}
			}
			to.Upgrade.Stages[name] = &one
		}
		to.FindRoom() // stages have speeds of their own
	}
	return &to
}

// SpeedKind is the kind of a MachineSpeed.
const SpeedKind = "Speed"

// MachineSpeed is the output of `scaler calibrate --speed`.
type MachineSpeed struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Schema     int     `json:"schema"`
	Scaler     string  `json:"scaler"`
	Machine    Machine `json:"machine"`
	Speed      Speed   `json:"speed"`
}
