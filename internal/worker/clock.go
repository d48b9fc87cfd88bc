package worker

import (
	"sync"
	"time"
)

// drift bounds the drift of two clocks that are not synchronized, as a share of the time
// passed: that of a poor crystal. The clocks of two processes of one machine do not drift.
const drift = 100e-6

// clock compares the clock of another process with that of this one, as NTP does
// (RFC 5905, section 8): a message is sent and answered, and each side notes when.
type clock struct {
	base time.Time // of this process: its times are counted from here

	mu          sync.Mutex
	known       bool
	offset      time.Duration // theirs less ours
	uncertainty time.Duration // when it was measured
	measured    time.Duration // when, in our time
	worst       time.Duration // the largest uncertainty of any time that was translated
}

func newClock() *clock { return &clock{base: time.Now()} }

// now returns the time here.
func (c *clock) now() time.Duration { return time.Since(c.base) }

// exchange takes the times of a message: sent here, arrived there, answered there, and the answer
// received here. It replaces the known offset if it is less uncertain; uncertainty grows with time.
func (c *clock) exchange(sent, arrived, answered, received time.Duration) {
	offset := ((arrived - sent) + (answered - received)) / 2
	uncertainty := max(1, ((received-sent)-(answered-arrived))/2)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known && uncertainty > c.at(received) {
		return
	}
	c.known, c.offset, c.uncertainty, c.measured = true, offset, uncertainty, received
}

// at returns the uncertainty at a moment here. The caller holds mu.
func (c *clock) at(now time.Duration) time.Duration {
	return c.uncertainty + time.Duration(drift*float64(max(0, now-c.measured)))
}

// here converts a time there to one of this process; zero stays zero.
func (c *clock) here(theirs time.Duration) time.Time {
	if theirs == 0 {
		return time.Time{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ours := theirs - c.offset
	c.worst = max(c.worst, c.at(ours))
	return c.base.Add(ours)
}

// estimate returns the present offset, and the worst uncertainty of any time so far.
func (c *clock) estimate() (offset, uncertainty time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset, max(c.worst, c.uncertainty)
}
