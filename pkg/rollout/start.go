package rollout

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// start starts the sidecar of a pod. The caller holds mu.
func (f *fleet) start(ctx context.Context, p *pod, object *corev1.Pod) {
	identity, err := f.adapter.Identities.Sidecar(object)
	if err != nil {
		f.fail(fmt.Errorf("simulating a sidecar: %w", err))
		return
	}
	identity.CertificateLifetime = f.lifetime
	authority, err := f.adapter.Identities.Issuer(identity)
	if err != nil {
		f.fail(fmt.Errorf("simulating the sidecar of pod %s: %w", p.id, err))
		return
	}
	f.tracker.Add(p.id, f.scopes[object.Labels[kwok.ServiceLabel]])
	ctx, p.stop = context.WithCancel(ctx)
	p.sidecar = xdsprobe.New(experiment.SidecarConfig(identity, f.variant, experiment.TokensOf(f.adapter, object), authority, f.keys), f.probes, f)
	delay := f.delay.Of(f.seed, p.order)
	f.sidecars.Go(func() {
		defer authority.Close()
		if delay > 0 && experiment.WaitUntil(ctx, time.Now().Add(delay)) != nil {
			return
		}
		if err := p.sidecar.Run(ctx); err != nil && ctx.Err() == nil {
			f.fail(fmt.Errorf("running the sidecar of pod %s: %w", p.id, err))
		}
	})
}
