package limits

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/pkg/record"
)

// Search does the runs, one after the other, until the bracket is narrow enough or there is
// another end. The result is in its folder after every run. A folder that has the result of
// the same question is resumed.
//
// The result is not nil once the first run was to begin. The error wraps context.Canceled
// when ctx ended the search, and says of a run that failed for another reason than its
// control plane what the reason was.
func Search(ctx context.Context, o Options) (*Result, error) {
	o.complete()
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Run == nil {
		o.Run = run.RunOne
	}
	r, err := resume(o)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Spec.Out, 0o755); err != nil {
		return nil, fmt.Errorf("parsing --out: %w", err)
	}
	o.announce(r)
	runErr := o.search(ctx, r)
	r.Finished = new(time.Now().UTC())
	return r, errors.Join(runErr, r.save(o.Spec.Out))
}

// search tries values until there is an end, which it concludes.
func (o Options) search(ctx context.Context, r *Result) error {
	for {
		bracket := o.Scale.Bracket(r.tries())
		value, done := o.Scale.Next(r.tries())
		switch {
		case done && bracket.Passes == nil:
			r.conclude(NotMet, bracket)
			return nil
		case done && bracket.Fails == nil:
			r.conclude(MetThroughout, bracket)
			return nil
		case done:
			r.conclude(Found, bracket)
			return nil
		case len(r.Runs) >= o.MaxRuns:
			r.conclude(MaxRunsDone, bracket)
			return nil
		}
		r.conclude(Interrupted, bracket)
		if err := r.save(o.Spec.Out); err != nil {
			return err
		}
		tried, err := o.try(ctx, value, len(r.Runs)+1)
		if ctx.Err() != nil {
			return errors.Join(err, context.Cause(ctx))
		}
		r.Runs = append(r.Runs, tried)
		o.report(r)
		switch {
		case err != nil:
			r.conclude(Failed, bracket)
			return err
		case tried.Outcome == Unknown:
			r.conclude(Undecided, bracket)
			return fmt.Errorf("%w: %s with %s: %s", ErrUndecided, o.Objective.Text, o.Find.Print(value), tried.Why)
		}
	}
}

// ErrUndecided marks a search that ended because a run did not decide the objective.
var ErrUndecided = errors.New("the objective is undecided")

// try does the run of a value. The error is that of a run that failed for another reason
// than its control plane.
func (o Options) try(ctx context.Context, value float64, number int) (Tried, error) {
	spec := o.at(value)
	spec.Out = o.folder(value)
	o.say(fmt.Sprintf("run %d: %s", number, o.Find.Print(value)))
	begin := time.Now()
	run, err := o.Run(ctx, spec, o.Progress)
	tried := Tried{Value: value, Status: run.Status, Seconds: time.Since(begin).Seconds(), Record: run.Below(o.Spec.Out)}
	return o.judge(tried, &run, err)
}

// judge decides what a run says of the objective.
func (o Options) judge(tried Tried, run *record.Run, err error) (Tried, error) {
	observed := o.Objective.Of(run)
	tried.Figure, tried.Doubts = observed.Value, observed.Doubts
	missed := func(why string) (Tried, error) {
		tried.Outcome, tried.Why = Missed, why
		return tried, nil
	}
	unknown := func(why string) (Tried, error) {
		tried.Outcome, tried.Why = Unknown, why
		return tried, nil
	}
	has := func(reason record.Reason) bool {
		return slices.ContainsFunc(run.Warnings, func(w record.Warning) bool { return w.Reason == reason })
	}
	switch {
	case controlplane.IsOutOfMemory(err):
		return missed("the control plane was killed for exceeding its memory limit")
	case errors.Is(err, experiment.ErrUnconverged):
		return missed("the mesh did not converge within the time limit")
	case err != nil && has(record.ReasonCrashed):
		return missed("the control plane ended: " + experiment.FirstLine(err))
	case err != nil:
		tried.Outcome, tried.Why = Unknown, experiment.FirstLine(err)
		return tried, err
	case observed.Withheld:
		return unknown(fmt.Sprintf("fewer than %d changes were made: want a longer --change-duration, or more --probes", record.ChangesForP99))
	case !observed.Known():
		return unknown("the run did not measure it: see the warnings of its record")
	case observed.Lost && !observed.Met:
		return missed("it lies among what was lost")
	case !observed.Met:
		tried.Outcome = Missed
		return tried, nil
	case has(record.ReasonSlowChange):
		return unknown(fmt.Sprintf("it was met, but changes were written more slowly than asked (%.3g/s of %.3g/s): this machine cannot make that rate",
			*run.Change.AchievedPerSecond, *run.Change.OfferedPerSecond))
	}
	tried.Outcome = Met
	return tried, nil
}

