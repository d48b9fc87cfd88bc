package reference

import (
	"context"

	"scaler.mesh/scaler/pkg/component"
	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/controlplane/authority"
)

// Driver is scaler's own reference control plane, which is part of scaler's
// program.
func Driver() controlplane.Driver {
	return controlplane.Driver{
		Name:            Name,
		Summary:         "scaler's own control plane, which costs next to nothing",
		SidecarPrograms: []string{component.Envoy},
		Modes:           controlplane.StandardModes(),
		HostWorkloads:   true,
		NewProxy:        authority.NewProxy,
		Start: func(ctx context.Context, o controlplane.StartOptions) (*controlplane.ControlPlane, error) {
			c, err := Start(ctx, Options{
				Version: o.Scaler, Kubeconfig: o.Kubeconfig, REST: o.REST,
				Group: o.Group, LogDir: o.LogDir, Progress: o.Progress, Resources: o.Resources,
			})
			if err != nil {
				return nil, err
			}
			return c.Parts(), nil
		},
	}
}

// Parts are what this control plane can do.
func (c *ControlPlane) Parts() *controlplane.ControlPlane {
	return &controlplane.ControlPlane{
		Server: c, Program: c, Mesh: c, Proxies: c, Credentials: c, Probes: c, RealProxies: c, HostWorkloads: c,
	}
}
