package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/dilation"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// DefaultDilation is the factor of rollouts for which none was given: chosen by a trial, or none where time cannot be
// slowed down, where what the control plane uses at rest would be recorded as K times that, and where the mesh
// is kept for other uses.
func (s Spec) DefaultDilation() scenario.Dilation {
	driver, err := s.Driver()
	s.Instrument.Dilation = scenario.Dilation{Factor: scenario.MaxDilation}
	if err != nil || s.Keep || s.inRealTime(driver) != nil || s.realTime() == nil {
		return scenario.Dilation{Factor: 1}
	}
	return scenario.Dilation{Auto: true}
}

// chooseDilation sets the factor of a ladder that leaves it to a trial: a rollout
// without dilation for each mode, of the largest size, on this machine and with the
// same arrival. All runs get the same factor, without which they could not be compared:
// the largest that a trial asks for.
//
// A trial of the whole size needs no model of how the load grows with the size, and
// takes a part of the time of the run that is K times slower.
func (l Ladder) chooseDilation(ctx context.Context, versions *component.Versions, progress Progress) (Ladder, error) {
	if !l.Spec.Instrument.Dilation.Auto {
		return l, nil
	}
	choice, err := l.choice(ctx, versions, progress)
	switch {
	case err == nil:
	case l.ByDefault && ctx.Err() == nil:
		// The runs show why, each with a record.
		progress.say(fmt.Sprintf("time is not slowed down: %v", err))
		l.Spec.Instrument.Dilation = scenario.Dilation{Factor: 1}
		return l, nil
	default:
		return l, err
	}
	l.Spec.Instrument.Dilation, l.Spec.Choice = scenario.Dilation{Factor: choice.Factor}, &choice.Choice
	l.around = l.Spec.expected(choice.Times) - l.Spec.FixedLength()
	var expected time.Duration
	for _, spec := range l.Runs() {
		expected += spec.expected(choice.Times)
	}
	slowed := "not slowed down"
	if choice.Factor > 1 {
		slowed = fmt.Sprintf("slowed down %g times", choice.Factor)
	}
	progress.say(fmt.Sprintf("time is %s, as a trial of %s chose for such rollouts on this machine; expected duration: about %s, without probes, cycle and certificate storm",
		slowed, choice.Choice.Made.Local().Format("2006-01-02 15:04"), expected.Round(time.Second)))
	return l, nil
}

// choice is the one that is kept for such rollouts, if nobody asked for trials; else that of trials.
func (l Ladder) choice(ctx context.Context, versions *component.Versions, progress Progress) (*dilation.Choice, error) {
	dir, err := component.KeptDir(l.Spec.Programs, "dilation")
	if err != nil {
		return nil, err
	}
	try := func() (*dilation.Choice, bool, error) { return l.tryAll(ctx, versions, progress) }
	return dilation.Store{Dir: dir, Say: progress.say}.Choose(l.likeness(), l.ByDefault, try)
}

// tryAll does the trials of a ladder, and reports whether all converged.
func (l Ladder) tryAll(ctx context.Context, versions *component.Versions, progress Progress) (_ *dilation.Choice, converged bool, err error) {
	converged = true
	choice := dilation.Choice{Factor: 1, Choice: record.DilationChoice{Limit: record.Saturated, Made: new(time.Now().UTC())}}
	for _, spec := range l.trials() {
		progress.say(fmt.Sprintf("trial without dilation: %s, to choose the factor by which time is slowed down (--dilate)", spec.Name()))
		run, err := try(ctx, spec, versions, progress)
		if err != nil {
			return nil, false, fmt.Errorf("choosing the factor of --dilate auto: %w", err)
		}
		trial, times, err := dilation.Judge(&run)
		if err != nil {
			return nil, false, fmt.Errorf("choosing the factor of --dilate auto: trial %s: %w", spec.Name(), err)
		}
		converged = converged && run.Status == record.StatusCompleted
		choice.Choice.Trials = append(choice.Choice.Trials, trial)
		choice.Factor = max(choice.Factor, trial.ControlPlane.Factor, trial.Instrument.Factor)
		choice.Times = choice.Times.OrLonger(times)
		progress.say(fmt.Sprintf("trial %s: in a rollout of %.1f s, threads of the control plane waited %.1f s for a processor and used %.1f s; scaler's waited %.1f s and used %.1f s",
			spec.Name(), trial.Seconds, trial.ControlPlane.WaitedSeconds, trial.ControlPlane.CPUSeconds, trial.Instrument.WaitedSeconds, trial.Instrument.CPUSeconds))
	}
	return &choice, converged, nil
}

