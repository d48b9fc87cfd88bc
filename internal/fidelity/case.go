package fidelity

import (
	"context"
	"fmt"
	"slices"

	"scaler.mesh/scaler/internal/fidelity/wiretap"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/pkg/record"
)

// comparison is one case while it is compared.
type comparison struct {
	*run
	which   knobCase
	proxies [2]*tappedProxy
	times   [2][]wiretap.Times
	result  record.FidelityCase
	seen    differencesSeen
}

// compare runs one case: it makes the objects of the settings, starts both sidecars
// several times, takes them through the changes, disconnects them once, and undoes
// everything.
func (r *run) compare(ctx context.Context, which knobCase) (err error) {
	c := &comparison{run: r, which: which, seen: differencesSeen{}}
	c.result.Name, c.result.Knobs = which.name, which.knobs
	err = steps.Run(ctx, []steps.Step{
		{Name: "setting the knobs", Do: c.setKnobs},
		{Name: "starting both proxies", Do: c.start},
		{Name: "comparing their node descriptions", Do: c.nodes},
		{Name: "comparing what they hold", Do: func(ctx context.Context) (steps.Undo, error) {
			var err error
			c.result.Resources, err = c.held(ctx)
			return nil, err
		}},
		{Name: "changing the mesh", Do: c.change},
		{Name: "comparing what they hold after the changes", Do: func(ctx context.Context) (steps.Undo, error) {
			var err error
			c.result.AfterChanges, err = c.held(ctx)
			return nil, err
		}},
		{Name: "breaking both streams", Do: c.reconnect},
	})
	if ratio, known := record.BytesRatio(c.result.Resources); known {
		c.result.BytesRatio = &ratio
	}
	c.result.Real, c.result.Simulated = startTimes(c.times[realSide]), startTimes(c.times[simulated])
	c.result.Differences = c.seen.explained()
	if err != nil {
		c.result.Unfinished = err.Error()
	}
	r.result.Cases, r.times = append(r.result.Cases, c.result), append(r.times, c.times)
	return err
}

// setKnobs makes the objects of the knobs.
func (c *comparison) setKnobs(ctx context.Context) (steps.Undo, error) {
	objects := c.istiod.Parts().Mesh.Objects(c.mesh, c.which.knobs)
	for _, object := range objects {
		if err := c.putObject(ctx, object); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) error {
		for _, object := range objects {
			if err := c.removeObject(ctx, object); err != nil {
				return err
			}
		}
		return c.awaitQuiet(ctx, settledTime)
	}, c.awaitQuiet(ctx, settledTime)
}

// start starts both sidecars, one after the other and as often as asked for, and leaves
// the last one of each running.
func (c *comparison) start(ctx context.Context) (steps.Undo, error) {
	stop := func(ctx context.Context) error {
		for side, s := range c.proxies {
			if s != nil {
				if err := s.stop(ctx); err != nil {
					return fmt.Errorf("ending the %s: %w", c.sideName(side), err)
				}
				c.proxies[side] = nil
			}
		}
		return nil
	}
	for n := range c.spec.Starts {
		c.log(fmt.Sprintf("%s: start %d of %d", c.which.name, n+1, c.spec.Starts))
		if err := stop(ctx); err != nil {
			return stop, err
		}
		var both exchange
		order := []int{realSide, simulated} // by turns, for neither to find istiod always warmed by the other
		if n%2 == 1 {
			slices.Reverse(order)
		}
		for _, side := range order {
			if err := c.startOne(ctx, side); err != nil {
				return stop, fmt.Errorf("starting the %s: %w", c.sideName(side), err)
			}
			streams := c.streams(side)
			times, err := streams[0].Times()
			if err != nil {
				return stop, err
			}
			if len(streams) > 1 {
				c.seen.add(oneSided("start: streams", side, fmt.Sprint(len(streams))))
			}
			c.times[side] = append(c.times[side], times)
			both.add(side, streams[0], nil)
		}
		c.result.Start.Compared++
		c.seen.compareRequests("start", both, &c.result.Start, 1)
		if err := c.more(ctx, "start"); err != nil {
			return stop, err
		}
	}
	return stop, nil
}

// startOne starts one side and waits until it has its configuration.
func (c *comparison) startOne(ctx context.Context, side int) error {
	pod := c.pods[side]
	before := len(c.tap.Certificates(pod.Namespace + "/" + pod.Name))
	s, err := c.run.start(ctx, side)
	if err != nil {
		return err
	}
	s.certificates = before
	c.proxies[side] = s
	return c.awaitComplete(ctx, side, 0)
}

