package fleet

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// start starts the simulated sidecar of a pod. The caller holds Pods.mu.
func (f *Fleet) start(ctx context.Context, p *pod, object *corev1.Pod) {
	identity, err := f.Adapter.Identities.Sidecar(object)
	if err != nil {
		f.Fail(fmt.Errorf("simulating a sidecar: %w", err))
		return
	}
	identity.CertificateLifetime = f.Lifetime
	authority, err := f.Adapter.Identities.Issuer(identity)
	if err != nil {
		f.Fail(fmt.Errorf("simulating the sidecar of pod %s: %w", p.id, err))
		return
	}
	f.tracker.Add(p.id, f.scopes[object.Labels[kwok.ServiceLabel]])
	ctx, p.stop = context.WithCancel(ctx)
	p.sidecar = xdsprobe.New(experiment.SidecarConfig(identity, f.Variant, experiment.TokensOf(f.Adapter, object), authority, f.Keys), f.Store, observer{f})
	delay := f.Delay.Of(f.Seed, p.order)
	f.sidecars.Go(func() {
		defer authority.Close()
		if delay > 0 && experiment.WaitUntil(ctx, time.Now().Add(delay)) != nil {
			return
		}
		if err := p.sidecar.Run(ctx); err != nil && ctx.Err() == nil {
			f.Fail(fmt.Errorf("running the sidecar of pod %s: %w", p.id, err))
		}
	})
}
