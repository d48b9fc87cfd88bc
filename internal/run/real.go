package run

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/measure/containers"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// checkReal checks what goes with real sidecars in an existing cluster.
func (s Spec) checkReal(d controlplane.Driver) error {
	switch {
	case s.Mesh.Sidecars.Real == 0 && s.Mesh.Sidecars.Image != "":
		return scenario.Refuse("mesh.sidecars.image", s.Mesh.Sidecars.Image, "it with mesh.sidecars.real")
	case s.Mesh.Sidecars.Real == 0:
		return nil
	case d.Installed.Sidecar == nil:
		return scenario.Refuse("mesh.sidecars.real", s.Mesh.Sidecars.Real, "none with place.context and controlPlane.name %s, where they are not supported", s.ControlPlane.Name)
	case s.Mesh.Sidecars.Image == "":
		return scenario.Refuse("mesh.sidecars.image", "", "an image that the cluster's nodes can pull, with mesh.sidecars.real and place.context; see docs/guides/own-cluster.md")
	}
	if err := fleet.SpreadReal(topology.Build(s.topology()).Services, s.Mesh.Sidecars.Real); err != nil {
		return scenario.Refuse("mesh.sidecars.real", s.Mesh.Sidecars.Real, "fewer: %v", err)
	}
	return nil
}

// realOptions returns the real sidecars of a run; nil if there are none.
func (r *run) realOptions() *fleet.RealOptions {
	if r.spec.Mesh.Sidecars.Real == 0 {
		return nil
	}
	o := &fleet.RealOptions{
		Count: r.spec.Mesh.Sidecars.Real, Sampler: r.sampler, Say: r.progress.say, Warn: r.journal.Warn,
		Quiet: func() bool { return r.currentPhase() == record.PhaseSteady },
	}
	for _, part := range r.unchecked {
		if part.What == record.UncheckedPatches {
			o.Patches = named(part)
		}
	}
	r.spec.place().placeSidecars(r, o)
	return o
}

// named returns the examples of a part, and how many more there are: the one that is the reason may be among those.
func named(part record.NotChecked) []string {
	more := part.Count - len(part.Examples)
	if more <= 0 {
		return part.Examples
	}
	return append(slices.Clone(part.Examples), fmt.Sprintf("and %d more", more))
}

// placeSidecars makes real sidecars processes of this machine.
func (embeddedPlace) placeSidecars(r *run, o *fleet.RealOptions) {
	o.Place = controlplane.RealSidecars{
		Adapter: r.adapter, Programs: r.programs.paths, Group: r.group,
		Dir: filepath.Join(r.group.Dir(), "sidecars"), Logs: r.journal.Writer().LogDir(),
		Lifetime: time.Duration(r.spec.Mesh.Sidecars.CertificateLifetime), Expiry: &controlplane.CertificateExpiry{},
	}
	o.Certified = !r.hasAgents() && r.driver.Proxy.RequestsCertificates()
}

// placeSidecars has the cluster inject real sidecars, on its nodes.
func (e *Existing) placeSidecars(r *run, o *fleet.RealOptions) {
	o.InPods = containers.RealPods(e.found.Cluster, *r.driver.Installed.Sidecar, r.containers)
}

// sidecarProcesses returns how many real sidecars of a run are processes of this machine.
func (s Spec) sidecarProcesses() int {
	if s.Existing != nil {
		return 0
	}
	return s.Mesh.Sidecars.Real
}

// hasAgents reports whether each real sidecar of the run's control plane has an agent.
func (r *run) hasAgents() bool { return r.programs.paths[component.PilotAgent] != "" }

// awaitKubelets waits for the readings of real sidecars that follow the last phase. A run that was interrupted does not.
func (m measurement) awaitKubelets(ctx context.Context) {
	if m.completed {
		m.containers.Await(ctx, m.windows[len(m.windows)-1].End, m.progress.say)
	}
}
