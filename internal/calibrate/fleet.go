package calibrate

import (
	"context"
	"fmt"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/reference"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/svid"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// maxStarting limits the sidecars that start at the same time: more would only queue for
// the processors.
const maxStarting = 100

// fleet manages the sidecars of a calibration. They do the same work as a rollout's: the
// same tracker, and certificates too.
type fleet struct {
	store   *xdsprobe.Store
	tracker *convergence.Tracker
	keys    *svid.KeyPool
	log     *output.OnceLog

	ids      []string
	sidecars []proxy.Proxy
	slots    chan struct{} // holds one for each sidecar that is not complete
	running  sync.WaitGroup

	mu          sync.Mutex
	renewing    map[string]bool // whose next certificate counts
	certificate *stats.Histogram
	certified   chan struct{} // takes one for each of those
}

var _ proxy.Observer = (*fleet)(nil)

func newFleet(keys *svid.KeyPool, log func(string)) *fleet {
	f := &fleet{
		store: xdsprobe.NewStore(), tracker: convergence.New(), keys: keys, log: &output.OnceLog{Log: log},
		slots:       make(chan struct{}, maxStarting),
		renewing:    map[string]bool{},
		certificate: stats.NewHistogram(),
		certified:   make(chan struct{}, certificatesMeasured),
	}
	f.tracker.OnComplete = func(string, time.Time) { <-f.slots }
	return f
}

// start starts a sidecar for every pod of the mesh, and returns when all are complete and
// certified. They run as long as life.
func (f *fleet) start(ctx, life context.Context, server *reference.StaticMesh, variant xdsprobe.Variant) error {
	now := time.Now()
	for service, endpoints := range server.Endpoints() {
		f.tracker.SetEndpoints(service, endpoints, now)
	}
	for i, service := range server.Mesh.Services {
		scope := f.tracker.Scope(server.Wants(i))
		for pod := range service.Pods {
			select {
			case f.slots <- struct{}{}:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			if err := f.add(life, server, i, pod, scope, variant); err != nil {
				return err
			}
		}
	}
	return f.await(ctx)
}

// await waits until all sidecars are converged.
func (f *fleet) await(ctx context.Context) error {
	for {
		if _, ok := f.tracker.Converged(); ok {
			return nil
		}
		select {
		case <-f.tracker.Changed():
		case <-ctx.Done():
			return fmt.Errorf("waiting for the sidecars: %w: %v", context.Cause(ctx), f.tracker.Missing(3))
		}
	}
}

// add starts one sidecar.
func (f *fleet) add(life context.Context, server *reference.StaticMesh, service, pod int, scope *convergence.Scope, variant xdsprobe.Variant) error {
	id := server.ProxyID(service, pod)
	sidecar, err := server.NewProxy(service, pod, controlplane.ProxyOptions{XDS: string(variant)}, controlplane.ProxyServices{
		Observer: f, Store: f.store, Keys: f.keys.Key,
	})
	if err != nil {
		return err
	}
	f.tracker.Add(id, scope)
	f.ids = append(f.ids, id)
	f.sidecars = append(f.sidecars, sidecar)
	f.running.Go(func() {
		if err := sidecar.Run(life); err != nil {
			f.log.Once("config", err.Error())
		}
	})
	return nil
}

const (
	certificatesMeasured = 100
	certificateInterval  = 10 * time.Millisecond
)

// renew makes sidecars request a certificate one after another, slowly enough that none
// waits for another, and returns when all have been answered.
func (f *fleet) renew(ctx context.Context) error {
	n := min(len(f.sidecars), certificatesMeasured)
	ticker := time.NewTicker(certificateInterval)
	defer ticker.Stop()
	for i := range n {
		f.mu.Lock()
		f.renewing[f.ids[i]] = true
		f.mu.Unlock()
		f.sidecars[i].Renew()
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for range n {
		select {
		case <-f.certified:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// TokenFetched implements proxy.Observer. These sidecars have no tokens.
func (f *fleet) TokenFetched(string, proxy.TokenFetched) {}

// StreamOpened implements proxy.Observer.
func (f *fleet) StreamOpened(id string, e proxy.StreamOpened) {
	f.tracker.FirstRequest(id, e.Requested)
}

// Updated implements proxy.Observer.
func (f *fleet) Updated(id string, e proxy.Update) {
	if e.Rejected != nil {
		f.log.Once("rejected", "a sidecar rejected "+e.Type.String()+": "+output.FirstLine(e.Rejected))
	}
	f.tracker.Update(id, e.Update)
}

// StreamEnded implements proxy.Observer.
func (f *fleet) StreamEnded(_ string, e proxy.StreamEnded) {
	if e.Class != proxy.Stopped {
		f.log.Once(string(e.Class), fmt.Sprintf("a stream ended (%s) after %d responses: %v", e.Class, e.Responses, e.Err))
	}
}

// Certified implements proxy.Observer.
func (f *fleet) Certified(id string, e proxy.Certificate) {
	if e.Err != nil {
		f.log.Once("certificate", output.FirstLine(e.Err))
		return
	}
	f.mu.Lock()
	counts := f.renewing[id]
	delete(f.renewing, id)
	f.mu.Unlock()
	if counts {
		f.certificate.Record(e.Verified.Sub(e.Sent))
		f.certified <- struct{}{} // has room for all
	}
	f.tracker.Certified(id, e.Verified)
}
