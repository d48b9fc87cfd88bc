package measure

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/record"
)

// killed returns the record of a run that was killed 10 s into steady: a control plane that
// uses half a core, and etcd.
func killed(t *testing.T) string {
	t.Helper()
	out := t.TempDir()
	w, err := record.Create(out, "run")
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)
	zero, before := 0.0, -5.0
	at := func(second int, edge bool) time.Time {
		seconds := float64(second) + 0.25
		s := record.Sample{Time: begin.Add(time.Duration(second) * time.Second), At: seconds, Edge: edge, Components: []record.ComponentRead{
			{Name: "istiod", At: seconds, CPUSeconds: 100 + seconds/2, MemoryBytes: 5000, MemoryPeak: 5000},
			{Name: "etcd", At: seconds, CPUSeconds: seconds / 4, MemoryBytes: 3000, MemoryPeak: 3000},
			{Name: "envoy of-a-pod", At: seconds},
		}}
		if second == 0 {
			for i := range s.Components {
				s.Components[i].Started = &before
			}
			s.Components[2].Started = &zero
		}
		if err := w.Samples().Append(s); err != nil {
			t.Fatal(err)
		}
		return s.Time
	}
	run := record.Run{Started: begin}
	run.Environment.ControlPlane.Name = "istiod"
	start := at(0, true)
	for i := range 7 {
		at(1+i, false)
	}
	end := at(8, true)
	run.Phases = append(run.Phases, record.Phase{Name: record.PhaseRollout, Start: start, End: &end, EndedBy: record.EndedByConverged})
	run.Phases = append(run.Phases, record.Phase{Name: record.PhaseSteady, Start: at(9, true).Add(-3 * time.Millisecond)})
	for i := range 10 {
		at(10+i, false)
	}
	if err := w.Save(&run); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t *testing.T, out string) record.Run {
	t.Helper()
	runs, err := record.Read(out)
	if err != nil {
		t.Fatal(err)
	}
	return runs[0]
}

func TestRecoverARunThatWasKilled(t *testing.T) {
	run := read(t, killed(t))
	if err := Recover(&run); err != nil {
		t.Fatal(err)
	}
	for path, usage := range map[string]*record.Usage{
		"rollout": run.ControlPlane.Rollout, "steady": run.ControlPlane.Steady,
	} {
		if usage == nil || math.Abs(*usage.Cores.Mean-0.5) > 1e-9 || *usage.MemoryBytes.Mean != 5000 {
			t.Errorf("%s: %+v, want half a core and 5000 bytes", path, usage)
		}
	}
	if got := *run.ControlPlane.Steady.CPUSeconds; math.Abs(got-5) > 1e-9 {
		t.Errorf("steady has %v CPU seconds, want those of the 10 s until the last sample", got)
	}
	if got := *run.Cluster["etcd"].Rollout.CPUSeconds; math.Abs(got-2) > 1e-9 || len(run.Cluster) != 1 {
		t.Errorf("etcd has %v CPU seconds in the rollout, want 2; cluster %v", got, run.Cluster)
	}
	if len(run.Warnings) != 3 || run.Warnings[0].Reason != record.ReasonFromSamples {
		t.Errorf("warnings %v", run.Warnings)
	}
}

func TestRecoverLeavesOthersAsTheyAre(t *testing.T) {
	for name, change := range map[string]func(*record.Run){
		"completed":             func(r *record.Run) { r.Status = record.StatusCompleted },
		"interrupted and ended": func(r *record.Run) { r.Finished = new(time.Now()) },
		"without samples":       func(r *record.Run) { r.Dir += "/latencies" },
		"dilated":               func(r *record.Run) { r.Scenario.Instrument.Dilation.Factor = 4 },
		"other edges": func(r *record.Run) {
			r.Phases = []record.Phase{{Name: record.PhaseSteady, Start: time.Now()}, {Name: record.PhaseSteady, Start: r.Phases[0].Start, End: new(time.Now())}}
		},
	} {
		run := read(t, killed(t))
		change(&run)
		if err := Recover(&run); err != nil || run.ControlPlane != nil || run.Warnings != nil {
			t.Errorf("%s: %v, figures %v, warnings %v", name, err, run.ControlPlane, run.Warnings)
		}
	}
}

func TestRecoverNamesFileAndLine(t *testing.T) {
	out := killed(t)
	path := filepath.Join(out, "run", "samples.jsonl")
	if err := os.WriteFile(path, []byte("{\"at\": 1}\n{\"at\": 2, \"components\": [{\"name\": \"x\"}]}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	run := read(t, out)
	if err := Recover(&run); err == nil || !strings.Contains(err.Error(), "samples.jsonl, line 2: component \"x\"") {
		t.Errorf("error is %v", err)
	}
}
