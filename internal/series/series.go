// Package series does runs one after the other. It announces how long they take, shows how they get
// on, keeps a result in a file after each, and resumes a series that was interrupted or killed. Which
// runs there are and what they say is left to its users: a search, a comparison, a ladder of sizes.
package series

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
)

// Run is one run of a series.
type Run struct {
	Name     string        // in messages, as in "4/s" or "istiod-strict-200"
	Expected time.Duration // about how long it takes on this machine, from its start to its end
	Do       func(context.Context) (record.Run, error)
}

// Done is the part of every result that describes a run that was done.
type Done struct {
	Status  record.Status `json:"status,omitempty"`
	Seconds float64       `json:"seconds"`          // that the run took, cluster included
	Record  string        `json:"record,omitempty"` // its folder, below that of the result
}

// Plan chooses the runs of a series and judges their results.
type Plan interface {
	// Next returns the run to do after those that were taken; false = none is left.
	Next() (Run, bool)
	// Take takes a run that ended by itself, with its error, and returns its result in words. An
	// error that it returns ends the series.
	Take(done Done, run *record.Run, err error) (text string, end error)
	// Left returns how many runs are left, or at most left, and about how long they take.
	Left() (runs int, expected time.Duration)
}

// Series executes a plan.
type Series struct {
	Plan     Plan
	Headline string       // announces what is done; "" = nothing is announced or said of runs
	AtMost   bool         // the plan may end before all runs that it has left are done
	Out      string       // folder below which the records are
	Folder   *Folder      // keeps its result, as it is before and after each run, and how the series ended; nil = nothing is kept
	Before   int          // runs that were done before the series was resumed
	Say      func(string) // nil = silence
	// Begun is called when a run begins; nil = nothing is.
	Begun func(Position)
}

// Position is the position in a series when a run of it begins.
type Position struct {
	Number, Runs int
	AtMost       bool          // there may be fewer runs
	After        time.Duration // about how long those after this one take
}

// Run does the runs that are left. With Folder, the result is on the disk before each run, so that a
// process that is killed loses no run that was done. The result as the user of the package concludes it
// is saved by the user.
//
// The error wraps context.Canceled if ctx ended the series: a run that it cut short is not taken. Else it is that
// of Plan.Take, or of saving.
func (s Series) Run(ctx context.Context) error {
	if s.Say == nil {
		s.Say = func(string) {}
	}
	err := s.runs(ctx)
	if s.Folder == nil {
		return err
	}
	head := s.Folder.result.head()
	switch {
	case err == nil:
		head.Status = Complete
	case ctx.Err() != nil:
		head.Status = Interrupted
	default:
		head.Status = Failed
	}
	head.Finished = new(time.Now().UTC())
	return err
}

// runs does the runs that are left, one after the other.
func (s Series) runs(ctx context.Context) error {
	number := s.Before
	left, expected := s.Plan.Left()
	if s.Headline != "" {
		s.announce(left, expected)
	}
	var took pace
	for {
		if err := s.save(); err != nil {
			return err
		}
		run, ok := s.Plan.Next()
		if !ok {
			return nil
		}
		number++
		if s.Headline != "" {
			s.Say(fmt.Sprintf("run %d of %s: %s", number, s.atMost(fmt.Sprint(number-1+left)), run.Name))
		}
		if s.Begun != nil {
			s.Begun(Position{Number: number, Runs: number - 1 + left, AtMost: s.AtMost, After: took.of(max(0, expected-run.Expected))})
		}
		begin := time.Now()
		did, err := run.Do(ctx)
		elapsed := time.Since(begin)
		if ctx.Err() != nil && (err != nil || did.Status != record.StatusCompleted) {
			return interruption(ctx, err)
		}
		took.add(&did, run.Expected, elapsed)
		text, end := s.Plan.Take(Done{Status: did.Status, Seconds: elapsed.Seconds(), Record: did.Below(s.Out)}, &did, err)
		left, expected = s.Plan.Left()
		if s.Headline != "" {
			s.report(run.Name, text, elapsed, left, took.of(expected))
		}
		switch {
		case end != nil:
			return end
		case ctx.Err() != nil: // it ended before it noticed
			return interruption(ctx, nil)
		}
	}
}

// interruption returns the error of a series that ctx ended. err is that of the run.
func interruption(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return errors.Join(context.Cause(ctx), err) // what went wrong while the run was taken down
}

// announce states, before anything is started, how many runs there are and how long they take.
func (s Series) announce(left int, length time.Duration) {
	text := fmt.Sprintf("%s: %s, about %s", s.Headline, s.atMost(output.Many(left, "run")), seconds(length))
	switch {
	case left == 0:
		text = fmt.Sprintf("%s: %s done before, and none is left", s.Headline, output.Many(s.Before, "run"))
	case s.Before > 0:
		text += fmt.Sprintf("; resumed, %s done before", output.Many(s.Before, "run"))
	}
	s.Say(text)
}

// report prints the result of a run, and the expected time of the others.
func (s Series) report(name, text string, took time.Duration, left int, length time.Duration) {
	text = fmt.Sprintf("%s: %s; took %s", name, text, seconds(took))
	if left > 0 {
		text += fmt.Sprintf("; %s more, about %s", s.atMost(output.Many(left, "run")), seconds(length))
	}
	s.Say(text)
}

func (s Series) atMost(text string) string {
	if s.AtMost {
		return "at most " + text
	}
	return text
}

func (s Series) save() error {
	if s.Folder == nil {
		return nil
	}
	return s.Folder.Save()
}

func seconds(d time.Duration) time.Duration { return d.Round(time.Second) }

// pace has the time that runs took, and their expected time.
type pace struct{ took, expected time.Duration }

// add takes a run that was done. A run that ended early, or was started twice, does not count: its time does not predict the others.
func (p *pace) add(did *record.Run, expected, took time.Duration) {
	again := did.Environment.Dilation != nil && did.Environment.Dilation.Auto != nil && did.Environment.Dilation.Auto.Restart != nil
	if did.Status == record.StatusCompleted && !again {
		p.took, p.expected = p.took+took, p.expected+expected
	}
}

// of returns how long takes what is expected to take so long, if it differs from that as those that were done did.
func (p *pace) of(expected time.Duration) time.Duration {
	if p.expected == 0 {
		return expected
	}
	return time.Duration(float64(expected) * float64(p.took) / float64(p.expected))
}

// IsFailure reports that a run failed. One whose mesh did not converge, or whose control plane
// exceeded its memory, is a result.
func IsFailure(err error) bool {
	return err != nil && !errors.Is(err, phases.ErrUnconverged) && !controlplane.IsOutOfMemory(err)
}

// Turns repeats a round of runs, every other time from the last to the first. What drifts meanwhile,
// as a disk that fills or a machine that warms up, then looks like the spread between
// repeats, and not like an effect of what differs in a round. repeat is from 1 on.
func Turns[T any](repeats int, round func(repeat int) []T) (all []T) {
	for repeat := 1; repeat <= repeats; repeat++ {
		turn := round(repeat)
		if repeat%2 == 0 {
			slices.Reverse(turn)
		}
		all = append(all, turn...)
	}
	return all
}

// maxFree bounds the search for a free number.
const maxFree = 10_000

// Free returns the first number from one on whose path does not exist: records of runs that were
// interrupted or killed stay where they are.
func Free(from int, path func(number int) string) int {
	for n := from; ; n++ {
		if _, err := os.Lstat(path(n)); errors.Is(err, os.ErrNotExist) || n > maxFree {
			return n
		}
	}
}
