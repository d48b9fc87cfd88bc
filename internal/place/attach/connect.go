package attach

import (
	"context"
	"errors"
	"fmt"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/forward"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/place/existing"
)

// Connection is the connection to a control plane. Close ends it.
type Connection struct {
	Address   string                  // HOST:PORT that proxies connect to
	Instances []controlplane.Instance // whose metrics are read; nil = none are known

	pods     []*existing.Forwarded // two of a pod that proxies are forwarded to
	balancer *forward.Forwarder    // in front of several pods; nil = there is one
}

// Connect connects to the control plane that was found: at the target's address or, where it
// has none, to each pod through the API server; for proxies in the cluster only its metrics are
// read so. The metrics of each pod are read through the API
// server, unless the target has an address of them. failed is called when such a connection ends
// before Close, and when one of the programs was started again; it may be called several
// times.
func Connect(ctx context.Context, t Target, f *Found, failed func(error)) (_ *Connection, err error) {
	c := &Connection{Address: t.Address}
	if t.Metrics != "" {
		c.Instances = []controlplane.Instance{instance(ctx, "the control plane", t.Metrics, failed)}
		return c, nil
	}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	i := f.Installation
	var addresses []string
	open := func(pod string, port int) (string, error) {
		one, err := f.Cluster.Forward(ctx, i.Namespace, pod, port)
		if err != nil {
			return "", err
		}
		c.pods = append(c.pods, one)
		go func() { // ends with the connection, which Close ends
			<-one.Done()
			if err := one.Err(); err != nil {
				failed(fmt.Errorf("the connection to pod %s/%s ended: %w", i.Namespace, pod, err))
			}
		}()
		return one.Address(port), nil
	}
	for _, pod := range i.Pods {
		// The metrics have a connection of their own: on that of the proxies they would wait for what these are sent.
		metrics, err := open(pod, i.MetricsPort)
		if err != nil {
			return nil, err
		}
		c.Instances = append(c.Instances, instance(ctx, pod, metrics, failed))
		if t.Address != "" || t.Inside {
			continue
		}
		address, err := open(pod, i.ProxyPort)
		if err != nil {
			return nil, err
		}
		addresses = append(addresses, address)
	}
	if t.Address != "" {
		return c, nil
	}
	if t.Inside {
		c.Address = i.ServiceAddress
		return c, nil
	}
	c.Address = addresses[0]
	if len(addresses) > 1 {
		if c.balancer, err = forward.Listen(); err != nil {
			return nil, err
		}
		c.balancer.To(addresses)
		c.Address = fmt.Sprintf("127.0.0.1:%d", c.balancer.Port())
	}
	return c, nil
}

// Close ends the connection and returns when nothing of it runs.
func (c *Connection) Close() {
	if c.balancer != nil {
		_ = c.balancer.Close() // of a listener: nothing is lost
	}
	for _, one := range c.pods {
		one.Close()
	}
}

// instance returns a program of the control plane whose metrics are at an address.
func instance(ctx context.Context, name, address string, failed func(error)) controlplane.Instance {
	url := "http://" + address + "/metrics"
	source := measure.OfMetrics(context.WithoutCancel(ctx), name, url) // the end of an interrupted phase is read, too
	return controlplane.Instance{Name: name, Metrics: url, Usage: life{source, func(err error) {
		failed(fmt.Errorf("the control plane did not run throughout: %w", err))
	}}}
}

// life reports the end of what a Source reads.
type life struct {
	measure.Source
	ended func(error)
}

// Read is part of measure.Source.
func (l life) Read() (measure.Reading, error) {
	reading, err := l.Source.Read()
	if errors.Is(err, measure.ErrEnded) {
		l.ended(err)
	}
	return reading, err
}
