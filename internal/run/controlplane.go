package run

import (
	"context"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/pkg/record"
)

func (r *run) startControlPlane(ctx context.Context) (_ steps.Undo, err error) {
	var warnings []record.Warning
	r.resources, warnings = r.spec.controlPlaneResources(r.group, r.journal.Run().Environment.Processor.SpeedBefore())
	if warning := r.spec.machineProcessors(r.driver); warning != nil {
		warnings = append(warnings, *warning)
	}
	if other := r.spec.otherVersion(); other != nil {
		warnings = append(warnings, *other)
	}
	for _, warning := range append(warnings, r.spec.replacedVersions()...) {
		r.journal.Warn(warning)
	}
	if text := r.spec.capturedText(); text != "" {
		r.progress.say(text)
	}
	r.resources, r.dilation = r.spec.dilate(r.driver, r.resources)
	var undo steps.Undo
	if r.adapter, undo, err = r.spec.place().startControlPlane(ctx, r); err != nil {
		return undo, err
	}
	r.describeControlPlane()
	return undo, r.useMesh(ctx)
}

// startOptions returns the options that every control plane of a run is started with.
func (r *run) startOptions() controlplane.StartOptions {
	o := controlplane.StartOptions{
		Programs:     r.programs.paths,
		Versions:     r.programs.versions,
		Scaler:       component.ScalerVersion(),
		Kubeconfig:   r.env.API().Kubeconfig,
		REST:         r.api.Config,
		Group:        r.group,
		LogDir:       r.journal.Writer().LogDir(),
		Progress:     r.progress.Say,
		Resources:    r.resources,
		Knobs:        r.spec.Knobs(),
		Mesh:         r.mesh,
		ProxyVersion: r.spec.Mesh.Sidecars.Version,
		Dataplane:    r.spec.Dataplane(),
		Waypoints:    r.spec.Mesh.Waypoints,
		Set:          r.spec.ControlPlane.Set,
	}
	if r.spec.Captured != nil {
		o.As = r.spec.Captured.Mesh.Served()
	}
	return o
}

func (r *run) controlPlaneName() string { return r.adapter.Server.Describe().Name }
