package istio

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"

	"scaler.mesh/scaler/internal/forward"
	"scaler.mesh/scaler/pkg/controlplane"
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

	mu  sync.Mutex
	all []*instance
}

// newReplicas makes n istiods that do not run yet.
func (c *ControlPlane) newReplicas(n int) (_ *replicas, err error) {
	r := &replicas{c: c}
	for range n {
		if _, err := r.make(); err != nil {
			return nil, err
		}
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

// make makes one more, which does not run yet.
func (r *replicas) make() (*instance, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, err := r.c.newInstance(cmp.Or(r.c.opts.Name, Name)+"-"+strconv.Itoa(len(r.all)), false)
	if err != nil {
		return nil, err
	}
	r.all = append(r.all, i)
	return i, nil
}

func (r *replicas) instances() []*instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.all)
}

// startOthers starts all but the first, at the same time. The first has made the
// certificate authority's secret that they take.
func (r *replicas) startOthers(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, i := range r.instances()[1:] {
		group.Go(func() error { return i.run(ctx) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	r.Serve(r.All())
	return nil
}

// stop ends those that run.
func (r *replicas) stop(ctx context.Context) error {
	err := r.Close()
	for _, i := range r.instances() {
		err = errors.Join(err, i.stop(ctx))
	}
	return err
}

// All is part of controlplane.Replicas.
func (r *replicas) All() []controlplane.Replica {
	var all []controlplane.Replica
	for _, i := range r.instances() {
		all = append(all, i)
	}
	return all
}

// Add is part of controlplane.Replicas.
func (r *replicas) Add(ctx context.Context) (controlplane.Replica, error) {
	i, err := r.make()
	if err != nil {
		return nil, err
	}
	if err := i.run(ctx); err != nil {
		return nil, fmt.Errorf("adding a replica: %w", err)
	}
	return i, nil
}

// Service is part of controlplane.Replicas.
func (r *replicas) Service() string { return service }

// Serve is part of controlplane.Replicas.
func (r *replicas) Serve(ready []controlplane.Replica) {
	var secure, webhook []string
	for _, one := range ready {
		i := one.(*instance) // of All or Add
		secure, webhook = append(secure, local(i.ports.secure)), append(webhook, local(i.ports.webhook))
	}
	r.secure.To(secure)
	r.webhook.To(webhook)
}

// Close is part of controlplane.Replicas.
func (r *replicas) Close() error { return errors.Join(r.secure.Close(), r.webhook.Close()) }
