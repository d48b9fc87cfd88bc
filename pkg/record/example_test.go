package record_test

import (
	"fmt"
	"os"
	"path/filepath"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// A run writes its record as it goes, and whoever reports reads the whole folder.
func Example() {
	dir, err := os.MkdirTemp("", "record")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	runs := filepath.Join(dir, "runs")

	w, err := record.Create(runs, "istiod-strict-200")
	if err != nil {
		fmt.Println(err)
		return
	}
	run := record.Run{
		APIVersion: record.APIVersion, Kind: record.Kind, Schema: record.Schema, Name: "istiod-strict-200",
		Status:   record.StatusCompleted,
		Scenario: scenario.Scenario{Mesh: scenario.Mesh{Pods: scenario.List[int]{200}, Mode: scenario.List[string]{"strict"}}},
		Phases:   []record.Phase{{Name: record.PhaseRollout, Seconds: new(12.5), EndedBy: record.EndedByConverged}},
	}
	if err := w.Save(&run); err != nil {
		fmt.Println(err)
		return
	}
	if err := w.Close(); err != nil {
		fmt.Println(err)
		return
	}

	all, err := record.Read(runs)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range all {
		fmt.Printf("%s: %s, rollout %.1f s\n", r.Name, r.Status, *r.RolloutSeconds())
	}
	// Output: istiod-strict-200: completed, rollout 12.5 s
}

// The sentence of a warning is made from its reason and its numbers when it is printed.
func ExampleWarning_Sentence() {
	w := record.Warning{
		About: "latencies", Reason: record.ReasonLateReceipt,
		Values: map[string]float64{"waited": 3, "responses": 120, "longestSeconds": 0.25, "totalSeconds": 0.26},
	}
	fmt.Println(w.Sentence())
	// Output: scaler itself received late: 3 of 120 responses waited until it had room for them, up to 250.0 ms and 0.26 s in all, and may have come that much earlier
}
