package run

import (
	"slices"
	"strings"
	"sync"
	"time"

	"scaler.mesh/scaler/pkg/record"
)

// A stage that takes longer than expected by more than this says that the expectation was wrong: how much of it is left
// is not known then.
const (
	lateShare = 0.1
	late      = 2 * time.Second
)

// catchUp is the speed, in multiples of real time, of the countdown after a stage that ended early, so that it does not jump.
const catchUp = 3

// countdown is the time that is left of a run: the expected length of the present stage, and of all those after it.
// It never rises. Its methods are safe for concurrent use.
type countdown struct {
	stages []stage // fixed

	mu    sync.Mutex
	at    int       // the stage that goes on
	since time.Time // it began
	shown time.Duration
	last  time.Time // it was shown; zero = never
}

func newCountdown(stages []stage, now time.Time) *countdown {
	return &countdown{stages: stages, since: now}
}

// enter begins a stage, by its name or that of a phase. One that is not expected changes nothing: it is not known how long
// it takes, and what follows it still takes as long.
func (c *countdown) enter(name string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if strings.HasPrefix(name, record.UpgradePrefix) {
		name = record.UpgradePrefix
	}
	after := slices.IndexFunc(c.stages[c.at+1:], func(s stage) bool { return s.name == name })
	if after >= 0 {
		c.at, c.since = c.at+1+after, now
	}
}

// stage returns the stage that goes on, and since when.
func (c *countdown) stage() (name string, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stages[c.at].name, c.since
}

// left returns how much of the run is left; false while a stage takes so much longer than expected that it is not known.
func (c *countdown) left(now time.Time) (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	doing, elapsed := c.stages[c.at], now.Sub(c.since)
	left := max(0, doing.length-elapsed)
	for _, s := range c.stages[c.at+1:] {
		left += s.length
	}
	if c.last.IsZero() {
		c.shown = left
	} else {
		c.shown = min(c.shown, max(left, c.shown-catchUp*now.Sub(c.last)))
	}
	c.last = now
	return c.shown, elapsed <= doing.length+time.Duration(lateShare*float64(doing.length))+late
}
