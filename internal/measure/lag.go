package measure

import (
	"context"
	"time"
)

// lagInterval is the time between two looks at the clock: fine enough
// to see stalls of the length that would touch a latency, and a hundred
// wake-ups a second cost nothing.
const lagInterval = 10 * time.Millisecond

// Lag measures the scheduling lag of this program: the time from the moment at
// which it wanted to wake up to the moment at which it did. Its measurements
// of others may be late by as much. Go's timers alone cause up to about 1 ms.
type Lag struct {
	observe func(time.Duration)
}

// NewLag makes a Lag that gives each delay to observe, from one goroutine, a
// hundred times a second.
func NewLag(observe func(time.Duration)) *Lag { return &Lag{observe: observe} }

// Run measures until ctx is done, then returns nil. Moments that passed while
// the program was not running are observed too, each with its own delay: a
// stall of 1 s is a hundred delays, not one.
func (l *Lag) Run(ctx context.Context) error {
	due := time.Now().Add(lagInterval)
	timer := time.NewTimer(lagInterval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		for now := time.Now(); !due.After(now); due = due.Add(lagInterval) {
			l.observe(now.Sub(due))
		}
		timer.Reset(time.Until(due))
	}
}
