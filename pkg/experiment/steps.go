// Package experiment is what scaler's experiments share: ordered steps that are
// undone in reverse, the facts about this machine and this program that every
// record states, checks of what was asked for, and how the mechanisms are put
// together in the same way everywhere: API server, keys, real sidecars, programs.
// What an experiment measures, and how, is its own package's.
package experiment

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

// ErrUnconverged reports that the rollout's time limit passed first. The run's
// record is complete but for the phases after rollout.
var ErrUnconverged = errors.New("the mesh did not converge")

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
}

// RunSteps does the steps in order until one fails or ctx ends, then undoes in
// reverse order what was done. Undoing is not subject to ctx, which may have been
// cancelled, but to a time limit of its own, and to the user's asking to hurry. The error is that of the step, with
// its name, or the cause of ctx, joined with those of undoing.
func RunSteps(ctx context.Context, steps []Step) (err error) {
	var undos []Step
	defer func() {
		down, cancel := context.WithTimeout(interrupt.Uncancelled(ctx), TeardownTime)
		defer cancel()
		for _, u := range slices.Backward(undos) {
			if _, undoErr := u.Do(down); undoErr != nil {
				err = errors.Join(err, &TeardownError{u.Name, undoErr})
			}
		}
	}()
	for _, s := range steps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		undo, err := s.Do(ctx)
		if undo != nil {
			undos = append(undos, Step{s.Name, func(ctx context.Context) (Undo, error) { return nil, undo(ctx) }})
		}
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
