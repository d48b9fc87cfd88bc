package report

import (
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/test/golden"
)

// climbed returns two runs of each of these sizes with both modes. Their memory is 80 MB, 0.4 MB
// for a pod and 2 bytes for each byte of configuration, but for a little; CPU
// time is 40 ms for a pod; steady cores have nothing to do with any of it.
func climbed(pods ...int) []record.Run {
	var runs []record.Run
	for _, mode := range []string{"permissive", "strict"} {
		for i, n := range slices.Concat(pods, pods) {
			r := fullRun()
			r.Name, r.Warnings = "istiod-"+mode+"-"+strings.Repeat("x", i), nil
			r.Repeat = i/len(pods) + 1
			r.Scenario.Mesh.Pods, r.Scenario.Mesh.Services, r.Scenario.Mesh.Mode = scenario.List[int]{n}, n/10, scenario.List[string]{mode}
			r.Environment.Knobs = scenario.Settings{MTLS: mode, Scope: map[string]string{"permissive": "all", "strict": "declared"}[mode], Authz: "none"}
			configuration := 14e3
			if mode == "permissive" {
				configuration = 26e3 + 150*float64(n)
			}
			noise := 1e6 * math.Sin(float64(n)+configuration+float64(i))
			configuration += noise * 1e-4
			memory := 80e6 + 0.4e6*float64(n) + 2*configuration*float64(n) + noise
			r.XDS.ConfigurationBytes = &record.ConfigurationBytes{Mean: &configuration}
			for phase, cores := range map[record.PhaseName]float64{record.PhaseRollout: 1.5, record.PhaseSteady: 0.01} {
				*r.ControlPlane.At(phase) = &record.Usage{
					Cores: &record.Level{Mean: new(cores + noise*1e-8)}, CPUSeconds: new(2 + 0.04*float64(n) + noise*1e-7),
					MemoryBytes: &record.Level{Mean: &memory, Peak: &memory}, HeapBytes: &record.Level{Mean: &memory, End: &memory},
				}
			}
			r.Phases[1].Seconds = new(10 + 0.05*float64(n) + noise*1e-7)
			runs = append(runs, r)
		}
	}
	return runs
}

func TestCostGolden(t *testing.T) {
	other := climbed(200, 400, 800, 1600)
	for i := range other {
		other[i].Scenario.Load.Arrival = scenario.Arrival{Size: 100, Interval: 10 * time.Second}
		if i%2 == 0 {
			other[i].Scenario.Load.Arrival = scenario.Arrival{}
		}
	}
	unfinished := climbed(200, 400, 800)
	unfinished[1].Status = record.StatusUnconverged
	unfinished[2].Warnings = []record.Warning{{About: "controlPlane.rollout", Text: "saturated"}, {About: "controlPlane.steady.cores", Text: "restless"}}
	aloneAndTogether := climbed(200, 400, 800, 1600)[8:]
	for name, runs := range map[string][]record.Run{
		"cost":           climbed(200, 400, 800, 1600),
		"cost-bursts":    other,
		"cost-few":       unfinished,
		"cost-one-knob":  aloneAndTogether,
		"cost-two-sizes": climbed(200, 400),
	} {
		for ext, print := range map[string]func(io.Writer, []record.Run) error{"txt": as("wide"), "md": as("markdown")} {
			t.Run(name+"."+ext, func(t *testing.T) {
				var b strings.Builder
				if err := print(&b, runs); err != nil {
					t.Fatal(err)
				}
				golden.Compare(t, filepath.Join("testdata", name+"."+ext), b.String())
			})
		}
	}
}

func TestIntervalOfASlopeThatMayBeNone(t *testing.T) {
	runs := climbed(200, 400, 800, 1600)
	fit, err := group(runs, func(r *record.Run) string { return r.ModeName() })[1].fit(costFigures[6].figure, []term{termPods})
	if err != nil {
		t.Fatal(err)
	}
	if text := interval(fit.Terms[1], 1, millicores); !strings.HasPrefix(text, "~ (-") {
		t.Errorf("a slope of noise prints as %q", text)
	}
}
