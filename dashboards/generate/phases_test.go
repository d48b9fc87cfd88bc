package main

import (
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

// Every phase that a record can have has a state of its own in the panel of phases.
func TestPhaseStates(t *testing.T) {
	var names, colors []string
	for i, s := range phaseStates {
		if slices.Contains(names, s.name) || slices.Contains(colors, s.color) {
			t.Errorf("state %d: %s in %s is not the only one", i+1, s.name, s.color)
		}
		names, colors = append(names, s.name), append(colors, s.color)
	}
	for _, phase := range append([]record.PhaseName{record.PhaseSettle, record.PhaseFault, record.UpgradePhase("canary")}, record.FigurePhases...) {
		if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(string(phase), name) }) {
			t.Errorf("%s has no state among %q", phase, names)
		}
	}
}
