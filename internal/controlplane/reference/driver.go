package reference

import (
	"context"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/authority"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Driver is scaler's own reference control plane, which is part of scaler's
// program.
func Driver() controlplane.Driver {
	return controlplane.Driver{
		Name:    Name,
		Summary: "scaler's own control plane, which costs next to nothing",
		Dataplane: controlplane.Dataplane{
			Modes: controlplane.StandardModes(),
			Proxy: controlplane.Proxy{
				XDS: controlplane.BothVariants(), Certificates: &controlplane.Certificates{Requested: true, ForLifetime: true}, Tokens: true,
				New: authority.NewProxy,
			},
			SidecarPrograms: []string{component.Envoy},
			Latency:         &controlplane.LatencyPath{},
			Metrics:         metrics(),
		},
		CheckKnobs: scenario.Settings.Validate,
		Dilation:   &controlplane.Dilation{Dilate: dilate},
		Figures: controlplane.Figures{
			Work:     "the reference control plane: configuration and certificates, without injection",
			Meanings: meanings(),
		},
		Start: func(ctx context.Context, o controlplane.StartOptions) (*controlplane.ControlPlane, error) {
			c, err := Start(ctx, o)
			if err != nil {
				return nil, err
			}
			return c.Parts(), nil
		},
	}
}

// meanings returns the meanings of the figures that differ from Istio's.
func meanings() map[string]string {
	all := record.AcrossWith(map[string]string{record.AcrossObjects: "changes of a route or a policy of the mesh, by ConfigMaps"})
	all["latencies.podAdmission"], all["sidecars"] = controlplane.NotInjected, controlplane.NoAgents
	return all
}

// dilate changes nothing: the pace of pushes is what keeps it from costing much, and
// all else of it is processor time.
func dilate(env []string, _ int, _ float64) controlplane.Dilated {
	return controlplane.Dilated{Env: env, Unscaled: []string{"the pace of its pushes, at most 20,000 a second"}}
}

// Parts returns the capabilities of this control plane.
func (c *ControlPlane) Parts() *controlplane.ControlPlane {
	return &controlplane.ControlPlane{
		Server: c, Mesh: c, Proxies: c, Probes: c, Running: controlplane.Running{Program: c}, // its pods need no labels: they are not injected
		Real: &controlplane.RealProxies{PodProxy: c.PodProxy, Token: c.Token, Issuer: c.Issuer, Host: c},
	}
}
