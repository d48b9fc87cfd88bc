package run

import (
	"slices"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/pkg/record"
)

func TestClockWarnings(t *testing.T) {
	hour := measure.Disturbance{Moved: time.Hour}
	for name, c := range map[string]struct {
		phase record.PhaseName
		d     measure.Disturbance
		want  []string
	}{
		"moved in steady":      {record.PhaseSteady, hour, []string{"own.steady", "controlPlane.steady.heapBytes"}},
		"moved between phases": {"", hour, nil},
		"moved in settle":      {record.PhaseSettle, hour, nil},
		"suspended":            {record.PhaseProbe, measure.Disturbance{Suspended: time.Minute}, []string{"own.probe", "controlPlane.probe.heapBytes"}},
		"stopped in steady":    {record.PhaseSteady, measure.Disturbance{Paused: time.Minute}, []string{"controlPlane.steady.cores.peak"}},
		"stopped in rollout":   {record.PhaseRollout, measure.Disturbance{Paused: time.Minute}, []string{"controlPlane.rollout.cores.peak", "latencies"}},
	} {
		var got []string
		for _, w := range clockWarnings(c.phase, c.d) {
			got = append(got, w.About)
			if record.NewWarning(w).Text == "" {
				t.Errorf("%s: no sentence", name)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: warnings about %v, want %v", name, got, c.want)
		}
	}
}
