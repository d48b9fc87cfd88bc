package cli

import (
	"fmt"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// ladder makes a folder with records of these sizes, two runs of each, on a control
// plane that needs 1 MB and 20 ms of processor time for each pod.
func ladder(t *testing.T, sizes ...int) string {
	t.Helper()
	out := t.TempDir()
	for _, pods := range sizes {
		for repeat, factor := range []float64{0.99, 1.01} {
			w, err := record.Create(out, fmt.Sprintf("istiod-strict-%d-r%d", pods, repeat+1))
			if err != nil {
				t.Fatal(err)
			}
			n := float64(pods)
			memory := &record.Level{Mean: new((122 + n) * 1e6 * factor), Peak: new((122 + n) * 1e6 * factor)}
			err = w.Save(&record.Run{
				Status:      record.StatusCompleted,
				Scenario:    scenario.Scenario{Mesh: scenario.Mesh{Pods: scenario.List[int]{pods}, Services: pods / 10, Mode: scenario.List[string]{"strict"}}},
				Environment: record.Environment{CPUs: 2, ControlPlane: record.ControlPlaneSource{Name: "istiod", GOMAXPROCS: 2}},
				Phases:      []record.Phase{{Name: record.PhaseRollout, Seconds: new(n / 20), EndedBy: record.EndedByConverged}},
				ControlPlane: &record.ByPhase[*record.Usage]{
					Baseline: &record.Usage{MemoryBytes: &record.Level{Mean: new(122e6)}},
					Rollout:  &record.Usage{CPUSeconds: new(0.02 * n * factor), MemoryBytes: memory},
					Steady:   &record.Usage{MemoryBytes: memory},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out
}

func TestPlan(t *testing.T) {
	runs, few := ladder(t, 200, 400, 800, 1600), ladder(t, 200)
	for _, c := range []struct {
		name string
		args []string
		exit int
		want string // on stdout when there is a plan, on stderr when there is none
	}{
		{"table", []string{runs, "--pods", "5000"}, exitDone, "5000 pods, 500 services"},
		{"what to ask for", []string{runs, "--pods", "5000", "--control-plane-cpus", "17"}, exitDone, "replica with GOMAXPROCS 17, requests of "},
		{"markdown", []string{runs, "--pods", "5000", "-o", "markdown"}, exitDone, "| figure | forecast |"},
		{"yaml", []string{runs, "--pods", "5000", "-o", "yaml"}, exitDone, "kind: Plan"},
		{"validated", []string{runs, "--validate", "-o", "json"}, exitDone, `"measured": 32`},
		{"limits of istiod, which these records lack", []string{runs, "--pods", "5000", "--control-plane-cpus", "17", "-o", "wide"}, exitDone, "100 new streams a second"},
		{"processors beyond what is tried", []string{runs, "--pods", "5000", "--control-plane-cpus", "128", "-o", "wide"}, exitDone, `value: "128"`},
		{"without a processor limit, for istioctl", []string{runs, "--pods", "5000", "--control-plane-cpus", "128", "-o", "wide"}, exitDone, "spec.template.spec.containers.[name:discovery].env.[name:GOMAXPROCS]"},
		{"with a processor limit", []string{runs, "--pods", "5000", "--control-plane-cpus", "128", "--cpu-limit", "-o", "wide"}, exitDone, `cpu: "128"`},
		{"forced", []string{runs, "--pods", "50000", "--force", "-o", "wide"}, exitDone, "runs: forced: more than 8 times the largest run, of 1600 pods"},
		{"never in time", []string{runs, "--pods", "5000", "--rollout-within", "1s"}, exitMissed, "which is not enough"},
		{"too little memory", []string{runs, "--pods", "5000", "--control-plane-memory", "1Gi"}, exitMissed, "memory binds first"},
		{"no folder", []string{"--pods", "5"}, exitUsage, "want at least one DIR"},
		{"no size", []string{runs}, exitUsage, "--pods: no value, want"},
		{"no pods", []string{runs, "--pods", "0"}, exitUsage, "--pods: got 0, want 1 to 1000000"},
		{"not a size", []string{runs, "--pods", "many"}, exitUsage, `--pods: got "many", want a whole number`},
		{"headroom", []string{runs, "--pods", "5000", "--headroom", "x"}, exitUsage, `--headroom: got "x", want a share`},
		{"headroom without a sign", []string{runs, "--pods", "5000", "--headroom", "30"}, exitUsage, `--headroom: got "30", want a share`},
		{"headroom that is no number", []string{runs, "--pods", "5000", "--headroom", "NaN%"}, exitUsage, `--headroom: got "NaN%", want a share`},
		{"time", []string{runs, "--pods", "5000", "--rollout-within", "-1s"}, exitUsage, "--rollout-within: got -1s, want a duration"},
		{"wait", []string{runs, "--pods", "5000", "--wait", "soon"}, exitUsage, `--wait: got "soon", want a duration`},
		{"processors", []string{runs, "--pods", "5000", "--control-plane-cpus", "0"}, exitUsage, "--control-plane-cpus: got 0, want 1 to 1024"},
		{"memory", []string{runs, "--pods", "5000", "--control-plane-memory", "big"}, exitUsage, `--control-plane-memory: got "big", want bytes with a unit`},
		{"replicas", []string{runs, "--pods", "5000", "--replicas-max", "-1"}, exitUsage, "--replicas-max: got -1, want 1 to 1000"},
		{"services", []string{runs, "--pods", "5000", "--services", "7"}, exitUsage, "--services: got 7, want 500"},
		{"mode", []string{runs, "--pods", "5000", "--mode", "lax"}, exitUsage, `--mode: got "lax", want that of a completed run: strict`},
		{"empty mode", []string{runs, "--pods", "5000", "--mode", ""}, exitUsage, `--mode: got "", want permissive or strict`},
		{"format", []string{runs, "--pods", "5000", "-o", "xml"}, exitUsage, `--output: got "xml"`},
		{"too far", []string{runs, "--pods", "50000"}, exitUsage, "run 'scaler rollout --repeats 2 --pods 6250,"},
		{"one size", []string{few, "--pods", "1600"}, exitUsage, "one size only: run 'scaler rollout --repeats 2 --pods 200,300,400,500,600,700,800 --seed 0 --mode strict --arrival all --probes 0 --settle 0s --dilate 1 --priority=false'"},
		{"replicas of the runs", []string{runs, "--pods", "5000", "--pods-per-node", "7"}, exitUsage, "--pods-per-node: got 7, want none"},
		{"another size validated", []string{runs, "--pods", "5000", "--validate"}, exitUsage, "--pods: got 5000, want 1600"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			err := execute(t.Context(), append([]string{"plan"}, c.args...), strings.NewReader(""), &stdout, &stderr)
			if got := exitCode(err); got != c.exit {
				t.Fatalf("exit code %d, want %d; stderr: %s", got, c.exit, stderr.String())
			}
			if c.exit == exitUsage {
				if !strings.Contains(stderr.String(), c.want) || strings.Count(stderr.String(), "\n") != 1 || stdout.String() != "" {
					t.Errorf("stdout %q, stderr %q: want one line on stderr with %q", stdout.String(), stderr.String(), c.want)
				}
				return
			}
			if !strings.Contains(stdout.String(), c.want) {
				t.Errorf("stdout %q: want %q in it", stdout.String(), c.want)
			}
		})
	}
}