// folder is a new folder for the run of a value.
func (o Options) folder(value float64) string {
	name := strings.NewReplacer("/s", "", " ", "-").Replace(string(o.Find) + "-" + o.Find.Print(value))
	path := filepath.Join(o.Spec.Out, name)
	for n := 2; ; n++ {
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) || n > maxRuns {
			return path
		}
		path = filepath.Join(o.Spec.Out, fmt.Sprintf("%s-%d", name, n))
	}
}

// announce says, before anything is started, how long the search may take.
func (o Options) announce(r *Result) {
	s := o.Scale
	runs := o.left(r)
	text := fmt.Sprintf("searching the %s with %s, from %s, between %s and %s, to %g%%: at most %s",
		kinds[o.Find].best, o.Objective.Text, o.Find.Print(s.Start), o.Find.Print(s.Min), o.Find.Print(s.Max), s.Resolution*100, output.Many(runs, "run"))
	text += fmt.Sprintf(", the first about %s (phases %s; the rollout may take %s); about %s at most",
		rounded(o.length(s.Start)+run.AroundPhases), rounded(o.length(s.Start)), time.Duration(o.Spec.Phases.ConvergeTimeout), o.remaining(r, run.AroundPhases))
	if len(r.Runs) > 0 {
		text += fmt.Sprintf("; resumed, %s done before", output.Many(len(r.Runs), "run"))
	}
	o.say(text)
}

// left is how many runs there may still be.
func (o Options) left(r *Result) int {
	return min(o.Scale.Most(r.tries()), max(0, o.MaxRuns-len(r.Runs)))
}

// remaining is how long they may take, if each run takes so much in addition to its
// phases.
func (o Options) remaining(r *Result, around time.Duration) time.Duration {
	seconds := o.Scale.Worst(r.tries(), o.left(r), func(value float64) float64 { return (o.length(value) + around).Seconds() })
	return rounded(time.Duration(seconds * float64(time.Second)))
}

func rounded(d time.Duration) time.Duration { return d.Round(time.Second) }

// length is how long the phases of fixed length of a run take on this machine.
func (o Options) length(value float64) time.Duration { return o.at(value).FixedLength() }

// report says what came of the last run and how long the search may still take.
func (o Options) report(r *Result) {
	last := r.Runs[len(r.Runs)-1]
	text := fmt.Sprintf("%s: %s", o.Find.Print(last.Value), last.Outcome)
	if last.Figure != nil {
		text += fmt.Sprintf(", %s is %s", o.Objective.Figure, o.Objective.Print(*last.Figure))
	}
	if last.Why != "" {
		text += ": " + last.Why
	}
	took := time.Duration(last.Seconds * float64(time.Second))
	o.say(fmt.Sprintf("%s; took %s; at most %s more, about %s", text, rounded(took), output.Many(o.left(r), "run"), o.remaining(r, max(0, took-o.length(last.Value)))))
}

func (o Options) say(msg string) {
	if o.Progress.Say != nil {
		o.Progress.Say(msg)
	}
}
