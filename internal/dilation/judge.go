// Package dilation chooses the factor by which rollouts are slowed down. A trial is a
// rollout that is not slowed down; the factor follows from its record. Choices are kept,
// so that equal rollouts on one machine have the same factor: rollouts with different
// factors cannot be compared.
package dilation

import (
	"errors"
	"math"
	"time"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// ErrNoDelays reports that the kernel does not have the data that a trial needs.
var ErrNoDelays = errors.New("the kernel keeps no run delays of threads (schedstat), by which the factor is chosen; give --dilate a number")

// Times are the durations of a trial.
type Times struct {
	Rollout time.Duration `json:"rollout"`
	Around  time.Duration `json:"around"` // starting, stopping and its other phases
}

// OrLonger returns the longer of each of both times.
func (t Times) OrLonger(o Times) Times {
	return Times{max(t.Rollout, o.Rollout), max(t.Around, o.Around)}
}

// Judge returns the factor that a trial asks for, and the durations of the trial. The
// error is ErrNoDelays, or reports that its rollout was not measured.
func Judge(run *record.Run) (record.DilationTrial, Times, error) {
	phase := run.Phase(record.PhaseRollout)
	if phase == nil || phase.Seconds == nil || run.ControlPlane == nil || run.ControlPlane.Rollout == nil || run.Instrument == nil {
		return record.DilationTrial{}, Times{}, errors.New("its rollout was not measured")
	}
	usage, instrument, length := run.ControlPlane.Rollout, run.Instrument, *phase.Seconds
	if usage.CPUSeconds == nil || usage.WaitedSeconds == nil || instrument.Cores == nil || instrument.WaitedSeconds == nil {
		return record.DilationTrial{}, Times{}, ErrNoDelays
	}
	trial := record.DilationTrial{
		Pods: run.PodCount(), Mode: run.ModeName(), Seconds: length,
		ControlPlane: waitOf(*usage.CPUSeconds, *usage.WaitedSeconds, length),
		Instrument:   waitOf(*instrument.Cores*length, *instrument.WaitedSeconds, length),
	}
	times := Times{Rollout: time.Duration(length * float64(time.Second))}
	if run.Finished != nil {
		times.Around = max(0, run.Finished.Sub(run.Started)-times.Rollout)
	}
	return trial, times, nil
}

// waitOf returns the factor that a program's waiting in a trial of this length asks for.
// With a factor of k, its threads may wait k-1 times their processor time without being
// late; see measure.Sampler.SlowDown. Further waiting must not exceed the share of the
// rollout from which figures have a warning. The waiting at a larger factor is assumed to
// be the same as in the trial, and a rollout to be as long: both lead to a factor that is
// rather too large, because with a slower arrival less waits.
func waitOf(cpu, waited, length float64) record.DilationWait {
	w := record.DilationWait{CPUSeconds: cpu, WaitedSeconds: waited, Factor: 1}
	if late := waited - record.Saturated*length; late > 0 {
		w.Factor = scenario.MaxDilation
		if cpu > 0 {
			w.Factor = min(scenario.MaxDilation, 1+math.Ceil(late/cpu))
		}
	}
	return w
}
