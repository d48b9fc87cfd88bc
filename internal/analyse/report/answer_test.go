package report

import (
	"fmt"
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// An answer has at most 20 lines in a terminal of 80 columns, too, and no line of sentences is longer.
func TestBriefFits(t *testing.T) {
	full := fullRun()
	full.Dir = "/records of a run/istiod-strict-200"
	full.Faults = []record.Fault{{Name: "reset-streams:20%", Phase: record.PhaseSteady, Seconds: new(0.588)}}
	for _, runs := range [][]record.Run{{full}, ladder(), {killedRun()}} {
		for _, width := range []int{80, 100} {
			text := briefOf(sorted(runs)).text(width)
			lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
			if len(lines) > output.AnswerLines {
				t.Errorf("%d lines at %d columns:\n%s", len(lines), width, text)
			}
			for _, line := range lines {
				if len([]rune(line)) > width && !strings.HasPrefix(line, "scaler ") && !strings.Contains(line, "   ") {
					t.Errorf("longer than %d: %q", width, line)
				}
			}
		}
	}
	full.Faults = append(full.Faults, record.Fault{Name: "kill-control-plane", Phase: record.PhaseSteady})
	text := strings.Join(strings.Fields(briefOf([]record.Run{full}).text(100)), " ")
	for _, want := range []string{
		"scaler report '/records of a run/istiod-strict-200' -o wide ", "50 certificates, configurations and pushes were lost.",
		"After reset-streams:20% in steady the mesh converged again within 588ms.", "After kill-control-plane in steady the mesh did not converge again",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
}

// Repeats of one size share a row, with the largest deviation from their mean.
func TestBriefOfRepeats(t *testing.T) {
	var runs []record.Run
	for i, cores := range []float64{1, 1.2, 1.1, 2} {
		r := fullRun()
		r.Name, r.Repeat, r.Warnings = fmt.Sprintf("run-%d", i), i+1, nil
		r.ControlPlane.Rollout.Cores.Mean = new(cores)
		if i == 3 {
			r.Scenario.Mesh.Pods[0], r.Pods.Requested = 400, 400
		}
		runs = append(runs, r)
	}
	text := briefOf(sorted(runs)).text(100)
	for _, want := range []string{"200 × 3 runs", "1.10 ±9%", "400 ", "Each figure is the mean of its runs"} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
	one := briefOf(sorted(runs[:3])).text(100)
	if !strings.Contains(one, "1.10 (1.00 to 1.20) cores") {
		t.Errorf("repeats of one size: want sentences with spreads:\n%s", one)
	}
}

func TestWithoutUnknown(t *testing.T) {
	in := table{Head: plain("push", "p50", "p99", "95% interval", "max"), Rows: [][]marked{
		plain("a", "1ms", unknown, "unknown, below 100 changes", absent), plain("b", unknown, unknown, unknown, absent),
	}}
	got := fmt.Sprint(in.withoutUnknown().printed())
	want := fmt.Sprint(table{Head: plain("push", "p50", "max"), Rows: [][]marked{plain("a", "1ms", absent), plain("b", unknown, absent)}}.printed())
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// The next command takes the size in what the runs were sized by.
func TestNextStepAfterSizes(t *testing.T) {
	var runs []record.Run
	for _, pods := range []int{100, 200, 400} {
		r := fullRun()
		r.Dir, r.Pods.Requested, r.Scenario.Mesh.Pods = fmt.Sprintf("/records/%d", pods), pods, scenario.List[int]{pods}
		runs = append(runs, r)
	}
	if text := briefOf(runs).text(100); !strings.Contains(text, "scaler plan /records --pods N ") {
		t.Errorf("of a synthetic mesh:\n%s", text)
	}
	for i := range runs {
		runs[i].Mesh = &record.Mesh{}
	}
	if text := briefOf(runs).text(100); !strings.Contains(text, "scaler plan /records --scale N ") {
		t.Errorf("of copies of a captured mesh:\n%s", text)
	}
}
