package fidelity

import (
	"context"
	"fmt"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/istio"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/scenario"
)

// subject holds everything in which comparisons of sidecars and of ztunnels differ.
type subject struct {
	name    string
	cases   []knobCase
	changes []meshChangeKind
	nodes   int      // of the cluster
	types   []string // of which a proxy that has its configuration was sent something
	ownWork string   // why the real one takes longer, waiting for istiod excluded; "" = it should not

	dataplane string // as in controlplane.Dataplane
	configure func(*controlplane.StartOptions)
	// check checks the real proxy's program; choose chooses the two pods.
	check, choose func(*run, context.Context) error
	startReal     func(*run, context.Context) (*tappedProxy, error)
	// more compares what the streams do not show; nil = nothing.
	more func(c *comparison, ctx context.Context, about string) error
}

// The subjects. They are never assigned again.
var (
	sidecars = subject{
		name:  "sidecar",
		nodes: 1,
		cases: []knobCase{ // the two modes, and each setting alone
			{"permissive", controlplane.Modes["permissive"]},
			{"mtls", scenario.Settings{MTLS: "strict", Scope: "all", Authz: "none"}},
			{"scope", scenario.Settings{MTLS: "permissive", Scope: scenario.ScopeDeclared, Authz: "none"}},
			{"authz", scenario.Settings{MTLS: "permissive", Scope: "all", Authz: "declared"}},
			{"strict", controlplane.Modes["strict"]},
		},
		changes:   []meshChangeKind{scaleChange, healthChange, routeChange, policyChange, serviceChange},
		types:     []string{convergence.CDS.String(), convergence.LDS.String()},
		ownWork:   envoysWork,
		dataplane: controlplane.Sidecars,
		configure: func(o *controlplane.StartOptions) { o.RealSidecars = true },
		check:     (*run).checkEnvoy,
		choose:    (*run).choosePods,
		startReal: (*run).startAgent,
	}
	ztunnels = subject{
		name:  "ztunnel",
		nodes: 2,
		cases: []knobCase{
			{"permissive", scenario.Settings{MTLS: "permissive", Authz: "none"}},
			{"mtls", scenario.Settings{MTLS: "strict", Authz: "none"}},
			{"authz", scenario.Settings{MTLS: "permissive", Authz: "declared"}},
			{"strict", scenario.Settings{MTLS: "strict", Authz: "declared"}},
		},
		changes:   []meshChangeKind{scaleChange, healthChange, policyChange, serviceChange},
		types:     ztunnelTypes,
		ownWork:   ztunnelsWork,
		dataplane: istio.Ambient,
		configure: func(o *controlplane.StartOptions) { o.Dataplane = istio.Ambient },
		check:     func(*run, context.Context) error { return nil }, // its version was asked for
		choose:    (*run).makeZtunnels,
		startReal: (*run).startZtunnel,
		more:      (*comparison).ztunnelMore,
	}
)

// subject returns the subject of the comparison.
func (s Spec) subject() *subject {
	if s.Ztunnel != "" {
		return &ztunnels
	}
	return &sidecars
}

func (s *subject) caseNames() []string {
	var names []string
	for _, c := range s.cases {
		names = append(names, c.name)
	}
	return names
}

// driver returns the driver of Istio for the subject's data plane.
func (s *subject) driver() (controlplane.Driver, error) {
	return istio.Driver().Of(s.dataplane, controlplane.NoWaypoints)
}

// sideName returns the name of a side in messages.
func (r *run) sideName(side int) string { return fmt.Sprintf("%s %s", sideNames[side], r.what.name) }
