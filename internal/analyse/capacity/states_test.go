package capacity

import (
	"math"
	"testing"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// The request is for the worst of the states that the runs were in, which is named.
func TestStates(t *testing.T) {
	runs := strict().runs(nil, 2, 200, 400, 600, 800)
	for i := range runs {
		r := &runs[i]
		pods := float64(r.PodCount())
		use := func(perPod, cores float64) *record.Usage {
			return &record.Usage{MemoryBytes: &record.Level{Peak: new(emptyResident + perPod*pods)}, Cores: &record.Level{Mean: new(cores * pods)}}
		}
		r.ControlPlane.Probe = use(1e5, 0.0001)
		r.Scenario.Load.Faults = []scenario.Fault{{Kind: scenario.KillControlPlane, Phase: scenario.PhaseSteady}}
		r.Faults = []record.Fault{{Name: "kill-control-plane", Phase: record.PhaseSteady, ControlPlane: use(5e6, 0.01)}}
	}
	plan, err := Make(runs, Options{Pods: 1600})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Decides{Memory: stateRestart, CPU: stateRestart}); plan.Decides != want {
		t.Errorf("%+v, want %+v", plan.Decides, want)
	}
	for _, state := range plan.States {
		want, known := map[string][2]float64{stateProbe: {emptyResident + 1e5*1600, 0.16}, stateRestart: {emptyResident + 5e6*1600, 16}}[state.Name]
		if known && (math.Abs(state.MemoryBytes.Forecast/want[0]-1) > 1e-6 || math.Abs(state.Cores.Forecast/want[1]-1) > 1e-6) {
			t.Errorf("%s: %+v, %+v, want %v", state.Name, state.MemoryBytes, state.Cores, want)
		}
	}
	if got, want := plan.Request.Resources.Limits.Memory, mebibytes(emptyResident+5e6*1600); got != want {
		t.Errorf("limits.memory is %s, want %s", got, want)
	}
	if plan.warningAbout("states", "change, cycle, churn: run with --change 1/s --cycle 60s --churn 1/s") == "" {
		t.Errorf("warnings %v: want churn as not measured", plan.Warnings)
	}
}

// A real sidecar's memory grows with its configuration; the sum is over all pods.
func TestSidecars(t *testing.T) {
	w := permissive()
	runs := w.runs(nil, 2, 200, 400, 600, 800)
	if plan, err := Make(runs, Options{Pods: 1600}); err != nil || plan.Sidecars != nil {
		t.Errorf("without real sidecars: %+v, %v", plan.Sidecars, err)
	}
	one := func(configuration float64) float64 { return 60e6 + 20*configuration }
	for i := range runs {
		memory := 5 * one(w.configuration(float64(runs[i].PodCount())))
		runs[i].Sidecars = &record.Sidecars{Real: &record.RealSidecars{Count: 5, ByPhase: record.ByPhase[*record.Usage]{
			Steady: &record.Usage{MemoryBytes: &record.Level{Mean: &memory}},
		}}}
	}
	plan, err := Make(runs, Options{Pods: 1600})
	if err != nil {
		t.Fatal(err)
	}
	want := one(w.configuration(1600))
	s := plan.Sidecars
	if s == nil || math.Abs(s.MemoryBytes.Forecast/want-1) > 1e-6 || math.Abs(s.PodsMemoryBytes.Forecast/(1600*want)-1) > 1e-6 || math.Abs(s.BytesPerConfigurationByte-20) > 1e-6 {
		t.Errorf("%+v: want %v each", s, want)
	}
	// Where the configuration does not grow, its cost is not reported.
	flat := strict().runs(nil, 2, 200, 400, 600, 800)
	for i := range flat {
		flat[i].Sidecars = &record.Sidecars{Real: &record.RealSidecars{Count: 2, ByPhase: record.ByPhase[*record.Usage]{
			Steady: &record.Usage{MemoryBytes: &record.Level{Mean: new(140e6)}},
		}}}
	}
	plan, err = Make(flat, Options{Pods: 1600})
	if err != nil {
		t.Fatal(err)
	}
	if s := plan.Sidecars; s == nil || s.BytesPerConfigurationByte != 0 || math.Abs(s.MemoryBytes.Forecast-70e6) > 1 || plan.warningAbout("sidecars.real.steady.memoryBytes", "did not grow") == "" {
		t.Errorf("%+v, %v", s, plan.Warnings)
	}
}
