package experiment

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/stats"
)

// change is one change that was followed; the counters were read at its edges,
// when the last sidecar that got it had it, and when all that was acknowledged.
type change struct{ begin, end, acknowledged time.Time }

// changing are the distributions of one kind of change.
type changing struct{ push, first, last *stats.Histogram }

// change makes the changes one at a time and follows each to every sidecar.
func (c *calibration) change(ctx context.Context) error {
	plan := planned(c.server.Endpoints(), c.spec.Changes)
	c.point.Latencies.Push = map[record.ChangeKind]*record.Latency{}
	c.point.Latencies.Propagation = map[record.ChangeKind]record.Propagation{}
	waiting, err := c.server.Waiting(ctx)
	if err != nil {
		return err
	}
	for _, kind := range changeKinds {
		h := changing{stats.NewHistogram(), stats.NewHistogram(), stats.NewHistogram()}
		for _, one := range plan[kind] {
			if err := c.changeOnce(ctx, one, h, waiting); err != nil {
				return err
			}
		}
		c.point.Latencies.Push[kind] = new(record.Latency(h.push.Summary()))
		c.point.Latencies.Propagation[kind] = record.Propagation{
			First: new(record.Latency(h.first.Summary())), Last: new(record.Latency(h.last.Summary())),
		}
	}
	return nil
}

// changeOnce makes one change and waits until every sidecar has it, or the time
// is over, and then until the server, of whose subscriptions so many wait when
// nothing happens, has seen to the acknowledgements: the next change would stand
// behind them.
func (c *calibration) changeOnce(ctx context.Context, ch convergence.Change, h changing, waiting int) error {
	following := c.fleet.tracker.Follow(ch, c.fleet.ids)
	begin, err := c.sampler.Edge()
	if err != nil {
		following.Stop()
		return err
	}
	limited, cancel := context.WithTimeout(ctx, c.spec.Delay+c.spec.Timeout)
	defer cancel()
	made := time.Now()
	err = c.server.Change(ctx, ch)
	if err == nil {
		select {
		case <-following.Done():
		case <-limited.Done():
		}
	}
	reached, lost, _ := following.Stop()
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	end, err := c.sampler.Edge()
	if err != nil {
		return err
	}
	if err := c.acknowledged(ctx, waiting); err != nil {
		return err
	}
	acknowledged, err := c.sampler.Edge()
	if err != nil {
		return err
	}
	c.changes = append(c.changes, change{begin, end, acknowledged})
	var times []time.Time
	for _, at := range reached {
		h.push.Record(at.Sub(made))
		times = append(times, at)
	}
	h.push.Lose(int64(len(lost)))
	if len(times) == 0 {
		h.first.Lose(1)
	} else {
		h.first.Record(slices.MinFunc(times, time.Time.Compare).Sub(made))
	}
	if len(lost) > 0 {
		h.last.Lose(1)
	} else {
		h.last.Record(slices.MaxFunc(times, time.Time.Compare).Sub(made))
	}
	return nil
}

// acknowledgePoll is how often the server is asked what it waits for, and
// acknowledgePatience how long acknowledgements may take, which is no part of
// what is measured: those of a change that came late come later.
const (
	acknowledgePoll     = 10 * time.Millisecond
	acknowledgePatience = time.Minute
)

// acknowledged returns when so many subscriptions wait for a change.
func (c *calibration) acknowledged(ctx context.Context, waiting int) error {
	patience := c.spec.Delay + acknowledgePatience
	limited, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not all of %d subscriptions were up to date %v after a change", waiting, patience))
	defer cancel()
	for {
		now, err := c.server.Waiting(limited)
		if err == nil && now >= waiting {
			return nil
		}
		if err == nil {
			err = until(limited, time.Now().Add(acknowledgePoll))
		}
		if limited.Err() != nil {
			return context.Cause(limited)
		}
		if err != nil {
			return err
		}
	}
}

// planned are the changes to make: each of an endpoint that no other touches, as
// one that was lost must not be taken for there because of another.
func planned(start map[string]convergence.Endpoints, each int) map[record.ChangeKind][]convergence.Change {
	var pods []convergence.Change
	for service, endpoints := range start {
		for addr := range endpoints {
			pods = append(pods, convergence.Change{Service: service, Addr: addr})
		}
	}
	slices.SortFunc(pods, func(a, b convergence.Change) int {
		return cmp.Or(a.Addr.Compare(b.Addr), strings.Compare(a.Service, b.Service))
	})
	plan := map[record.ChangeKind][]convergence.Change{}
	for i := range each {
		added, removed, changed := pods[i], pods[i], pods[each+i]
		added.Addr = netip.AddrPortFrom(added.Addr.Addr(), 1) // nobody listens there
		removed.Absent = true
		changed.Health = convergence.Unhealthy
		plan[record.EndpointAdd] = append(plan[record.EndpointAdd], added)
		plan[record.EndpointRemove] = append(plan[record.EndpointRemove], removed)
		plan[record.EndpointHealth] = append(plan[record.EndpointHealth], changed)
	}
	return plan
}
