// Package steps does the ordered steps of an experiment and undoes them in reverse, however it ends, within
// a time limit. What the steps are is left to its users.
package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"scaler.mesh/scaler/internal/interrupt"
)

// Undo takes back what a step did.
type Undo = func(context.Context) error

// TeardownTime bounds the taking down of a run after it ended or was
// interrupted.
const TeardownTime = 60 * time.Second

// AnalysisTime bounds what steps conclude from what was measured. It is not part of
// TeardownTime, unless the run was interrupted: the user waits then.
const AnalysisTime = 10 * time.Minute

// interruptedAnalysis is the part of TeardownTime that analysis may take after an
// interrupt, if so much of it is not reserved for undoing.
const interruptedAnalysis = TeardownTime / 2

// ErrAnalysisTime is the cause of a context of Step.Conclude when its time has passed.
var ErrAnalysisTime = errors.New("the time limit of the analysis passed")

// TeardownError reports that something that a step did was not taken back: what it
// started may still be there.
type TeardownError struct {
	Step string
	Err  error
}

// Error is one line, if that of the cause is.
func (e *TeardownError) Error() string { return fmt.Sprintf("taking back %q: %v", e.Step, e.Err) }

// Unwrap returns the cause.
func (e *TeardownError) Unwrap() error { return e.Err }

// Step is one of an experiment's ordered steps.
type Step struct {
	// Name is a gerund, as in "starting the cluster": errors begin with it.
	Name string
	// Do does the step. It may return an undo, also with an error, which is called
	// when the experiment ends, however it ends; nil = there is nothing to undo.
	Do func(context.Context) (undo Undo, err error)
	// Conclude computes figures from what the step and those after it measured, if Do
	// returned no error; nil = there are none. It is called after the later steps have been
	// undone and before this one is, also if the experiment fails, with a time limit
	// of its own.
	Conclude func(context.Context) error
	// Reserve is the part of TeardownTime that is reserved for the undo; 0 = it has what
	// earlier undos leave. The sum of all is below TeardownTime.
	Reserve time.Duration
}

// Run does the steps in order until one fails or ctx ends, then undoes in
// reverse order what was done. Undoing is not subject to ctx, which may have been
// cancelled, but to a time limit of its own, and to the user's asking to hurry. The error is that of the step, with
// its name, or the cause of ctx, joined with those of undoing.
func Run(ctx context.Context, steps []Step) (err error) {
	var done []undone
	defer func() {
		left := TeardownTime // that is not reserved
		for _, u := range done {
			left -= u.Reserve
		}
		for _, u := range slices.Backward(done) {
			if u.Conclude != nil {
				took, concludeErr := conclude(ctx, u.Conclude, max(0, min(interruptedAnalysis, left)))
				left -= took
				err = errors.Join(err, concludeErr)
			}
			begin := time.Now()
			if u.undo != nil {
				down, cancel := context.WithTimeout(interrupt.Uncancelled(ctx), u.Reserve+max(0, left))
				if undoErr := u.undo(down); undoErr != nil {
					err = errors.Join(err, &TeardownError{u.Name, undoErr})
				}
				cancel()
			}
			left += u.Reserve - time.Since(begin)
		}
	}()
	for _, s := range steps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		undo, err := s.Do(ctx)
		if err != nil {
			s.Conclude = nil
		}
		done = append(done, undone{s, undo})
		if err != nil {
			// What a step reports after an interrupt is the interrupt's doing.
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return nil
}

// undone is a step that was done, and how it is taken back.
type undone struct {
	Step
	undo Undo
}

// conclude calls f with the time limit of the analysis, which becomes that for an
// interrupted one when the user interrupts. It returns how much of the time for taking
// down was used: what passed since the interrupt.
func conclude(ctx context.Context, f func(context.Context) error, interrupted time.Duration) (took time.Duration, err error) {
	limited, cancel := context.WithTimeoutCause(interrupt.Uncancelled(ctx), AnalysisTime, ErrAnalysisTime)
	defer cancel()
	limited, hurry := context.WithCancelCause(limited)
	defer hurry(nil)
	ended := make(chan struct{})
	waited := make(chan time.Duration, 1)
	go func() {
		var since time.Time
		defer func() {
			if !since.IsZero() {
				waited <- time.Since(since)
			}
			close(waited)
		}()
		select {
		case <-ended:
			return
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), context.Canceled) {
				return // it failed: nobody waits
			}
			since = time.Now()
		}
		timer := time.NewTimer(interrupted)
		defer timer.Stop()
		select {
		case <-ended:
		case <-timer.C:
			hurry(ErrAnalysisTime)
			<-ended
		}
	}()
	err = f(limited)
	close(ended)
	if cause := context.Cause(limited); err != nil && errors.Is(cause, ErrAnalysisTime) {
		err = fmt.Errorf("%w: %w; samples.jsonl of the record has what programs used", cause, err)
	}
	return <-waited, err
}
