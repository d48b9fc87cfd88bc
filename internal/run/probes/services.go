package probes

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

// probeServices changes services, which proxies of nodes hold as such, and takes the changes
// back: one change each. Where each pod has a proxy of its own, there is nothing to follow.
func (p *prober) probeServices(ctx context.Context) error {
	if p.Adapter.Nodes == nil {
		return nil
	}
	for n := range p.Changes {
		service := p.of(n / 2)
		if err := p.probeService(ctx, service, n%2 == 0); err != nil {
			return err
		}
	}
	if p.Changes%2 == 0 {
		return nil
	}
	_, _, err := p.patchService(ctx, p.of((p.Changes-1)/2), false)
	if err != nil {
		return err
	}
	return p.quiet(ctx)
}

// probeService makes one change and follows it to every proxy.
func (p *prober) probeService(ctx context.Context, service int, made bool) error {
	_, key := p.Adapter.Nodes.ServiceProbe(p.Mesh, service, made)
	f := p.Fleet.Tracker().Follow(convergence.Change{Key: key}, p.Fleet.Simulated(nil))
	begin, written, err := p.patchService(ctx, service, made)
	if err != nil {
		f.Stop()
		return err
	}
	p.written.Record(written.Sub(begin))
	if err := p.await(ctx, record.ServiceChange, f, begun{since: written}, func() string { return "" }); err != nil {
		return err
	}
	return p.quiet(ctx)
}

// patchService writes a change of a service, and returns when it was sent and written.
func (p *prober) patchService(ctx context.Context, service int, made bool) (begin, written time.Time, err error) {
	s := p.Mesh.Services[service]
	patch, _ := p.Adapter.Nodes.ServiceProbe(p.Mesh, service, made)
	begin = time.Now()
	if _, err = p.API.Client.CoreV1().Services(s.Namespace).Patch(ctx, s.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return begin, begin, fmt.Errorf("changing service %s/%s: %w", s.Namespace, s.Name, err)
	}
	return begin, time.Now(), nil
}
