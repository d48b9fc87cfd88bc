package report

import (
	"fmt"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// A report says how trials chose the factor, also if they chose not to slow time down.
func TestChosenDilation(t *testing.T) {
	for _, factor := range []float64{1, 3} {
		run := record.Run{Name: "istiod-permissive-60", Scenario: scenario.Scenario{Instrument: scenario.Instrument{Dilation: scenario.Dilation{Factor: factor}}}, Environment: record.Environment{Dilation: &record.Dilation{Auto: &record.DilationChoice{
			Limit: 0.1,
			Trials: []record.DilationTrial{{
				Pods: 60, Mode: "permissive", Seconds: 8.74,
				ControlPlane: record.DilationWait{CPUSeconds: 2.86, WaitedSeconds: 2.2, Factor: 2},
				Instrument:   record.DilationWait{CPUSeconds: 1.58, WaitedSeconds: 2.83, Factor: 3},
			}},
		}}}}
		var text strings.Builder
		if err := Print(&text, "table", []record.Run{run}); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("%g, ", factor) + "with which programs wait for at most 10.0% of a rollout; trial of 60 pods, permissive: in 8.74s the control plane waited 2.20s and used 2.86s, scaler 2.83s and 1.58s"
		if !strings.Contains(text.String(), want) {
			t.Errorf("factor %g: it lacks %q:\n%s", factor, want, text.String())
		}
	}
}
