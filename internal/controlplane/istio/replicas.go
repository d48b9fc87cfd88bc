package istio

import (
	"cmp"
	"context"
	"errors"
	"net"
	"strconv"

	"golang.org/x/sync/errgroup"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/forward"
)

// service is the address of istiod's Service for proxies, in the mesh's own terms. Only
// who knows its endpoints can connect to it.
var service = net.JoinHostPort(serverName, "15012")

// replicas are istiods of one revision. The API server and real proxies reach them through
// forwarders on loopback, which choose for each connection, as kube-proxy does. Simulated
// proxies choose themselves: their bytes are too many to pass through scaler.
type replicas struct {
	c               *ControlPlane
	secure, webhook *forward.Forwarder

	all   []*instance
	spare int // of all, the last ones: they are not started
}

// newReplicas makes istiods that do not run yet: n that are to be started, and spare ones.
func (c *ControlPlane) newReplicas(n, spare int) (_ *replicas, err error) {
	r := &replicas{c: c, spare: spare}
	for i := range n + spare {
		one, err := c.newInstance(cmp.Or(c.opts.Name, Name)+"-"+strconv.Itoa(i), false)
		if err != nil {
			return nil, err
		}
		r.all = append(r.all, one)
	}
	if r.secure, err = forward.Listen(); err != nil {
		return nil, err
	}
	if r.webhook, err = forward.Listen(); err != nil {
		return nil, errors.Join(err, r.secure.Close())
	}
	c.first = r.all[0]
	c.reached = reached{service, r.secure.Port(), r.webhook.Port()}
	r.Serve([]controlplane.Replica{c.first}) // until the others are ready
	return r, nil
}

// startOthers starts all but the first and the spare ones, at the same time. The first has
// made the certificate authority's secret that they take.
func (r *replicas) startOthers(ctx context.Context) error {
	started := r.all[:len(r.all)-r.spare]
	group, ctx := errgroup.WithContext(ctx)
	for _, i := range started[1:] {
		group.Go(func() error { return i.Restart(ctx) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	r.Serve(r.All()[:len(started)])
	return nil
}

// stop ends those that run.
func (r *replicas) stop(ctx context.Context) error {
	err := r.Close()
	for _, i := range r.all {
		err = errors.Join(err, i.Stop(ctx))
	}
	return err
}

// All is part of controlplane.Replicas.
func (r *replicas) All() []controlplane.Replica {
	var all []controlplane.Replica
	for _, i := range r.all {
		all = append(all, i)
	}
	return all
}

// Spare is part of controlplane.Replicas.
func (r *replicas) Spare() int { return r.spare }

// Service is part of controlplane.Replicas.
func (r *replicas) Service() string { return service }

// Serve is part of controlplane.Replicas.
func (r *replicas) Serve(ready []controlplane.Replica) {
	var secure, webhook []string
	for _, one := range ready {
		i := one.(*instance) // one of All
		secure, webhook = append(secure, local(i.ports.secure)), append(webhook, local(i.ports.webhook))
	}
	r.secure.To(secure)
	r.webhook.To(webhook)
}

// Close is part of controlplane.Replicas.
func (r *replicas) Close() error { return errors.Join(r.secure.Close(), r.webhook.Close()) }
