// Package linkerd is scaler's adapter for Linkerd: destination, identity and proxy injector of release
// edge-21.7.1 as host processes, installed and started as its chart would, and the proxies of that
// release, which package linkerdproxy simulates.
//
// The injector adds a container to each pod, and the simulated proxy follows that container. Linkerd's
// proxies do not speak xDS. They look up each service that their workload calls, and request their
// certificate from Identity with the token of their pod. Kubernetes objects of the mesh are
// unstructured here: its Go module is that of the program alone.
package linkerd

import (
	"context"
	"maps"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/linkerd/linkerdproxy"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// Name is the name of the control plane.
const Name = "linkerd"

// Driver returns the driver of Linkerd with its proxies.
func Driver() controlplane.Driver {
	return controlplane.Driver{
		Name:    Name,
		Summary: "Linkerd, with its proxies",
		Programs: controlplane.Programs{
			Own:         []string{component.LinkerdController},
			Helpers:     []string{identityName, injectorName},
			Controllers: []string{"endpoints-controller"}, // destination watches Endpoints, not EndpointSlices
		},
		Dataplane: controlplane.Dataplane{
			Modes: modes(),
			Proxy: controlplane.Proxy{
				Types:        func() (*xdsprobe.Types, error) { return xdsprobe.NewTypes(linkerdproxy.Types()) },
				Certificates: &controlplane.Certificates{Requested: true},
				Tokens:       true,
				New:          newProxy,
			},
			Latency: &controlplane.LatencyPath{Intercepts: &controlplane.Intercepts{
				User: proxyUser, CallerHeader: callerHeader, GivenProxy: "linkerd2-proxy", Workers: proxyWorkers,
			}},
			Metrics: metrics(),
		},
		Dilation: &controlplane.Dilation{Dilate: dilate, Cost: &cost},
		Figures: controlplane.Figures{
			Work:     "destination: endpoints and profiles; identity: certificates; proxy injector: injection",
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
				Running: controlplane.Running{Program: c.destination, Helpers: []controlplane.Helper{
					{Name: identityName, Program: c.identity, Metrics: c.identity.url(metricsPath)},
					{Name: injectorName, Program: c.injector, Metrics: c.injector.url(metricsPath)},
				}},
				Sidecars: controlplane.Membership{PodAnnotations: map[string]string{injectAnnotation: "enabled"}}, // namespaces need none
				Real:     &controlplane.RealProxies{PodProxy: c.PodProxy, Token: c.Token},
			}, nil
		},
	}
}

// meanings returns the meanings of the figures that differ from Istio's.
func meanings() map[string]string {
	const (
		streams = "connections, streams and messages of Destination's GetProfile and Get, one stream for each target of a workload"
		objects = "changes of a route, by a ServiceProfile; there are no policies"
	)
	all := record.AcrossWith(map[string]string{record.AcrossADS: streams, record.AcrossHealth: controlplane.OnlyReady, record.AcrossObjects: objects})
	maps.Copy(all, map[string]string{
		"controlPlane":                    "destination alone; identity and the proxy injector are in cluster." + identityName + " and cluster." + injectorName,
		"latencies.connect":               "from the dial to HTTP/2 settings, without TLS",
		"latencies.connectTotal":          "from the first dial to HTTP/2 settings of the attempt that succeeded, without TLS",
		"latencies.reconnect":             "from the loss of the streams to the answers on all new ones",
		"latencies.firstConfiguration":    "from the first request of GetProfile to the first message",
		"latencies.completeConfiguration": "from the first request of GetProfile to the last message expected at that moment, on all streams of the proxy",
	})
	return all
}

// modes returns the one that this release has: it has no policies. Proxies encrypt what they send to each
// other and accept plaintext, and look up what their workload calls.
func modes() []controlplane.Mode {
	return []controlplane.Mode{{Name: "automatic", Knobs: scenario.Settings{MTLS: "permissive", Scope: scenario.ScopeDeclared, Authz: "none"}}}
}

func newProxy(spec proxy.Spec, s controlplane.ProxyServices) (proxy.Proxy, error) {
	services := linkerdproxy.Services{Counters: s.Store.Counters(), Observer: s.Observer, Backends: s.Backends}
	if s.Tokens != nil {
		services.Token = s.Tokens(spec.Token)
	}
	made, err := linkerdproxy.New(spec, services)
	if err != nil {
		return nil, err
	}
	return made, nil
}
