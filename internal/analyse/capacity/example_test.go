package capacity_test

import (
	"fmt"

	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// measured returns a run of so many pods against a control plane that takes 20 ms of processor time
// and 300 kB of memory for each.
func measured(pods int) record.Run {
	n := float64(pods)
	const empty = 120e6
	memory := &record.Level{Mean: new(empty + 300e3*n), Peak: new(empty + 300e3*n)}
	return record.Run{
		APIVersion: record.APIVersion, Kind: record.Kind, Schema: record.Schema,
		Name: fmt.Sprintf("istiod-strict-%d", pods), Status: record.StatusCompleted,
		Scenario: scenario.Scenario{Mesh: scenario.Mesh{Pods: scenario.List[int]{pods}, Services: pods / 10, Topology: "layers", FanOut: 3, Mode: scenario.List[string]{"strict"}, Sidecars: scenario.Sidecars{XDS: "delta"}}},
		Environment: record.Environment{
			CPUs:         2,
			ControlPlane: record.ControlPlaneSource{Name: "istiod", Version: "1.31.0", Replicas: 1, GOMAXPROCS: 2},
			Knobs:        scenario.Settings{MTLS: "strict", Scope: "declared", Authz: "declared"},
		},
		Phases:  []record.Phase{{Name: record.PhaseRollout, Seconds: new(n / 20), EndedBy: record.EndedByConverged}},
		Arrival: &record.Arrival{AchievedPerSecond: new(50.0)},
		ControlPlane: &record.ByPhase[*record.Usage]{
			Baseline: &record.Usage{HeapBytes: &record.Level{Mean: new(20e6)}, MemoryBytes: &record.Level{Mean: new(empty)}},
			Rollout:  &record.Usage{CPUSeconds: new(0.020 * n), MemoryBytes: memory},
			Steady:   &record.Usage{HeapBytes: &record.Level{Collected: new(20e6 + 150e3*n), Mean: new(40e6)}, MemoryBytes: memory},
		},
		XDS: &record.XDS{ConfigurationBytes: &record.ConfigurationBytes{Mean: new(18e3)}},
	}
}

// Runs of 200, 400 and 800 pods, twice each, forecast one of 1600.
func ExampleMake() {
	var runs []record.Run
	for _, pods := range []int{200, 200, 400, 400, 800, 800} {
		runs = append(runs, measured(pods))
	}
	plan, err := capacity.Make(runs, capacity.Options{Pods: 1600})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range plan.Figures {
		fmt.Printf("%s: %.4g %s\n", f.Name, f.Forecast, f.Unit)
	}
	// Output:
	// controlPlane.steady.heapBytes: 2.6e+08 bytes
	// controlPlane.steady.memoryBytes.peak: 6e+08 bytes
	// controlPlane.rollout.memoryBytes.peak: 6e+08 bytes
	// controlPlane.rollout.cpuSeconds: 32 s
	// phases.rollout.seconds: 80 s
}
