package istio

import (
	"context"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/authority"
	"scaler.mesh/scaler/pkg/scenario"
)

// Name is the name of the control plane and of its process.
const Name = "istiod"

// Driver returns the driver of Istio with its sidecars.
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
		CheckKnobs:   scenario.Settings.Validate,
		CheckSetting: checkSetting,
		Profiles:     true,
		Captured:     &controlplane.CapturedMeshes{Check: checkMesh, Env: meshEnv},
		Replicas:     true,
		Dilation:     &controlplane.Dilation{Dilate: dilate, Cost: &cost, RestsInRealTime: true},
		Installed:    installed(),
		// While pods become ready one by one, it pushes every 10 s (PILOT_DEBOUNCE_MAX). The value must be less than fleet.QuietTime.
		FewerPushes: []string{"PILOT_DEBOUNCE_AFTER=1s"},
		Variables:   variables,
		Sized:       sized,
		Figures:     controlplane.Figures{Work: "istiod: configuration, certificates and injection", Panels: panels(), Limits: Limits},
		Start: func(ctx context.Context, o controlplane.StartOptions) (*controlplane.ControlPlane, error) {
			c, err := Start(ctx, o, connectionAge)
			if err != nil {
				return nil, err
			}
			return c.Parts(), nil
		},
	}
}

// sidecarDataplane returns an Envoy with its agent in each pod.
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

// Parts returns the capabilities of this control plane.
func (c *ControlPlane) Parts() *controlplane.ControlPlane {
	parts := &controlplane.ControlPlane{
		Server: c, Mesh: configuration{c}, Proxies: c, Running: controlplane.Running{Program: c.first},
		Sidecars: c.membership(), Probes: configuration{c}, Revision: c.revisions(), MakeGateway: makeGateway,
	}
	parts.Captured = captured{c}.parts()
	if c.replicas != nil {
		parts.Running = controlplane.Running{Replicas: c.replicas}
	}
	if !c.hasZtunnels() {
		real := realProxies{c}
		parts.Real = &controlplane.RealProxies{PodProxy: real.PodProxy, Token: real.Token, Host: real}
		return parts
	}
	parts.Nodes = &controlplane.NodeProxies{Nodes: ambient{c}}
	if c.withWaypoints() {
		parts.Nodes.Waypoints = waypoints{c}
	}
	return parts
}
