package limits

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/dilation"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/series"
	"scaler.mesh/scaler/pkg/record"
)

// Search does the runs, one after the other, until the bracket is narrow enough or there is
// another end. The result is in its folder after every run. A folder that has the result of
// the same question is resumed.
//
// The result is not nil once the first run was to begin. The error wraps context.Canceled
// when ctx ended the search, and says of a run that failed for another reason than its
// control plane what the reason was. A field that cannot be used is a *[scenario.Error], and then
// nothing was started.
func Search(ctx context.Context, o Options) (_ *Result, err error) {
	o.complete()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Run == nil {
		o.Run = run.RunOne
		if err := o.Spec.Fits(); err != nil {
			return nil, err
		}
	}
	r := newResult(o)
	folder, earlier, err := series.Open(o.Spec.Out, FileName, r)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, folder.Close()) }()
	if earlier != nil {
		r.resume(earlier)
	}
	err = series.Series{
		Plan: &search{Options: o, result: r, machine: run.Machine(ctx, o.Spec), specs: map[float64]run.Spec{}}, Headline: o.headline(), AtMost: true, Out: o.Spec.Out, Folder: folder, Before: len(r.Runs), Say: o.Progress.Say, Begun: o.Progress.Begun,
	}.Run(ctx)
	r.conclude(o.end(r, err))
	return r, errors.Join(err, folder.Save())
}

// search is the plan of a series: the next value follows from those that were tried.
type search struct {
	Options
	result  *Result
	trying  float64 // value of the run that is being done
	machine dilation.Machine
	specs   map[float64]run.Spec // of runs, by value, as far as they were asked for
}

// Next returns the run of the next value.
func (s *search) Next() (series.Run, bool) {
	value, done := s.Scale.Next(s.result.tries())
	if done || len(s.result.Runs) >= s.MaxRuns {
		return series.Run{}, false
	}
	s.trying = value
	spec := s.spec(value)
	spec.Out = s.folder(value)
	return series.Run{
		Name: s.Find.Print(value), Expected: spec.Expected(),
		Do: func(ctx context.Context) (record.Run, error) { return s.Run(ctx, spec, s.Progress) },
	}, true
}

// end returns the status of a search that ended with an error, or without one.
func (o Options) end(r *Result, err error) series.Status {
	bracket := o.Scale.Bracket(r.tries())
	_, done := o.Scale.Next(r.tries())
	switch {
	case errors.Is(err, ErrUndecided):
		return Undecided
	case err != nil:
		return r.Status
	case !done:
		return MaxRunsDone
	case bracket.Passes == nil:
		return NotMet
	case bracket.Fails == nil:
		return MetThroughout
	}
	return Found
}

// ErrUndecided marks a search that ended because a run did not decide the objective.
var ErrUndecided = errors.New("the objective is undecided")

// Take decides what the run says of the objective.
func (s *search) Take(done series.Done, run *record.Run, err error) (text string, end error) {
	tried, err := s.judge(Tried{Value: s.trying, Done: done}, run, err)
	s.result.Runs = append(s.result.Runs, tried)
	s.result.conclude(series.Interrupted)
	text = string(tried.Outcome)
	if tried.Figure != nil {
		text += fmt.Sprintf(", %s is %s", s.Objective.Figure, s.Objective.Print(*tried.Figure))
	}
	if tried.Why != "" {
		text += ": " + tried.Why
	}
	if err == nil && tried.Outcome == Unknown {
		err = fmt.Errorf("%w: %s with %s: %s", ErrUndecided, s.Objective.Text, s.Find.Print(tried.Value), tried.Why)
	}
	return text, err
}

// judge decides what a run says of the objective.
func (o Options) judge(tried Tried, run *record.Run, err error) (Tried, error) {
	observed := o.Objective.Of(run)
	tried.Figure, tried.Warnings, tried.Outcome = observed.Value, observed.Warnings, Met
	has := func(reason record.Reason) bool {
		return slices.ContainsFunc(run.Warnings, func(w record.Warning) bool { return w.Reason == reason })
	}
	switch {
	case controlplane.IsOutOfMemory(err):
		tried.Outcome, tried.Why = Missed, "the control plane was killed for exceeding its memory limit"
	case errors.Is(err, phases.ErrUnconverged):
		tried.Outcome, tried.Why = Missed, "the mesh did not converge within the time limit"
	case err != nil && has(record.ReasonCrashed):
		tried.Outcome, tried.Why = Missed, "the control plane ended: "+output.FirstLine(err)
	case err != nil:
		tried.Outcome, tried.Why = Unknown, output.FirstLine(err)
		return tried, err
	case observed.Withheld:
		tried.Outcome, tried.Why = Unknown, fmt.Sprintf("fewer than %d changes were made: want a longer --change-duration, or more --probes", record.ChangesForP99)
	case !observed.Known():
		tried.Outcome, tried.Why = Unknown, "the run did not measure it: see the warnings of its record"
	case observed.Lost && !observed.Met:
		tried.Outcome, tried.Why = Missed, "it lies among what was lost"
	case !observed.Met:
		tried.Outcome = Missed
	case has(record.ReasonSlowChange):
		tried.Outcome, tried.Why = Unknown, fmt.Sprintf("it was met, but changes were written more slowly than asked (%.3g/s of %.3g/s): this machine cannot make that rate",
			*run.Change.AchievedPerSecond, *run.Change.OfferedPerSecond)
	}
	return tried, nil
}

// folder returns a new folder for the run of a value.
func (o Options) folder(value float64) string {
	first := filepath.Join(o.Spec.Out, strings.NewReplacer("/s", "", " ", "-").Replace(string(o.Find)+"-"+o.Find.Print(value)))
	path := func(n int) string {
		if n == 1 {
			return first
		}
		return fmt.Sprintf("%s-%d", first, n)
	}
	return path(series.Free(1, path))
}

// headline states what is searched for, before anything is started.
func (o Options) headline() string {
	s := o.Scale
	return fmt.Sprintf("searching the %s with %s, from %s, between %s and %s, to %g%%",
		kinds[o.Find].best, o.Objective.Text, o.Find.Print(s.Start), o.Find.Print(s.Min), o.Find.Print(s.Max), s.Resolution*100)
}

// Left returns how many runs there may still be, and about how long they take.
func (s *search) Left() (runs int, expected time.Duration) {
	tries := s.result.tries()
	runs = min(s.Scale.Most(tries), max(0, s.MaxRuns-len(s.result.Runs)))
	seconds := s.Scale.Worst(tries, runs, func(value float64) float64 { return s.spec(value).Expected().Seconds() })
	return runs, time.Duration(seconds * float64(time.Second))
}

// spec returns the specification of the run of a value. The runs of a search are not compared with each other, and each is slowed down as it needs.
func (s *search) spec(value float64) run.Spec {
	spec, known := s.specs[value]
	if !known {
		spec = s.at(value)
		run.ChooseDilation(s.machine, &spec)
		s.specs[value] = spec
	}
	return spec
}
