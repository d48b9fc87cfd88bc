package rollout

import (
	"context"
	"fmt"
	"strings"

	"scaler.mesh/scaler/pkg/containers"
	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/environment/existing"
	"scaler.mesh/scaler/pkg/fleet"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/topology"
)

// findContainers finds the containers that the kubelets are asked about; nil where there are none, or where they may
// not be read.
func (e *Existing) findContainers(ctx context.Context, r *run) (*containers.Containers, error) {
	if len(e.found.Installation.Pods) == 0 {
		return nil, nil
	}
	missing, err := e.found.Cluster.MissingRights(ctx, existing.KubeletRights())
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		r.journal.Warn(record.Warning{
			About: "containers", Reason: record.ReasonNotSupported, Component: "context " + e.found.Cluster.Context,
			Detail: "its user may not " + strings.Join(missing, ", ") + ", through which the kubelets are asked what containers use",
		})
		return nil, nil
	}
	return containers.Find(ctx, &e.found.Found, r.api.Client, r.driver)
}

// checkReal checks what goes with real sidecars in a cluster that is there already.
func checkReal(s Spec, d controlplane.Driver) error {
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

// measureContainers puts into the record what containers used by the kubelets' count.
func (m measurement) measureContainers(ctx context.Context) error {
	if m.containers != nil {
		m.document.Containers = m.containers.Measure(ctx, containers.Options{
			Windows: m.timeline.Windows(), Await: m.completed, Sampler: m.sampler, Warn: m.journal.Warn, Say: m.progress.say,
		})
	}
	return nil
}
