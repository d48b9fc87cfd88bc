package main

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"scaler.mesh/scaler/pkg/record"
)

// phaseStates are the phases as the panel of phases has them: the row of a run has the number of a phase, which is mapped to
// its name and color. The stages of an upgrade share a state.
var phaseStates = []struct {
	matcher, name, color string
}{
	{equals(record.PhaseBaseline), string(record.PhaseBaseline), "light-blue"},
	{equals(record.PhaseRollout), string(record.PhaseRollout), "orange"},
	{equals(record.PhaseSettle), string(record.PhaseSettle), "#8e8e8e"},
	{equals(record.PhaseSteady), string(record.PhaseSteady), "green"},
	{equals(record.PhaseProbe), string(record.PhaseProbe), "purple"},
	{`phase=~"` + record.UpgradePrefix + `.*"`, "upgrade", "dark-blue"},
	{equals(record.PhaseChange), string(record.PhaseChange), "yellow"},
	{equals(record.PhaseCycle), string(record.PhaseCycle), "#1f9e9e"},
	{equals(record.PhaseStorm), string(record.PhaseStorm), "#e07fb0"},
	{equals(record.PhaseChurn), string(record.PhaseChurn), "#8a5a2b"},
	{equals(record.PhaseFault), string(record.PhaseFault), "red"},
}

// events are the phases whose start is marked on every panel: those whose beginning or end changes the load.
var events = fmt.Sprintf(`phase=~"%s|%s|%s|%s|%s.*"`, record.PhaseRollout, record.PhaseSettle, record.PhaseFault, record.PhaseStorm, record.UpgradePrefix)

func equals(phase record.PhaseName) string { return fmt.Sprintf(`phase="%s"`, phase) }

// phaseNumbers returns the query for the number of the phase of each run.
func phaseNumbers() query {
	var all []string
	for i, s := range phaseStates {
		all = append(all, fmt.Sprintf("%d * %s", i+1, metric("scaler_phase_info", byPhase, s.matcher)))
	}
	return aggregate("max", promql(strings.Join(all, " or ")))
}

// phaseMappings returns the name and the color of each number.
func phaseMappings() []dashboard.ValueMapping {
	of := dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: map[string]dashboard.ValueMappingResult{}}
	for i, s := range phaseStates {
		of.Options[fmt.Sprint(i+1)] = dashboard.ValueMappingResult{Text: new(s.name), Color: new(s.color), Index: new(int32(i))}
	}
	return []dashboard.ValueMapping{{ValueMap: &of}}
}
