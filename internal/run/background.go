package run

import (
	"context"
	"fmt"
	"sync"
)

// background is a set of goroutines of a run that end together.
type background struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	fail   context.CancelCauseFunc
}

func newBackground(ctx context.Context, fail context.CancelCauseFunc) *background {
	b := &background{fail: fail}
	b.ctx, b.cancel = context.WithCancel(ctx)
	return b
}

// run starts one of them. An error before they are stopped ends the run.
func (b *background) run(what string, do func(context.Context) error) {
	b.wg.Go(func() {
		if err := do(b.ctx); err != nil && b.ctx.Err() == nil {
			b.fail(fmt.Errorf("%s: %w", what, err))
		}
	})
}

// stop ends them and returns when all have ended.
func (b *background) stop() {
	b.cancel()
	b.wg.Wait()
}

// undo is stop as the undo of a step.
func (b *background) undo(context.Context) error {
	b.stop()
	return nil
}
