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
		Name:      Name,
		Summary:   "Istio's control plane, with sidecars",
		Programs:  controlplane.Programs{Own: []string{component.Istiod, component.IstioManifests}},
		Dataplane: sidecarDataplane(),
		Dataplanes: []controlplane.OtherDataplane{
			{Name: Ambient, Dataplane: ambientDataplane(), Waypoints: new(waypointDataplane())},
			{Name: mixedName, Dataplane: mixedDataplane()},
		},
		CheckKnobs: controlplane.Knobs.Validate,
		Profiles:   true,
		Captured:   &controlplane.CapturedMeshes{Check: checkMesh, Env: meshEnv},
		Replicas:   true,
		Dilation:   &controlplane.Dilation{Dilate: dilate, RestsInRealTime: true},
		Installed:  installed(),
		Figures:    controlplane.Figures{Work: "istiod: configuration, certificates and injection", Panels: panels(), Limits: Limits},
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

// sidecarDataplane is an Envoy with its agent in each pod.
func sidecarDataplane() controlplane.Dataplane {
	return controlplane.Dataplane{
		Modes: controlplane.StandardModes(),
		Proxy: controlplane.Proxy{
			XDS: controlplane.BothVariants(), Certificates: &controlplane.Certificates{Requested: true, ForLifetime: true}, Tokens: true,
			CheckVersion: checkProxyVersion, ConnectionAge: connectionAge, New: authority.NewProxy,
		},
		SidecarPrograms: []string{component.Envoy, component.PilotAgent},
		Latency:         &controlplane.LatencyPath{},
		Revisions:       true,
		Metrics:         metrics(),
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
