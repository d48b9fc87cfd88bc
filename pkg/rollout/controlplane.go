package rollout

import (
	"context"

	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/record"
)

func (r *run) startControlPlane(ctx context.Context) (_ experiment.Undo, err error) {
	var doubt *record.Warning
	if r.resources, doubt = controlPlaneResources(r.spec, r.affinity.given); doubt != nil {
		r.journal.Warn(*doubt)
	}
	r.resources, r.dilation = r.spec.dilate(r.driver, r.resources)
	revision, _ := revisionsOf(r.spec)
	replicas := 0
	if replicated(r.spec) {
		replicas = max(1, r.spec.Replicas)
	}
	r.adapter, err = r.driver.Start(ctx, controlplane.StartOptions{
		Programs:     r.programs.paths,
		Versions:     r.programs.versions,
		Scaler:       experiment.Version(),
		Kubeconfig:   r.env.API().Kubeconfig,
		REST:         r.api.Config,
		Group:        r.group,
		LogDir:       r.journal.Writer().LogDir(),
		Progress:     r.progress.Say,
		Resources:    r.resources,
		Remote:       r.spec.remote(),
		RealSidecars: r.spec.RealSidecars > 0,
		ProxyVersion: r.spec.ProxyVersion,
		Revision:     revision,
		Replicas:     replicas, SpareReplicas: spareReplicas(r.spec),
	})
	if err != nil {
		return nil, err // what it started is in the run's group
	}
	r.describeControlPlane()
	if r.adapter.Replicas == nil {
		return nil, nil
	}
	return func(context.Context) error { return r.adapter.Replicas.Close() }, nil
}
