package run

import (
	"context"

	"scaler.mesh/scaler/pkg/scenario"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/measure/containers"
	"scaler.mesh/scaler/internal/topology"
)

// checkReal checks what goes with real sidecars in a cluster that is there already.
func (s Spec) checkReal(d controlplane.Driver) error {
	switch {
	case s.Mesh.Sidecars.Real == 0 && s.Mesh.Sidecars.Image != "":
		return scenario.Refuse("mesh.sidecars.image", s.Mesh.Sidecars.Image, "it with mesh.sidecars.real")
	case s.Mesh.Sidecars.Real == 0:
		return nil
	case d.Installed.Sidecar == nil:
		return scenario.Refuse("mesh.sidecars.real", s.Mesh.Sidecars.Real, "none with place.context and controlPlane.name %s, where they are not supported", s.ControlPlane.Name)
	case s.Mesh.Sidecars.Image == "":
		return scenario.Refuse("mesh.sidecars.image", "", "an image that the cluster's nodes can get, with mesh.sidecars.real and place.context: docs/guides/own-cluster.md says of what")
	}
	if err := fleet.SpreadReal(topology.Build(s.topology()).Services, s.Mesh.Sidecars.Real); err != nil {
		return scenario.Refuse("mesh.sidecars.real", s.Mesh.Sidecars.Real, "fewer: %v", err)
	}
	return nil
}

// containerOptions are those of both.
func (r *run) containerOptions(m measurement) containers.Options {
	return containers.Options{Windows: m.windows, Await: r.completed, Sampler: r.sampler, Warn: r.journal.Warn, Say: r.progress.say}
}

// measureContainers puts into the record what containers used by the kubelets' count.
func (r *run) measureContainers(ctx context.Context, m measurement) error {
	if r.containers != nil {
		m.document.Containers = r.containers.Measure(ctx, r.containerOptions(m))
	}
	return nil
}

// askPrometheus puts into the record what the control plane used by a Prometheus of the cluster, which may be slow.
func (r *run) askPrometheus(ctx context.Context, m measurement) error {
	if e := r.spec.Existing; e != nil {
		m.document.ClusterPrometheus = containers.AskPrometheus(ctx, &e.found.Found, r.driver, r.containerOptions(m))
	}
	return nil
}
