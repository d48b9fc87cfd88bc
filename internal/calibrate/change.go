package calibrate

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

// change is one followed change. The counters were read at its begin, at its end, when
// the last sidecar that got it had it, and when everything was acknowledged.
type change struct{ begin, end, acknowledged time.Time }

// changing holds the distributions of one kind of change.
type changing struct{ push, first, last *stats.Histogram }

// change makes the changes one at a time and follows each to every sidecar.
func (c *calibration) change(ctx context.Context) error {
	plan := planned(c.server.Endpoints(), c.spec.Changes)
	c.point.Latencies.Push = map[record.ChangeKind]*record.Latency{}
	c.point.Latencies.Propagation = map[record.ChangeKind]record.Propagation{}
	if err := c.acknowledged(ctx); err != nil {
		return err
	}
	for _, kind := range endpointChanges {
		h := changing{stats.NewHistogram(), stats.NewHistogram(), stats.NewHistogram()}
		for _, one := range plan[kind] {
			if err := c.changeOnce(ctx, one, h); err != nil {
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

// changeOnce makes one change and waits until every sidecar has it, or the time is over,
// and then until the server has processed the acknowledgements: the next change would
// queue behind them.
func (c *calibration) changeOnce(ctx context.Context, ch convergence.Change, h changing) error {
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
	if err := c.acknowledged(ctx); err != nil {
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

// acknowledgeTimeout limits the wait for acknowledgements, which are not part of the
// measurement: a change that arrives late is acknowledged late.
const acknowledgeTimeout = time.Minute

// acknowledged returns when every sidecar has acknowledged what it was sent.
func (c *calibration) acknowledged(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, c.spec.Delay+acknowledgeTimeout)
	defer cancel()
	err := c.server.Acknowledged(limited)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// planned returns the changes to make. Each is of an endpoint that no other change
// touches, so that a lost change is not taken for received because of another one.
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
