package probes

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

// probeServices changes services, which proxies of nodes hold as such, and takes the changes
// back: one change each. Where each pod has a proxy of its own, there is nothing to follow.
func (p *prober) probeServices(ctx context.Context) error {
	if p.Adapter.Nodes == nil || len(p.services) == 0 {
		return nil
	}
	var services []int // that can be changed
	for _, i := range p.services {
		if p.Adapter.Nodes.ServiceProbe(p.Mesh, i, true) != nil {
			services = append(services, i)
		}
	}
	if len(services) == 0 {
		p.Journal.Warn(record.Warning{
			About: "latencies.push." + string(record.ServiceChange), Reason: record.ReasonNotSupported, Component: "the captured mesh",
			Detail: "each Service of a workload that is probed, or its namespace, prefers some endpoints already",
		})
		return nil
	}
	change := func(n int, made bool) *controlplane.ServiceChange {
		return p.Adapter.Nodes.ServiceProbe(p.Mesh, services[n/2%len(services)], made)
	}
	for n := range p.Changes {
		if err := p.probeService(ctx, change(n, n%2 == 0)); err != nil {
			return err
		}
	}
	if p.Changes%2 == 0 {
		return nil
	}
	if _, _, err := p.patchService(ctx, change(p.Changes-1, false)); err != nil {
		return err
	}
	return p.quiet(ctx)
}

// probeService makes one change and follows it to every proxy.
func (p *prober) probeService(ctx context.Context, change *controlplane.ServiceChange) error {
	f := p.Fleet.Tracker().Follow(convergence.Change{Key: change.Changes}, p.Fleet.Simulated(nil))
	begin, written, err := p.patchService(ctx, change)
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
func (p *prober) patchService(ctx context.Context, change *controlplane.ServiceChange) (begin, written time.Time, err error) {
	begin = time.Now()
	if _, err = p.API.Client.CoreV1().Services(change.Namespace).Patch(ctx, change.Name, types.MergePatchType, change.Patch, metav1.PatchOptions{}); err != nil {
		return begin, begin, fmt.Errorf("changing service %s/%s: %w", change.Namespace, change.Name, err)
	}
	return begin, time.Now(), nil
}
