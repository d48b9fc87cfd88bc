package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/pkg/record"
)

// tooFast reports that a program waited for processors for too large a share of a phase: the factor is too small.
type tooFast struct{ record.DilationRestart }

func (e *tooFast) Error() string {
	return fmt.Sprintf("%s waited for processors for %.0f %% of %s, and the bound is %.0f %%: a dilation of %g is too small", e.Component, e.Share*100, e.Phase, e.Bound*100, e.Factor)
}

// isTooFast returns the error of a run that is to be started again; nil for others.
func isTooFast(err error) *tooFast {
	slow, _ := errors.AsType[*tooFast](err)
	return slow
}

// startsAgain returns why a run that ended is to be started again; nil if it is not, also where something that it
// started may still be there.
func startsAgain(err error) *tooFast {
	if _, left := errors.AsType[*steps.TeardownError](err); left {
		return nil
	}
	return isTooFast(err)
}

// waits watches how long the control plane waits for processors, in the phases by whose load the factor is chosen:
// rollout and changes at a rate. Other phases are judged by their figures alone, as these are, which
// have warnings. So is scaler (docs/results/dilation.md).
type waits struct {
	program string
	late    func(program string, since time.Time) (late time.Duration, until time.Time, ok bool)
	length  map[record.PhaseName]time.Duration // about, on this machine
	factor  float64
	found   func(*tooFast) // is called once in a phase

	mu    sync.Mutex
	phase watchedPhase
}

// watchedPhase is the phase that is watched.
type watchedPhase struct {
	name  record.PhaseName
	begin time.Time
	late  time.Duration // that the program waited until a moment
	until time.Time
	found bool
}

// look takes the readings that there are of the phase that goes on since a moment, or ended. It calls found when the program waited for
// more than the bound of the phase: of the time that it is expected to take or, if it takes longer, took until then.
func (w *waits) look(name record.PhaseName, begin time.Time) {
	length, known := w.length[name]
	if !known || begin.IsZero() {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.phase.name != name || !w.phase.begin.Equal(begin) {
		w.phase = watchedPhase{name: name, begin: begin, until: begin}
	}
	p := &w.phase
	late, until, ok := w.late(w.program, p.until)
	if !ok {
		return
	}
	p.late, p.until = p.late+late, until
	share := p.late.Seconds() / max(length, p.until.Sub(begin)).Seconds()
	if share <= record.Saturated || p.found {
		return
	}
	p.found = true
	w.found(&tooFast{record.DilationRestart{
		At: time.Now().UTC(), Factor: w.factor, Component: w.program, Phase: name, Share: share, Bound: record.Saturated,
	}})
}

// watchEvery is the time between two looks, in the modelled time.
const watchEvery = 2 * time.Second

// startWatchingWaits starts the watching of waits, unless time cannot be slowed down.
func (r *run) startWatchingWaits(ctx context.Context) (steps.Undo, error) {
	if r.spec.inRealTime(r.driver) != nil || !r.usageKnown() {
		return nil, nil
	}
	r.waits = &waits{
		program: r.controlPlaneName(), late: r.sampler.Late, factor: r.spec.dilation(),
		length: map[record.PhaseName]time.Duration{record.PhaseRollout: r.rolloutLength, record.PhaseChange: time.Duration(r.spec.Phases.Changes)},
		found: func(slow *tooFast) {
			if r.spec.StartsAgain {
				r.fail(slow)
				return
			}
			r.progress.say(slow.Error() + "; its figures have warnings")
		},
	}
	b := newBackground(ctx, r.fail)
	b.run("watching waits", func(ctx context.Context) error {
		tick := time.NewTicker(r.spec.slowed(watchEvery))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				now := r.timeline.Current()
				r.waits.look(now.Phase, now.Since)
			}
		}
	})
	return b.undo, nil
}

// lastLookAtWaits judges the phase that has ended last.
func (r *run) lastLookAtWaits() {
	if windows := r.timeline.Windows(); r.waits != nil && len(windows) > 0 {
		last := windows[len(windows)-1]
		r.waits.look(last.Name, last.Begin)
	}
}
