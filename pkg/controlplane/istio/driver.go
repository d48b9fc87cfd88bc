package istio

import (
	"context"

	"scaler.mesh/scaler/pkg/component"
	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/controlplane/authority"
)

// Name is that of the control plane and of its process.
const Name = "istiod"

// Driver is Istio with its sidecars.
func Driver() controlplane.Driver {
	return controlplane.Driver{
		Name:            Name,
		Summary:         "Istio's control plane, with sidecars",
		Programs:        []string{component.Istiod, component.IstioManifests},
		SidecarPrograms: []string{component.Envoy, component.PilotAgent},
		Modes:           controlplane.StandardModes(),
		HostWorkloads:   true,
		Limits:          Limits,

		CheckProxyVersion: checkProxyVersion,
		Metrics:           metrics(),
		Panels:            panels(),
		Dilate:            dilate,
		NewProxy:          authority.NewProxy,
		Start: func(ctx context.Context, o controlplane.StartOptions) (*controlplane.ControlPlane, error) {
			c, err := Start(ctx, Options{
				Program: o.Programs[component.Istiod], Manifests: o.Programs[component.IstioManifests], Kubeconfig: o.Kubeconfig, REST: o.REST,
				Group: o.Group, LogDir: o.LogDir, Progress: o.Progress, Resources: o.Resources, Versions: o.Versions,
				UpstreamEnvoy: o.RealSidecars, ProxyVersion: o.ProxyVersion,
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
		Server: c, Program: c, Mesh: configuration{c}, Proxies: c, Credentials: credentials{c.client}, Probes: configuration{c},
		RealProxies: realProxies{c}, HostWorkloads: realProxies{c},
	}
}
