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
	o := startOptions(r)
	o.Revision, _ = revisionsOf(r.spec)
	if r.spec.Mesh != nil && r.driver.MeshEnv != nil {
		o.Resources.Env = append(r.driver.MeshEnv(&r.spec.Mesh.Mesh), o.Resources.Env...)
	}
	o.Remote, o.RealSidecars = r.spec.remote(), r.spec.RealSidecars > 0
	if replicated(r.spec) {
		o.Replicas, o.SpareReplicas = max(1, r.spec.Replicas), spareReplicas(r.spec)
	}
	r.adapter, err = r.driver.Start(ctx, o)
	if err != nil {
		return nil, err // what it started is in the run's group
	}
	r.describeControlPlane()
	if err := useMesh(ctx, r); err != nil {
		return nil, err
	}
	if r.adapter.Replicas == nil {
		return nil, nil
	}
	return func(context.Context) error { return r.adapter.Replicas.Close() }, nil
}

// startOptions are what every control plane of a run is started with.
func startOptions(r *run) controlplane.StartOptions {
	return controlplane.StartOptions{
		Programs:     r.programs.paths,
		Versions:     r.programs.versions,
		Scaler:       experiment.Version(),
		Kubeconfig:   r.env.API().Kubeconfig,
		REST:         r.api.Config,
		Group:        r.group,
		LogDir:       r.journal.Writer().LogDir(),
		Progress:     r.progress.Say,
		Resources:    r.resources,
		ProxyVersion: r.spec.ProxyVersion,
		Dataplane:    r.spec.Dataplane,
		Waypoints:    r.spec.Waypoints,
	}
}
