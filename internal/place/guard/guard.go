package guard

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"
)

// Guard checks conditions while a run goes on. Fields of subjects that no condition is about may be zero.
type Guard struct {
	Conditions Conditions
	Requests   *Requests                          // measures those of the run
	Pending    func(context.Context) (int, error) // counts pods of PendingPods
	Cores      func() (cores float64, ok bool)    // of the control plane now; false = not known
	cores      []float64                          // of the last Window, the oldest first
}

// every is the time between two checks, and pendingEvery how many of them there are for one count of pods, which is a
// request of its own.
const (
	every        = time.Second
	pendingEvery = 5
)

// Run checks each second until ctx ends, when it returns nil, or until a condition holds: the error says which, and
// what was measured. An error of Pending is returned.
func (g *Guard) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, c := range g.Conditions {
			if c.Subject == PendingPods && n%pendingEvery != 0 {
				continue
			}
			value, known, err := g.value(ctx, c.Subject)
			if err != nil {
				return fmt.Errorf("checking place.abortIf %s: %w", c, err)
			}
			if known && value > c.Limit {
				return fmt.Errorf("%s is %s, and place.abortIf has %s", c.Subject, c.Subject.rounded(value), c)
			}
		}
	}
}

// value returns the present value of a subject; false where it is not known, or not yet.
func (g *Guard) value(ctx context.Context, s Subject) (float64, bool, error) {
	switch s {
	case APIServerP99:
		p99, ok := g.Requests.P99()
		return p99.Seconds(), ok, nil
	case PendingPods:
		n, err := g.Pending(ctx)
		return float64(n), err == nil, err
	default:
		now, ok := g.Cores()
		if !ok {
			return 0, false, nil
		}
		const seconds = int(Window / every)
		g.cores = append(g.cores, now)
		g.cores = slices.Delete(g.cores, 0, max(0, len(g.cores)-seconds))
		return stat.Mean(g.cores, nil), len(g.cores) == seconds, nil
	}
}