// trials are the rollouts that choose the factor: one of the largest size in each mode and data plane,
// without what comes after a rollout.
func (l Ladder) trials() (all []Spec) {
	spec := l.Spec
	m := spec.Mesh
	spec.Mesh.Pods = scenario.List[int]{slices.Max(m.Pods)}
	spec.Instrument.Dilation, spec.Instrument.Calibrate, spec.Repeat, spec.Keep = scenario.Dilation{Factor: 1}, false, 0, false
	spec.Phases.Baseline, spec.Phases.Settle, spec.Phases.Steady = scenario.Duration(time.Second), 0, scenario.Duration(time.Second)
	spec.Phases.Cycle, spec.ControlPlane.Upgrade = 0, scenario.Upgrade{}
	spec.Load = scenario.Load{Arrival: spec.Load.Arrival}
	for _, mode := range m.Mode {
		for _, dataplane := range m.Dataplane {
			spec.Mesh.Mode, spec.Mesh.Dataplane = scenario.List[string]{mode}, scenario.List[string]{dataplane}
			all = append(all, spec)
		}
	}
	return all
}

// likeness is what rollouts have in common that get the same factor: the machine and the load. The control plane's
// version and settings are not part of it: runs that differ in them are compared, and need the same factor.
func (l Ladder) likeness() any {
	type trial struct {
		Scenario scenario.Scenario
		Parts    scenario.Parts
		Knobs    record.Knobs
		Mesh     *record.Mesh
	}
	var trials []trial
	for _, spec := range l.trials() {
		spec.Phases.ConvergeTimeout = 0
		r := newRecord(spec)
		asked := r.Scenario
		asked.ControlPlane = scenario.ControlPlane{Name: asked.ControlPlane.Name, Processors: asked.ControlPlane.Processors, Replicas: asked.ControlPlane.Replicas}
		asked.Mesh.Sidecars.Version = ""
		trials = append(trials, trial{asked, r.Parts, r.Environment.Knobs, r.Mesh})
	}
	return []any{place.Machine(), trials}
}

// trialFolder is the folder of a trial's record below the output folder, which this process alone writes to.
const trialFolder = ".trial"

// try does a trial, whose record is not kept. One that does not converge in time was
// short of processors all the more, and is used as it is.
func try(ctx context.Context, spec Spec, versions *component.Versions, progress Progress) (_ record.Run, err error) {
	spec.Out = filepath.Join(spec.Out, trialFolder)
	if err := os.RemoveAll(spec.Out); err != nil { // of one that was killed
		return record.Run{}, fmt.Errorf("removing an earlier trial: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(spec.Out)) }()
	folder, err := record.Open(spec.Out)
	if err != nil {
		return record.Run{}, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	run, err := execute(ctx, spec, folder, versions, progress)
	if errors.Is(err, phases.ErrUnconverged) && ctx.Err() == nil {
		err = nil
	}
	return run, err
}

// expected is about how long a run takes, without probes, cycle and certificate storm. Its rollout is taken to be as
// long as that of a trial, times the factor: one that is limited by processors takes no longer.
func (s Spec) expected(trial dilation.Times) time.Duration {
	return trial.Around + s.FixedLength() + s.slowed(trial.Rollout)
}
