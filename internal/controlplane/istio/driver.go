package istio

import (
	"context"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/authority"
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
		Profiles:        true,
		Replicas:        true,
		Revisions:       true,
		Limits:          Limits,
		ConnectionAge:   connectionAge,

		CheckProxyVersion: checkProxyVersion,
		Work:              "istiod: configuration, certificates and injection",
		Metrics:           metrics(),
		Panels:            panels(),
		Dilate:            dilate,
		RestsInRealTime:   true,
		CheckMesh:         checkMesh,
		MeshEnv:           meshEnv,
		NewProxy:          authority.NewProxy,
		Dataplanes:        []controlplane.Dataplane{{Name: Ambient, Of: ofAmbient, Waypoints: ofWaypoints}, {Name: mixedName, Of: ofMixed}},
		Installed:         installed(),
		Start: func(ctx context.Context, o controlplane.StartOptions) (*controlplane.ControlPlane, error) {
			c, err := Start(ctx, Options{
				Program: o.Programs[component.Istiod], Manifests: o.Programs[component.IstioManifests], Kubeconfig: o.Kubeconfig, REST: o.REST,
				Group: o.Group, LogDir: o.LogDir, Progress: o.Progress, Resources: o.Resources, Versions: o.Versions,
				UpstreamEnvoy: o.RealSidecars, ProxyVersion: o.ProxyVersion, Replicas: o.Replicas, Spare: o.SpareReplicas,
				Name: o.Name, Revision: o.Revision, Next: o.Next,
				Ambient: o.Dataplane == Ambient || o.Dataplane == mixedName, Mixed: o.Dataplane == mixedName, Waypoints: o.Waypoints,
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
	parts := &controlplane.ControlPlane{
		Server: c, Program: c.first, Mesh: configuration{c}, Proxies: c, Credentials: credentials{c.client}, Issuers: credentials{c.client}, Probes: configuration{c}, Gateways: configuration{c},
		RealProxies: realProxies{c}, HostWorkloads: realProxies{c}, Revision: c.revisions(),
		Captured: captured{c},
	}
	if c.opts.Ambient {
		parts.Nodes, parts.RealProxies, parts.HostWorkloads = ambient{c}, nil, nil
	}
	if c.opts.withWaypoints() {
		parts.Waypoints = waypoints{c}
	}
	if c.replicas != nil {
		parts.Program, parts.Replicas = nil, c.replicas
	}
	return parts
}
