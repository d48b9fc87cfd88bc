package fleet

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/kwok"
)

// start starts the simulated sidecar of a pod. The caller holds Pods.mu.
func (f *Fleet) start(p *pod, object *corev1.Pod) {
	p.revision = f.Revisions.of(object)
	spec, err := p.revision.adapter.Load().Proxies.Spec(object)
	if err != nil {
		f.Fail(fmt.Errorf("simulating the sidecar of pod %s: %w", p.id, err))
		return
	}
	controlplane.ProxyOptions{XDS: string(f.Variant), CertificateLifetime: f.Lifetime, Slowdown: f.Slowdown}.Apply(&spec)
	p.revision.tracker.Add(p.id, p.revision.scopes[object.Labels[kwok.ServiceLabel]])
	if p.bare = f.Driver.Proxy.Certificates == nil || p.ofNode; p.bare {
		p.revision.tracker.Certified(p.id, time.Now()) // it asks for no certificate of its own, so it waits for none
	}
	w := f.Workers[p.order%len(f.Workers)]
	p.worker, p.stop = w, func() { w.Do(worker.Stop, p.id) }
	if err := w.Start(worker.Proxy{Spec: spec, Delay: f.Delay.Of(f.Seed, p.order)}); err != nil {
		f.Fail(err)
	}
}
