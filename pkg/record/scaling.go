package record

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Scaling is the rule by which dilation converts a figure. The record of a run whose time
// was slowed down by K has the figures of the modelled machine. They are divided or
// multiplied once, when the record is written (Run.Undilated).
type Scaling string

// The rules of scaling.
const (
	ScalingNone Scaling = ""     // it stays as measured: work, amounts, shares
	ScalingTime Scaling = "time" // seconds on a clock: divided by K
	ScalingRate Scaling = "rate" // something per second, cores among them: multiplied by K
)

// Scaling returns the rule of the figure. Seconds of processor time are work, and not time on a
// clock. The peak of readiness is a number of pods, counted within one second of the
// modelled machine.
func (f Figure) Scaling() Scaling {
	if name := f.Path[strings.LastIndexByte(f.Path, '.')+1:]; name == "cpuSeconds" || name == "referenceCPUSeconds" || name == "readyPeakPerSecond" {
		return ScalingNone
	}
	switch f.Unit {
	case UnitSeconds:
		return ScalingTime
	case UnitPerSecond, UnitBytesPerSecond, UnitCores:
		return ScalingRate
	default:
		return ScalingNone
	}
}

// of applies the rule to a value.
func (s Scaling) of(value, k float64) float64 {
	switch s {
	case ScalingTime:
		return value / k
	case ScalingRate:
		return value * k
	default:
		return value
	}
}

// Undilated returns the run, as it was measured, with every figure as that of the
// machine that was stood for: the run itself unless Slowdown is above 1. Figures of phases that
// were not slowed down are those of that machine as measured. What
// the figures of the catalogue do not include is the length of phases and the control
// plane's own metrics, whose names end in their unit. Wall-clock times, and what warnings say, are of the machine
// that ran; how late scaler itself was is divided where the warning is made.
func (r *Run) Undilated() (*Run, error) {
	k := r.Slowdown()
	if k <= 1 {
		return r, nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("copying a run: %w", err)
	}
	scaled := new(Run)
	if err := json.Unmarshal(text, scaled); err != nil {
		return nil, fmt.Errorf("copying a run: %w", err)
	}
	scaled.Dir = r.Dir
	done := map[*float64]bool{} // a figure may stand at two places of the catalogue
	for _, v := range scaled.Values() {
		if v.Value != nil && !done[v.Value] && v.Path != "phases.rollout.seconds" && !r.Environment.Dilation.asMeasured(v.Path) {
			*v.Value = v.Figure.Scaling().of(*v.Value, k)
			done[v.Value] = true
		}
	}
	for i := range scaled.Phases {
		if seconds := scaled.Phases[i].Seconds; seconds != nil {
			*seconds /= r.SlowdownIn(scaled.Phases[i].Name)
		}
	}
	if scaled.Own != nil {
		for _, phase := range FigurePhases {
			own := scaled.Own.At(phase)
			*own = undilatedOwn(*own, r.SlowdownIn(phase))
		}
	}
	return scaled, nil
}

// asMeasured reports whether the figure at a path is of a phase that was not slowed down.
func (d *Dilation) asMeasured(path string) bool {
	return d != nil && slices.ContainsFunc(d.RealTime, func(phase PhaseName) bool { return strings.Contains(path, "."+string(phase)+".") })
}

// undilatedOwn scales metrics whose names end in Seconds or PerSecond.
func undilatedOwn(own map[string]float64, k float64) map[string]float64 {
	own = maps.Clone(own)
	for name, value := range own {
		switch {
		case strings.HasSuffix(name, "PerSecond"):
			own[name] = ScalingRate.of(value, k)
		case strings.HasSuffix(name, "Seconds"):
			own[name] = ScalingTime.of(value, k)
		}
	}
	return own
}
