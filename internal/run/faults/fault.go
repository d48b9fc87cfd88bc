// Package faults breaks things on purpose during a run, and records what that costs:
// the control plane is restarted or killed, streams are cut, the API server is gone
// for a while. How each of them is done is left to the run, as Options.Make.
package faults

import (
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/scenario"
)

// CheckReplicas states which of the faults cannot be made of a control plane that is
// started as so many programs: one that leaves none, or that is of several where there is
// one.
func CheckReplicas(all []scenario.Fault, replicas int) error {
	for _, phase := range []string{scenario.PhaseRollout, scenario.PhaseProbe, scenario.PhaseSteady} { // as they follow each other
		for _, f := range scenario.FaultsIn(all, phase) {
			k := f.Described()
			switch {
			case replicas >= k.Needs:
				replicas += k.Adds
			case k.Adds < 0:
				return scenario.Refuse("load.faults", f, "a larger controlPlane.replicas, so that one is left when it is made")
			default:
				return scenario.Refuse("load.faults", f, "controlPlane.replicas %d or more, or %s", k.Needs, scenario.RestartControlPlane)
			}
		}
	}
	return nil
}

// CheckPrograms returns an error for a fault that ends a program which the control plane does not have.
// programs are the programs of the control plane, except the one that serves the sidecars.
func CheckPrograms(all []scenario.Fault, controlPlane string, programs []string) error {
	for _, f := range all {
		switch {
		case f.Program == "" || slices.Contains(programs, f.Program):
		case len(programs) == 0:
			return scenario.Refuse("load.faults", f, "%s without a value with controlPlane.name %s, which is one program", f.Kind, controlPlane)
		default:
			return scenario.Refuse("load.faults", f, "%s:%s with controlPlane.name %s, or %s without a value", f.Kind, strings.Join(programs, " or "), controlPlane, f.Kind)
		}
	}
	return nil
}

// due returns the number of complete sidecars at which the i-th of n faults in the rollout is
// injected, from 0: they are spread over it.
func due(i, n, pods int) int { return max(1, pods*(i+1)/(n+1)) }
