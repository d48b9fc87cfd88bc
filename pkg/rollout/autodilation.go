package rollout

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"scaler.mesh/scaler/pkg/changes"
	"scaler.mesh/scaler/pkg/component"
	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/record"
)

// AutoDilation is the value of Spec.Dilation for a factor that a trial chooses.
const AutoDilation = -1

// chooseDilation sets the factor of a ladder that leaves it to a trial: a rollout
// without dilation for each mode, of the largest size, on this machine and with the
// same arrival. All runs get the same factor, without which they could not be compared:
// the largest that a trial asks for.
//
// A trial of the whole size needs no model of how the load grows with the size, and
// takes a part of the time of the run that is K times slower.
func (l Ladder) chooseDilation(ctx context.Context, versions *component.Versions, progress Progress) (Ladder, error) {
	if l.Spec.Dilation != AutoDilation {
		return l, nil
	}
	choice := &record.DilationChoice{Limit: record.Saturated}
	factor, longest := 1.0, trialTimes{}
	for _, spec := range l.trials() {
		progress.say(fmt.Sprintf("trial without dilation: %s, to choose the factor", spec.Name()))
		run, err := try(ctx, spec, versions, progress)
		if err != nil {
			return l, fmt.Errorf("choosing the factor of --dilate auto: %w", err)
		}
		trial, times, err := judgeTrial(&run)
		if err != nil {
			return l, fmt.Errorf("choosing the factor of --dilate auto: trial %s: %w", spec.Name(), err)
		}
		choice.Trials = append(choice.Trials, trial)
		factor = max(factor, trial.ControlPlane.Factor, trial.Instrument.Factor)
		longest = longest.orLonger(times)
		progress.say(fmt.Sprintf("trial %s: in a rollout of %.1f s, threads of the control plane waited %.1f s for a processor and used %.1f s; scaler's waited %.1f s and used %.1f s",
			spec.Name(), trial.Seconds, trial.ControlPlane.WaitedSeconds, trial.ControlPlane.CPUSeconds, trial.Instrument.WaitedSeconds, trial.Instrument.CPUSeconds))
	}
	l.Spec.Dilation, l.Spec.Choice = factor, choice
	runs := l.Runs()
	var expected time.Duration
	for _, spec := range runs {
		expected += spec.expected(longest)
	}
	progress.say(fmt.Sprintf("time is slowed down %g times; expected duration: up to %s, probes and what follows them not counted", factor, expected.Round(time.Second)))
	return l, nil
}

// trials are the rollouts that choose the factor: one of the largest size in each mode,
// without what comes after a rollout.
func (l Ladder) trials() []Spec {
	var all []Spec
	for _, mode := range l.Modes {
		spec := l.Spec
		spec.Mode = mode
		spec.Topology.Pods = slices.Max(l.Pods)
		spec.Dilation, spec.Repeat = 0, 0
		spec.Baseline, spec.Settle, spec.Steady, spec.Probes = time.Second, 0, time.Second, 0
		spec.CertificateStorm, spec.Churn, spec.Change, spec.Faults = false, 0, changes.Load{}, nil
		spec.Keep, spec.NoCalibrate = false, true
		all = append(all, spec)
	}
	return all
}

// try does a trial, whose record is not kept. One that does not converge in time was
// short of processors all the more, and is used as it is.
func try(ctx context.Context, spec Spec, versions *component.Versions, progress Progress) (_ record.Run, err error) {
	spec.Out, err = os.MkdirTemp("", "scaler-trial-*")
	if err != nil {
		return record.Run{}, fmt.Errorf("making a folder for a trial: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(spec.Out)) }()
	folder, err := record.Open(spec.Out)
	if err != nil {
		return record.Run{}, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	run, err := execute(ctx, spec, folder, versions, progress)
	if errors.Is(err, experiment.ErrUnconverged) && ctx.Err() == nil {
		err = nil
	}
	return run, err
}

// errNoDelays says that the kernel does not keep what a trial needs.
var errNoDelays = errors.New("the kernel keeps no run delays of threads (schedstat), by which the factor is chosen; give --dilate a number")

// judgeTrial is what a trial says of the factor, and how long it took.
func judgeTrial(run *record.Run) (record.DilationTrial, trialTimes, error) {
	phase := run.Phase(record.PhaseRollout)
	if phase == nil || phase.Seconds == nil || run.ControlPlane == nil || run.ControlPlane.Rollout == nil || run.Instrument == nil {
		return record.DilationTrial{}, trialTimes{}, errors.New("its rollout was not measured")
	}
	usage, instrument, length := run.ControlPlane.Rollout, run.Instrument, *phase.Seconds
	if usage.CPUSeconds == nil || usage.WaitedSeconds == nil || instrument.Cores == nil || instrument.WaitedSeconds == nil {
		return record.DilationTrial{}, trialTimes{}, errNoDelays
	}
	trial := record.DilationTrial{
		Pods: run.Spec.Pods, Mode: run.Spec.Mode, Seconds: length,
		ControlPlane: waitOf(*usage.CPUSeconds, *usage.WaitedSeconds, length),
		Instrument:   waitOf(*instrument.Cores*length, *instrument.WaitedSeconds, length),
	}
	times := trialTimes{rollout: time.Duration(length * float64(time.Second))}
	if run.Finished != nil {
		times.around = max(0, run.Finished.Sub(run.Started)-times.rollout)
	}
	return trial, times, nil
}

// waitOf is what a program's waiting in a trial of a length asks for. With a factor of
// k, its threads may wait k-1 times their processor time without being late, see
// recorder.Sampler.SlowDown. What they wait beyond that must not exceed the share of the
// rollout from which figures are doubted. Waiting at a larger factor is taken to be what
// it was in the trial, and a rollout to be as long: both err on the side of a larger
// factor where the arrival is slowed down, because less waits then.
func waitOf(cpu, waited, length float64) record.DilationWait {
	w := record.DilationWait{CPUSeconds: cpu, WaitedSeconds: waited, Factor: 1}
	if late := waited - record.Saturated*length; late > 0 {
		w.Factor = maxDilation
		if cpu > 0 {
			w.Factor = min(maxDilation, 1+math.Ceil(late/cpu))
		}
	}
	return w
}

// trialTimes are how long a trial took.
type trialTimes struct {
	rollout time.Duration
	around  time.Duration // starting, stopping and its other phases
}

func (t trialTimes) orLonger(o trialTimes) trialTimes {
	return trialTimes{max(t.rollout, o.rollout), max(t.around, o.around)}
}

// expected is an upper bound of how long a run takes up to its probes, if its rollout
// without dilation takes as long as that of a trial: a rollout that is limited by
// processors takes no longer with it.
func (s Spec) expected(trial trialTimes) time.Duration {
	return trial.around + s.slowed(s.Baseline+s.Settle+s.Steady+trial.rollout)
}
