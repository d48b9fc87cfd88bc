package cluster

import (
	"context"
	"fmt"
	"time"
)

// Absent kills a component, starts it again with the same arguments after the given
// length, and returns when it is ready. Its data, if any, is kept. Meanwhile nothing
// listens on its ports: new connections are refused, and open ones are broken. It does
// not count as having died.
func (c *Cluster) Absent(ctx context.Context, name string, length time.Duration) error {
	c.mu.Lock()
	was, known := c.running[name]
	c.mu.Unlock()
	if !known {
		return fmt.Errorf("taking %s away: no such component", name)
	}
	client, err := newHTTPClient(c.layout.pki)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()

	timer := time.NewTimer(length)
	defer timer.Stop()
	was.process.Kill()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	<-was.process.Done() // SIGKILL: at once
	child, err := c.launch(was.part)
	if err != nil {
		return err
	}
	c.watch(child, func(error) {})
	ready, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %v", startTimeout))
	defer cancel()
	return child.WaitReady(ready, answers(client, was.ready))
}
