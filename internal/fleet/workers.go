package fleet

import (
	"context"
	"errors"
	"sync"

	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// Workers run the simulated proxies of a fleet.
type Workers []worker.Worker

// Counts sums up the counters of all simulated proxies.
func (w Workers) Counts() (c xdsprobe.Counts) {
	for _, one := range w {
		c = c.Plus(one.State().Counts)
	}
	return c
}

// States returns the state of each worker, in their order.
func (w Workers) States() []worker.State {
	var all []worker.State
	for _, one := range w {
		all = append(all, one.State())
	}
	return all
}

// Route sets the endpoints of a Service for connections that simulated proxies
// make from now on.
func (w Workers) Route(service string, endpoints []string) {
	for _, one := range w {
		one.Route(service, endpoints)
	}
}

// held returns what the simulated proxies hold now, by id of the pod; with names, the keys
// of their resources too.
func (w Workers) held(ctx context.Context, names bool) (map[string]worker.Holding, error) {
	held := map[string]worker.Holding{}
	for _, one := range w {
		all, err := one.Holdings(ctx, names)
		if err != nil {
			return nil, err
		}
		for _, h := range all {
			held[h.ID] = h
		}
	}
	return held, nil
}

// close ends all proxies.
func (w Workers) close(ctx context.Context) error {
	errs := make([]error, len(w))
	var closing sync.WaitGroup
	for i, one := range w {
		closing.Go(func() { errs[i] = one.Close(ctx) })
	}
	closing.Wait()
	return errors.Join(errs...)
}

// act acts on simulated proxies. The caller holds Pods.mu.
func act(action worker.Action, pods []*simulated) {
	ids := map[worker.Worker][]string{}
	for _, p := range pods {
		if p.worker != nil {
			ids[p.worker] = append(ids[p.worker], p.id)
		}
	}
	for w, of := range ids {
		w.Do(action, of...)
	}
}
