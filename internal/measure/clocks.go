package measure

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/internal/linux"
)

// ClockInterval is the time between two comparisons of clocks.
const ClockInterval = time.Second

// Differences of clocks that cause no warning: clocks are slewed and read one after another.
const (
	minClockStep = 500 * time.Millisecond
	minPause     = 3 * time.Second
)

// Disturbance reports what moved or stopped a clock between two comparisons.
type Disturbance struct {
	// Moved is the distance by which the wall clock was set; 0 = it was not. Latencies, phases and
	// the usage of processes are on the monotonic clock; time series are on this one.
	Moved time.Duration
	// Suspended is the time for which the machine was suspended and the monotonic clock stood still.
	Suspended time.Duration
	// Paused is the time beyond the interval for which scaler itself did not run, as after
	// SIGSTOP.
	Paused time.Duration
}

// Clocks compares the wall clock, the monotonic clock and the time since boot.
type Clocks struct {
	read func() (moment, error)
	last moment
}

// moment is one moment, read on three clocks.
type moment struct {
	wall            time.Time
	monotonic, boot time.Duration
}

// NewClocks makes a Clocks that compares with this moment.
func NewClocks() (*Clocks, error) { return newClocks(readClocks) }

func newClocks(read func() (moment, error)) (*Clocks, error) {
	first, err := read()
	return &Clocks{read: read, last: first}, err
}

func readClocks() (moment, error) {
	var m moment
	var wall unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &wall); err != nil {
		return m, fmt.Errorf("reading the wall clock: %w", err)
	}
	m.wall = time.Unix(wall.Unix())
	for clock, to := range map[int32]*time.Duration{unix.CLOCK_MONOTONIC: &m.monotonic, linux.ClockBoot: &m.boot} {
		var at unix.Timespec
		if err := unix.ClockGettime(clock, &at); err != nil {
			return m, fmt.Errorf("reading clock %d: %w", clock, err)
		}
		*to = time.Duration(at.Nano())
	}
	return m, nil
}

// Compare reports the disturbance since the last comparison, which without one was
// about expected ago.
func (c *Clocks) Compare(expected time.Duration) (Disturbance, error) {
	now, err := c.read()
	if err != nil {
		return Disturbance{}, err
	}
	passed := now.monotonic - c.last.monotonic
	d := Disturbance{Suspended: now.boot - c.last.boot - passed, Paused: passed - expected}
	// The wall clock goes on while the machine is suspended.
	d.Moved = now.wall.Sub(c.last.wall) - passed - d.Suspended
	c.last = now
	if d.Moved.Abs() < minClockStep {
		d.Moved = 0
	}
	if d.Suspended < minClockStep {
		d.Suspended = 0
	}
	if d.Paused < minPause {
		d.Paused = 0
	}
	return d, nil
}

// Watch compares at the interval until ctx is done, and reports disturbances.
func (c *Clocks) Watch(ctx context.Context, report func(Disturbance)) error {
	tick := time.NewTicker(ClockInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		d, err := c.Compare(ClockInterval)
		if err != nil {
			return err
		}
		if d != (Disturbance{}) {
			report(d)
		}
	}
}
