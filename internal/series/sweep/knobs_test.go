package sweep

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/run"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Each part of the profile is a variant with that part alone, and has a sentence.
func TestKnobs(t *testing.T) {
	spec := run.DefaultSpec()
	spec.Mesh.Pods, spec.Out = []int{400}, filepath.Join(t.TempDir(), "out")
	if _, err := Knobs(spec); err == nil {
		t.Error("a plain mesh is swept")
	}
	spec.Mesh.Profile, spec.Mesh.Parts = topology.Typical, scenario.Parts{VirtualServices: new(1000), OutsideChurn: new(0.0)}
	o, err := Knobs(spec)
	if err != nil {
		t.Fatal(err)
	}
	if len(o.Variants) != 13 || o.Variants[0].Name != "virtualServices 1000" {
		t.Fatalf("%+v", o.Variants)
	}
	o.Repeats = 4
	noise := map[string]float64{} // of the next run of each variant: half a percent up and down, without a difference of means
	o.Run = func(_ context.Context, spec run.Spec, _ run.Progress) (record.Run, error) {
		p := spec.Profile()
		if n := len(p.Each()); n > 1 {
			t.Errorf("%d parts at once: %s", n, p)
		}
		if noise[p.String()] == 0 {
			noise[p.String()] = 0.005
		}
		memory := 3e8 * (1 + noise[p.String()])
		noise[p.String()] *= -1
		if p.VirtualServices != nil {
			memory += 5e7
		}
		return record.Run{
			Name: spec.Name(), Status: record.StatusCompleted, Scenario: scenario.Scenario{Mesh: scenario.Mesh{Pods: scenario.List[int]{400}}}, Parts: p,
			ControlPlane: &record.ByPhase[*record.Usage]{Rollout: &record.Usage{MemoryBytes: &record.Level{Peak: &memory}}},
		}, nil
	}
	r, err := Run(context.Background(), o)
	if err != nil || len(r.Sentences) != len(o.Variants) || r.Answer != "" {
		t.Fatalf("%+v, %v", r, err)
	}
	if !strings.Contains(r.Sentences[0], "virtualServices 1000: rollout.memoryBytes.peak 286MiB to 33") {
		t.Error(r.Sentences[0])
	}
	for _, text := range r.Sentences[1:] {
		if !strings.Contains(text, "no significant difference in rollout.memoryBytes.peak") {
			t.Error(text)
		}
	}
	if r.Effects.Variants[0].Differs[0].What != "profile" || len(r.Effects.Variants[0].Remarks) > 1 {
		t.Errorf("%+v", r.Effects.Variants[0])
	}
}
