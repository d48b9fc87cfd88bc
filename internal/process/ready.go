package process

import (
	"context"
	"fmt"
	"time"
)

const (
	pollInterval = 50 * time.Millisecond
	// probeTimeout ends a probe that hangs, so that a later one may succeed.
	probeTimeout = 5 * time.Second
)

// WaitReady calls probe about every 50 ms until it returns nil. If the process ends, it
// returns p.Err(). If ctx is done, the error contains that of the last probe. Each probe
// has a timeout of a few seconds.
func (p *Process) WaitReady(ctx context.Context, probe func(context.Context) error) error {
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		err := p.runProbe(ctx, probe)
		switch {
		case p.ended():
			return p.notReady()
		case err == nil:
			return nil
		}
		select {
		case <-poll.C:
		case <-p.Done():
			return p.notReady()
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s to be ready: %w; the last answer was: %w", p.spec.Name, context.Cause(ctx), err)
		}
	}
}

// runProbe runs the probe and cancels it when the process ends.
func (p *Process) runProbe(ctx context.Context, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	result := make(chan error, 1)
	go func() { result <- probe(ctx) }()
	select {
	case err := <-result:
		return err
	case <-p.Done():
		cancel()
		return <-result
	}
}

func (p *Process) notReady() error {
	if err := p.Err(); err != nil {
		return err
	}
	return fmt.Errorf("waiting for %s to be ready: it was stopped", p.spec.Name)
}
