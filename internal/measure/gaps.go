package measure

import (
	"context"
	"fmt"
	"time"
)

// Gaps counts the scrapes of a job in (from, to] that failed, timed out or were
// never made, and how many there should have been, over all its targets.
func (r *Recorder) Gaps(ctx context.Context, job string, from, to time.Time) (missed, total int, err error) {
	return r.gaps(ctx, job, fmt.Sprintf("job=%q", job), r.expected()[job], from, to)
}

// InstanceGaps counts like Gaps, for one target of a job.
func (r *Recorder) InstanceGaps(ctx context.Context, job, instance string, from, to time.Time) (missed, total int, err error) {
	return r.gaps(ctx, job, instanceOf(job, instance), 1, from, to)
}

// instanceOf returns the matchers of one target of a job.
func instanceOf(job, instance string) string {
	return fmt.Sprintf("job=%q, instance=%q", job, instance)
}

// gaps counts like Gaps, for the so many targets of a job that match.
func (r *Recorder) gaps(ctx context.Context, job, matchers string, targets int, from, to time.Time) (missed, total int, err error) {
	interval, ok := r.intervals[job]
	if !ok {
		return 0, 0, fmt.Errorf("counting gaps: no job %q", job)
	}
	series, err := r.samples(ctx, "up{"+matchers+"}", from, to)
	if err != nil {
		return 0, 0, fmt.Errorf("counting gaps: %w", err)
	}
	for _, s := range series {
		m, t := gaps(s.Points, from, to, interval)
		missed, total = missed+m, total+t
	}
	for range targets - len(series) { // never reached in all the window
		m, t := gaps(nil, from, to, interval)
		missed, total = missed+m, total+t
	}
	return missed, total, nil
}

// gaps counts what is missing between the successful scrapes of one target,
// whose value is 1. Scrapes are due at multiples of the interval from a moment
// of Prometheus's choice: how many fit in the window depends on it, so
// distances are counted, not the window. A scrape may be a tenth of the
// interval early or late at the window's edges, and half of it in between.
func gaps(up []Point, from, to time.Time, interval time.Duration) (missed, total int) {
	jitter := interval / 10
	last, done := from, 0
	for _, p := range up {
		if p.Value != 1 {
			continue
		}
		distance := p.At.Sub(last)
		if done == 0 {
			missed += int((distance - jitter) / interval) // a scrape at from itself is not in the window
		} else {
			missed += max(0, int((distance+interval/2)/interval)-1)
		}
		last = p.At
		done++
	}
	missed += int((to.Sub(last) - jitter) / interval)
	return missed, missed + done
}
