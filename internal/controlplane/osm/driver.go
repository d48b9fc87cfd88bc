// Package osm is scaler's adapter for Open Service Mesh: osm-controller and osm-injector as host
// processes, installed by osm-bootstrap and started as the chart of release 1.2.4 would, and everything that a
// sidecar of that release sends and must receive.
//
// A sidecar has no agent and no tokens: the injector writes a certificate into a Secret for each
// pod, with which its Envoy connects to the controller, and its service certificate comes over
// SDS. Kubernetes objects of the mesh are unstructured here: its Go module is that of the
// programs alone.
package osm

import (
	"context"
	"maps"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/istioagent"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// Name is the name of the control plane.
const Name = "osm"

// Driver returns the driver of Open Service Mesh with its sidecars.
func Driver() controlplane.Driver {
	return controlplane.Driver{
		Name:    Name,
		Summary: "Open Service Mesh, with sidecars",
		Programs: controlplane.Programs{
			Own:         []string{component.OSMController, component.OSMInjector, component.OSMBootstrap},
			Helpers:     []string{injectorName},
			Controllers: []string{"endpoints-controller"}, // osm-controller watches Endpoints, not EndpointSlices
		},
		Dataplane: controlplane.Dataplane{
			Modes: modes(),
			Proxy: controlplane.Proxy{
				XDS:          &controlplane.XDS{Variants: []string{string(xdsprobe.SotW)}},
				Types:        func() (*xdsprobe.Types, error) { return xdsprobe.NewTypes(types()) },
				Certificates: &controlplane.Certificates{}, // over SDS
				New:          newProxy,
			},
			SidecarPrograms: []string{component.Envoy},
			Latency:         &controlplane.LatencyPath{Intercepts: &controlplane.Intercepts{User: proxyUser}},
			Metrics:         metrics(),
		},
		Dilation: &controlplane.Dilation{Dilate: dilate, Cost: &cost},
		Figures: controlplane.Figures{
			Work:     "osm-controller: configuration and certificates of services; osm-injector: injection and a bootstrap certificate for each pod",
			Meanings: meanings(),
			Limits:   limits,
		},
		Start: func(ctx context.Context, o controlplane.StartOptions) (*controlplane.ControlPlane, error) {
			c, err := start(ctx, o)
			if err != nil {
				return nil, err
			}
			return &controlplane.ControlPlane{
				Server: c, Mesh: c, Proxies: c, Probes: c,
				Running: controlplane.Running{
					Program: c.controller,
					Helpers: []controlplane.Helper{{Name: injectorName, Program: c.injector, Metrics: c.injector.url(metricsPath)}},
				},
				Sidecars: controlplane.Membership{
					NamespaceLabels: map[string]string{monitorLabel: meshName},
					PodAnnotations:  map[string]string{injectAnnotation: "enabled"},
				},
				Real: &controlplane.RealProxies{PodProxy: c.PodProxy},
			}, nil
		},
	}
}

// meanings returns the meanings of the figures that differ from Istio's.
func meanings() map[string]string {
	const (
		sotw    = "connections, streams and messages of ADS in the state of the world, certificates over SDS included"
		objects = "changes of a policy, by an UpstreamTrafficSetting; there are none of routes"
	)
	all := record.AcrossWith(map[string]string{record.AcrossADS: sotw, record.AcrossHealth: controlplane.OnlyReady, record.AcrossObjects: objects})
	maps.Copy(all, map[string]string{
		"controlPlane":                    "osm-controller alone; osm-injector is in cluster." + injectorName,
		"sidecars":                        controlplane.NoAgents,
		"certificates":                    "requests for the service certificate over SDS that were answered, and the certificates; without those that the injector writes",
		"latencies.certificate":           "from the request for the secret on the ADS stream to the received secret; the key comes with it, and one certificate serves all pods of an account",
		"latencies.completeConfiguration": "from the first request on the ADS stream to the last resource expected at that moment, the service certificate included",
	})
	return all
}

// permissive is the mode in which every sidecar is configured for all services.
const permissive = "permissive"

// modes are MeshConfig's enablePermissiveTrafficPolicyMode and its opposite, SMI's policies. In
// both, sidecars accept no plaintext.
func modes() []controlplane.Mode {
	return []controlplane.Mode{
		{Name: permissive, Knobs: scenario.Settings{MTLS: "strict", Scope: "all", Authz: "none"}},
		{Name: "strict", Knobs: scenario.Settings{MTLS: "strict", Scope: scenario.ScopeDeclared, Authz: "declared"}},
	}
}

// types returns the types of an Envoy whose bootstrap limits how long the first clusters are waited for, as
// the injector's does by default. osm-controller does not answer a request for clusters
// that comes before it has seen the pod, and sends such a sidecar nothing until listeners are requested.
func types() []xdsprobe.ResourceType {
	all := xdsprobe.EnvoyTypesWithSecrets()
	for i := range all {
		if all[i].Name == convergence.CDS {
			all[i].FetchTimeout = xdsprobe.FetchTimeout
		}
	}
	return all
}

// newProxy returns an Envoy without an agent: its specification has all that it needs.
func newProxy(spec proxy.Spec, s controlplane.ProxyServices) (proxy.Proxy, error) {
	envoy, err := istioagent.New(spec, istioagent.Services{Store: s.Store, Observer: s.Observer})
	if err != nil {
		return nil, err
	}
	return envoy, nil
}
