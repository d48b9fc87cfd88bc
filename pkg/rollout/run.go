package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// teardownTime bounds the taking down of a run after it ended or was
// interrupted.
const teardownTime = 60 * time.Second

// ErrUnconverged says that the rollout's time limit passed first. The run's
// record is complete but for the phases after rollout.
var ErrUnconverged = errors.New("the mesh did not converge")

// step is one of an experiment's ordered steps. do may return what takes it
// back, which is called when the experiment ends, however it ends.
type step struct {
	name string
	do   func(context.Context) (undo func(context.Context) error, err error)
}

// runSteps does the steps in order until one fails, then takes back in reverse
// order all that was done. Taking back is not subject to ctx, which may have
// been cancelled, but to a time limit of its own.
func runSteps(ctx context.Context, steps []step) (err error) {
	var undos []step
	defer func() {
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), teardownTime)
		defer cancel()
		for _, u := range slices.Backward(undos) {
			if _, undoErr := u.do(down); undoErr != nil {
				err = errors.Join(err, fmt.Errorf("taking back %q: %w", u.name, undoErr))
			}
		}
	}()
	for _, s := range steps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		undo, err := s.do(ctx)
		if undo != nil {
			undos = append(undos, step{s.name, func(ctx context.Context) (func(context.Context) error, error) { return nil, undo(ctx) }})
		}
		if err != nil {
			// What a step reports after an interrupt is the interrupt's doing.
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}
