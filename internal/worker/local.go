package worker

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/pkg/proxy"
)

// Local runs proxies in this process.
type Local struct {
	// fixed after NewLocal
	name     string
	driver   controlplane.Driver
	services controlplane.ProxyServices
	failed   func(error)
	life     context.Context
	end      context.CancelFunc

	running sync.WaitGroup

	mu      sync.Mutex
	started int
	proxies map[string]*running
}

var _ Worker = (*Local)(nil)

// running is a proxy that was started.
type running struct {
	proxy proxy.Proxy
	stop  context.CancelFunc
}

// NewLocal makes a worker for the proxies of a control plane. It sets the observer, the store and
// the backends of the services. The proxies live until Close, also after ctx has ended.
func NewLocal(ctx context.Context, o Options, driver controlplane.Driver, services controlplane.ProxyServices) (*Local, error) {
	store, err := driver.NewStore()
	if err != nil {
		return nil, err
	}
	store.Keep = o.Keep
	services.Store, services.Observer, services.Backends = store, o.Observer, proxy.NewBackends(nil)
	w := &Local{name: o.Name, driver: driver, services: services, failed: o.Failed, proxies: map[string]*running{}}
	w.life, w.end = context.WithCancel(context.WithoutCancel(ctx)) // until Close
	return w, nil
}

// Start is part of Worker.
func (w *Local) Start(p Proxy) error {
	made, err := w.driver.Proxy.New(p.Spec, w.services)
	if err != nil {
		return fmt.Errorf("simulating the proxy of pod %s: %w", p.ID, err)
	}
	ctx, stop := context.WithCancel(w.life)
	w.mu.Lock()
	defer w.mu.Unlock()
	if before := w.proxies[p.ID]; before != nil {
		before.stop()
	}
	w.proxies[p.ID] = &running{made, stop}
	w.started++
	w.running.Go(func() {
		defer stop()
		if p.Delay > 0 && !task.Sleep(ctx, p.Delay) {
			return
		}
		if err := made.Run(ctx); err != nil && ctx.Err() == nil {
			w.failed(fmt.Errorf("running the proxy of pod %s: %w", p.ID, err))
		}
	})
	return nil
}

// Do is part of Worker.
func (w *Local) Do(action Action, ids ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		p := w.proxies[id]
		if p == nil {
			continue
		}
		switch action {
		case Stop:
			p.stop()
			delete(w.proxies, id)
		case Reset:
			p.proxy.Reset()
		case Renew:
			p.proxy.Renew()
		}
	}
}

// Route is part of Worker.
func (w *Local) Route(service string, endpoints []string) {
	w.services.Backends.Set(service, endpoints)
}

// Holdings is part of Worker.
func (w *Local) Holdings(_ context.Context, names bool) ([]Holding, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]Holding, 0, len(w.proxies))
	for id, p := range w.proxies {
		h := Holding{ID: id, Types: p.proxy.Holdings()}
		if names {
			for _, r := range p.kept() {
				h.Keys = append(h.Keys, r.Key)
			}
		}
		all = append(all, h)
	}
	return all, nil
}

// Contents returns the resources that each running proxy holds now, by its id, with their messages if
// Options.Keep was set, and without what it holds only until its listeners have drained.
func (w *Local) Contents() map[string][]*proxy.Resource {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make(map[string][]*proxy.Resource, len(w.proxies))
	for id, p := range w.proxies {
		all[id] = p.kept()
	}
	return all
}

// kept returns the resources that a proxy holds for good.
func (p *running) kept() []*proxy.Resource {
	draining := p.proxy.Draining()
	return slices.DeleteFunc(p.proxy.Held(), func(r *proxy.Resource) bool { return slices.Contains(draining, r.Key) })
}

// State is part of Worker.
func (w *Local) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return State{Name: w.name, Started: w.started, Counts: w.services.Store.Counters().Now()}
}

// Close is part of Worker.
func (w *Local) Close(context.Context) error {
	w.end()
	w.running.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.proxies)
	return nil
}
