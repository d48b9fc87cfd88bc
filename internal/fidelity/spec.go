package fidelity

import (
	"slices"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/scenario"
)

// Spec holds the options of `scaler calibrate --fidelity`. The zero value of a field is
// not its default: DefaultSpec has those.
type Spec struct {
	Changes int    // random changes of the mesh that both proxies go through, for each case
	Starts  int    // times that each proxy is started, for each case
	Seed    uint64 // of the changes
	Cases   []string
	// Ztunnel is the path of a ztunnel to compare a simulated one with; "" = sidecars are compared.
	Ztunnel string

	// Programs states where programs are, the Envoy among them.
	Programs component.Options
	State    string // folder that holds what runs
}

// DefaultSpec returns the options of `scaler calibrate --fidelity` without other flags.
func DefaultSpec() Spec {
	return Spec{Changes: 200, Starts: 6, Seed: 1, Cases: sidecars.caseNames()}
}

// ZtunnelCases returns the default cases with a Ztunnel.
func ZtunnelCases() []string { return ztunnels.caseNames() }

// knobCase is one combination of settings under which both proxies run.
type knobCase struct {
	name  string
	knobs scenario.Settings
}

// meshSpec is the mesh of the two proxies: small, but with several namespaces, and
// services that call and are called.
var meshSpec = topology.Spec{Pods: 24, Services: 8, Namespaces: 2, Shape: topology.Random, FanOut: 3, Seed: 1}

// Validate returns a *[scenario.Error] of the first field with an invalid value. Nothing is started or created before it returns nil.
func (s Spec) Validate() error {
	if s.Changes < 0 || s.Changes > 10_000 {
		return scenario.Refuse("changes", s.Changes, "0 to 10000")
	}
	if s.Starts < 1 || s.Starts > 100 {
		return scenario.Refuse("starts", s.Starts, "1 to 100")
	}
	names := s.subject().caseNames()
	if len(s.Cases) == 0 {
		return scenario.CheckOneOf("cases", "", names)
	}
	for i, c := range s.Cases {
		if err := scenario.CheckOneOf("cases", c, names); err != nil {
			return err
		}
		if slices.Contains(s.Cases[:i], c) {
			return scenario.Refuse("cases", c, "each case once")
		}
	}
	return nil
}
