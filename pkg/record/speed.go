package record

import (
	"fmt"
	"math"
)

// Processor is the processor of the machine of a run, and how fast it was.
type Processor struct {
	Model string `json:"model,omitempty"` // as the kernel calls it
	// Steal is, by phase, the share of the time of all processors, 0 to 1, that the hypervisor
	// gave to others while this machine wanted it.
	Steal map[PhaseName]float64 `json:"steal,omitempty"`
	// Before and After are the speeds before anything of the run was started and after all of
	// it had ended.
	Before *Speed `json:"before,omitempty"`
	After  *Speed `json:"after,omitempty"`
}

// Speed is how fast a processor did a fixed piece of work, in units of the reference
// processor, which is defined in package speed: 2 = it needs half the processor time.
type Speed struct {
	// Work is the version of the work. Speeds of different works are different units.
	Work  string  `json:"work"`
	Speed float64 `json:"speed"` // of all the work
	// Low and High are the speeds of the slowest and of the quickest of ten parts of it.
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	CPUSeconds float64 `json:"cpuSeconds"` // processor time of all the work
}

// SpeedBound is the share by which speeds may differ before processor times that were
// measured at them are uncertain. It is half of the 10 % within which figures are claimed to
// be equal.
const SpeedBound = 0.05

// Speed is the mean speed before and after the run; false where one of them is not known, or
// the work changed.
func (p *Processor) Speed() (Speed, bool) {
	if p == nil || p.Before == nil || p.After == nil || p.Before.Work != p.After.Work || !(p.Before.Speed > 0) || !(p.After.Speed > 0) {
		return Speed{}, false
	}
	return Speed{
		Work: p.Before.Work, Speed: (p.Before.Speed + p.After.Speed) / 2,
		Low: min(p.Before.Low, p.After.Low), High: max(p.Before.High, p.After.High), CPUSeconds: p.Before.CPUSeconds + p.After.CPUSeconds,
	}, true
}

// Drift is by which share the speed after the run differs from that before it; 0 where it is
// not known.
func (p *Processor) Drift() float64 {
	if _, ok := p.Speed(); !ok {
		return 0
	}
	return p.After.Speed/p.Before.Speed - 1
}

// SpeedsOf states how the speeds of runs differ: differing says in words that they do by more than
// SpeedBound, or are of different works, "" where they do not; drifted is in how many runs the
// speed changed by more than SpeedBound from before the run to after it. Runs whose speed is not
// known are left out.
func SpeedsOf(runs []*Run) (differing string, drifted int) {
	var known []Speed
	for _, run := range runs {
		p := run.Environment.Processor
		if s, ok := p.Speed(); ok {
			known = append(known, s)
		}
		if math.Abs(p.Drift()) > SpeedBound {
			drifted++
		}
	}
	return speedsText(known), drifted
}

// speedsText is the first result of SpeedsOf.
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

// Normalize sets the processor time and cores of the control plane in units of the reference
// processor, where the speed of its machine is known.
func (r *Run) Normalize() {
	speed, ok := r.Environment.Processor.Speed()
	if !ok || r.ControlPlane == nil {
		return
	}
	for _, phase := range FigurePhases {
		if u := *r.ControlPlane.At(phase); u != nil && u.CPUSeconds != nil && u.Cores != nil && u.Cores.Mean != nil {
			u.ReferenceCPUSeconds, u.ReferenceCores = new(*u.CPUSeconds*speed.Speed), new(*u.Cores.Mean*speed.Speed)
		}
	}
}

// SpeedKind is the kind of a MachineSpeed.
const SpeedKind = "Speed"

// MachineSpeed is what `scaler calibrate --speed` prints.
type MachineSpeed struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Schema     int     `json:"schema"`
	Scaler     string  `json:"scaler"`
	Machine    Machine `json:"machine"`
	Speed      Speed   `json:"speed"`
}
