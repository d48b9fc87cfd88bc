package run

import (
	"context"

	"scaler.mesh/scaler/pkg/scenario"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
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

// awaitKubelets waits for the readings of real sidecars that follow the last phase. A run that was interrupted does not.
func (r *run) awaitKubelets(ctx context.Context, m measurement) error {
	if r.completed {
		r.containers.Await(ctx, m.windows[len(m.windows)-1].End, r.progress.say)
	}
	return nil
}
