package fleet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/controlplane/authority"
	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/proxy"
)

// newProxy makes the simulated sidecar of a pod.
func newProxy(f *Fleet, object *corev1.Pod) (proxy.Proxy, error) {
	spec, err := f.Adapter.Proxies.Spec(object)
	if err != nil {
		return nil, err
	}
	controlplane.ProxyOptions{XDS: string(f.Variant), CertificateLifetime: f.Lifetime}.Apply(&spec)
	return f.Driver.NewProxy(spec, controlplane.ProxyServices{
		Observer: observer{f}, Store: f.Store, Keys: f.Keys.Key, Tokens: authority.Tokens(f.Client),
	})
}

// start starts the simulated sidecar of a pod. The caller holds Pods.mu.
func (f *Fleet) start(ctx context.Context, p *pod, object *corev1.Pod) {
	simulated, err := newProxy(f, object)
	if err != nil {
		f.Fail(fmt.Errorf("simulating the sidecar of pod %s: %w", p.id, err))
		return
	}
	f.tracker.Add(p.id, f.scopes[object.Labels[kwok.ServiceLabel]])
	if p.bare = f.Driver.NoCertificates; p.bare {
		f.tracker.Certified(p.id, time.Now()) // it asks for no certificate, so it waits for none
	}
	ctx, p.stop = context.WithCancel(ctx)
	p.sidecar = simulated
	delay := f.Delay.Of(f.Seed, p.order)
	f.sidecars.Go(func() {
		if delay > 0 && experiment.WaitUntil(ctx, time.Now().Add(delay)) != nil {
			return
		}
		if err := simulated.Run(ctx); err != nil && ctx.Err() == nil {
			f.Fail(fmt.Errorf("running the sidecar of pod %s: %w", p.id, err))
		}
	})
}
