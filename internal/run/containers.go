package run

import (
	"context"
	"fmt"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/measure/containers"
	"scaler.mesh/scaler/internal/topology"
)

// checkReal checks what goes with real sidecars in a cluster that is there already.
func (s Spec) checkReal(d controlplane.Driver) error {
	switch {
	case s.RealSidecars == 0 && s.EchoImage != "":
		return fmt.Errorf("parsing --echo-image %q: want it with --real-sidecars", s.EchoImage)
	case s.RealSidecars == 0:
		return nil
	case d.Installed.Sidecar == nil:
		return fmt.Errorf("parsing --real-sidecars %d: want none with --context and --control-plane %s, where they are not supported", s.RealSidecars, s.ControlPlane)
	case s.EchoImage == "":
		return fmt.Errorf("parsing --echo-image \"\": want an image that the cluster's nodes can get, with --real-sidecars and --context: docs/guides/own-cluster.md says of what")
	}
	if err := fleet.SpreadReal(topology.Build(s.Topology).Services, s.RealSidecars); err != nil {
		return fmt.Errorf("parsing --real-sidecars %d: %w", s.RealSidecars, err)
	}
	return nil
}

// containerOptions are those of both.
func (m measurement) containerOptions() containers.Options {
	return containers.Options{Windows: m.timeline.Windows(), Await: m.completed, Sampler: m.sampler, Warn: m.journal.Warn, Say: m.progress.say}
}

// measureContainers puts into the record what containers used by the kubelets' count.
func (m measurement) measureContainers(ctx context.Context) error {
	if m.containers != nil {
		m.document.Containers = m.containers.Measure(ctx, m.containerOptions())
	}
	return nil
}

// askPrometheus puts into the record what the control plane used by a Prometheus of the cluster, which may be slow.
func (m measurement) askPrometheus(ctx context.Context) error {
	if e := m.spec.Existing; e != nil {
		m.document.ClusterPrometheus = containers.AskPrometheus(ctx, &e.found.Found, m.driver, m.containerOptions())
	}
	return nil
}
