// Package testmesh is a control plane for tests alone, and the smallest complete
// example of an adapter. It is as different from Istio as Open Service Mesh is: a
// sidecar has no agent and no tokens, shows the control plane a bootstrap certificate
// (mutual TLS), receives its service certificate over SDS, and speaks the state of the
// world. Its two modes are its own, see Driver.
//
// Everything is in this package: the program (Serve), which runs as a child of the
// tests' own program, and the adapter (Driver). It is not in the list of package
// drivers; a test injects it, as into rollout.Spec.Drivers. A rule in hack keeps
// it out of scaler.
package testmesh

import (
	"context"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/istioagent"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

const (
	// Name is that of the control plane, of its process and of its command.
	Name = "testmesh"
	// Namespace is where the control plane keeps what is its own.
	Namespace = "testmesh"

	// ModeOpen is the mode in which every sidecar is configured for all services, and
	// everyone may call everyone.
	ModeOpen = "open"
	// ModeIsolated is the mode in which a sidecar is configured for the services of
	// its own namespace, and only that namespace may call it.
	ModeIsolated = "isolated"
)

// The values of the knobs, which are this mesh's own: it knows no plaintext, and its
// unit of isolation is the namespace.
const (
	mtlsAlways         = "always"
	isolationNone      = "none"
	isolationNamespace = "namespace"
)

// Driver is the control plane, which runs as a child: program, with the command Name
// as its first argument, must call Serve with the others. "" is the program that calls
// Driver, which is a test whose TestMain does so.
func Driver(program string) controlplane.Driver {
	return controlplane.Driver{
		Name:    Name,
		Summary: "a control plane for tests",
		Dataplane: controlplane.Dataplane{
			Modes: []controlplane.Mode{
				{Name: ModeOpen, Knobs: controlplane.Knobs{MTLS: mtlsAlways, Scope: isolationNone, Authz: isolationNone}},
				{Name: ModeIsolated, Knobs: controlplane.Knobs{MTLS: mtlsAlways, Scope: isolationNamespace, Authz: isolationNamespace}},
			},
			Proxy: controlplane.Proxy{
				XDS: &controlplane.XDS{Variants: []string{string(xdsprobe.SotW)}}, Types: subscribed,
				Certificates: &controlplane.Certificates{}, New: newProxy,
			},
			Metrics: metrics(),
		},
		Start: func(ctx context.Context, o controlplane.StartOptions) (*controlplane.ControlPlane, error) {
			a, err := start(ctx, program, o)
			if err != nil {
				return nil, err
			}
			return &controlplane.ControlPlane{Server: a, Running: controlplane.Running{Program: a}, Mesh: a, Proxies: a, Probes: a}, nil
		},
	}
}

// subscribed are the types that a sidecar subscribes to: Envoy's, with secrets.
func subscribed() (*xdsprobe.Types, error) {
	return xdsprobe.NewTypes(xdsprobe.EnvoyTypesWithSecrets())
}

// newProxy is an Envoy without an agent: it has all that it needs in its specification,
// and its certificate comes over SDS.
func newProxy(spec proxy.Spec, s controlplane.ProxyServices) (proxy.Proxy, error) {
	envoy, err := istioagent.New(spec, istioagent.Services{Store: s.Store, Observer: s.Observer})
	if err != nil {
		return nil, err
	}
	return envoy, nil
}