// streams returns the streams that a sidecar has opened since its start.
func (c *comparison) streams(side int) []wiretap.Stream {
	s := c.proxies[side]
	return c.tap.Streams(s.node)[s.before:]
}

// awaitComplete returns when a sidecar has opened more than this number of streams,
// everything was answered on the last one, and no more messages come.
func (c *comparison) awaitComplete(ctx context.Context, side, opened int) error {
	limited, cancel := context.WithTimeout(ctx, waitTimeout)
	defer cancel()
	for {
		changed := c.tap.Changed()
		streams := c.streams(side)
		if len(streams) > opened && streams[len(streams)-1].Complete(c.what.types...) {
			return c.awaitQuiet(ctx, quietTime)
		}
		select {
		case <-changed:
		case <-c.proxies[side].ended:
			return c.proxies[side].failure()
		case <-limited.Done():
			return fmt.Errorf("waiting for the configuration of the %s: %w", c.sideName(side), c.unconnected(side, context.Cause(limited)))
		}
	}
}

// unscaled returns the service whose pods must remain; -1 if there is none.
func (c *comparison) unscaled() int {
	if c.what == &ztunnels {
		return -1
	}
	return c.observed
}

// change takes both sidecars through the changes of the mesh.
func (c *comparison) change(ctx context.Context) (steps.Undo, error) {
	plan := planMeshChanges(c.mesh, c.unscaled(), c.what.changes, c.spec.Changes, c.spec.Seed)
	changer := newMeshChanger(c.run)
	var past, now exchange
	deferred := 0 // changes that are compared together with the next one
	if err := c.exchangeSince(&exchange{}, &past); err != nil {
		return nil, err
	}
	for n, one := range plan {
		if n%20 == 0 {
			c.log(fmt.Sprintf("%s: change %d of %d", c.which.name, n+1, len(plan)))
		}
		if err := changer.make(ctx, one); err != nil {
			return changer.restore, fmt.Errorf("change %d, %s: %w", n+1, one, err)
		}
		if err := c.awaitQuiet(ctx, quietTime); err != nil {
			return changer.restore, err
		}
		if err := c.exchangeSince(&past, &now); err != nil {
			return changer.restore, err
		}
		if now.incomplete() && n < len(plan)-1 {
			deferred++
			continue
		}
		c.result.Changes.Compared += 1 + deferred
		c.seen.compareRequests(string(one.kind), now, &c.result.Changes, 1+deferred)
		deferred = 0
		past = now.after(past)
	}
	if err := c.awaitQuiet(ctx, settledTime); err != nil {
		return changer.restore, err
	}
	return changer.restore, c.more(ctx, "changes")
}

// reconnect breaks both streams, and compares the beginnings of the next ones.
func (c *comparison) reconnect(ctx context.Context) (steps.Undo, error) {
	var both exchange
	for side, s := range c.proxies {
		before := c.streams(side)
		if !c.tap.Cut(s.node) {
			return nil, fmt.Errorf("the %s has no stream", c.sideName(side))
		}
		if err := c.awaitComplete(ctx, side, len(before)); err != nil {
			return nil, err
		}
		both.add(side, c.streams(side)[len(before)], wiretap.Versions(before))
	}
	c.result.Reconnect.Compared++
	c.seen.compareRequests("reconnect", both, &c.result.Reconnect, 1)
	return nil, c.more(ctx, "reconnect")
}

// more compares what the streams do not show.
func (c *comparison) more(ctx context.Context, about string) error {
	if c.what.more == nil {
		return nil
	}
	return c.what.more(c, ctx, about)
}

// unconnected returns the error of a wait. It adds whether the proxy opened any stream.
func (c *comparison) unconnected(side int, err error) error {
	if len(c.streams(side)) > 0 {
		return err
	}
	return fmt.Errorf("%w; it opened no stream", err)
}

// exchangeSince reads what both have sent and received since past.
func (c *comparison) exchangeSince(past, now *exchange) error {
	for side := range c.proxies {
		streams := c.streams(side)
		if len(streams) != 1 {
			return fmt.Errorf("the stream of the %s ended while the mesh changed", c.sideName(side))
		}
		now.requests[side] = streams[0].Requests(nil)[len(past.requests[side]):]
		now.responses[side] = streams[0].Responses()[len(past.responses[side]):]
	}
	return nil
}
