package measure

import (
	"context"
	"time"
)

// defaultLagInterval is the time between two looks at the clock: fine enough
// to see stalls of the length that would touch a latency, and a hundred
// wake-ups a second cost nothing.
const defaultLagInterval = 10 * time.Millisecond

// Lag measures the scheduling lag of this program: the time from the moment at
// which it wanted to wake up to the moment at which it did. Its measurements
// of others may be late by as much. Go's timers alone cause up to about 1 ms.
type Lag struct {
	interval time.Duration
	observe  func(time.Duration)
}

// NewLag makes a Lag that gives each delay to observe, from one goroutine, a
// hundred times a second with an interval of 0, which means 10 ms.
func NewLag(interval time.Duration, observe func(time.Duration)) *Lag {
	if interval == 0 {
		interval = defaultLagInterval
	}
	return &Lag{interval: interval, observe: observe}
}

// Run measures until ctx is done, then returns nil. Moments that passed while
// the program was not running are observed too, each with its own delay: a
// stall of 1 s is a hundred delays, not one.
func (l *Lag) Run(ctx context.Context) error {
	due := time.Now().Add(l.interval)
	timer := time.NewTimer(l.interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		for now := time.Now(); !due.After(now); due = due.Add(l.interval) {
			l.observe(now.Sub(due))
		}
		timer.Reset(time.Until(due))
	}
}
