package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// repeats makes a folder with so many runs that needed these cores, give or take
// a little. They started two hours apart from a moment on.
func repeats(t *testing.T, n int, cores float64, first time.Time) string {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		w, err := record.Create(dir, fmt.Sprintf("run-%d", i+1))
		if err != nil {
			t.Fatal(err)
		}
		run := record.Run{Status: record.StatusCompleted, Started: first.Add(time.Duration(2*i) * time.Hour), Scenario: scenario.Scenario{Mesh: scenario.Mesh{Pods: scenario.List[int]{5}}}, ControlPlane: &record.ByPhase[*record.Usage]{
			Rollout: &record.Usage{Cores: &record.Level{Mean: new(cores * (1 + 0.01*float64(i)))}},
		}}
		if err := w.Save(&run); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestCompareAsGate(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	turn, later := began.Add(time.Hour), began.AddDate(0, 0, 1)
	before, same, more, moreLater := repeats(t, 5, 0.3, began), repeats(t, 5, 0.301, turn), repeats(t, 5, 0.6, turn), repeats(t, 5, 0.6, later)
	few, fewSame := repeats(t, 2, 0.6, turn), repeats(t, 2, 0.301, turn)
	junit := filepath.Join(t.TempDir(), "compare.xml")
	for _, tt := range []struct {
		name   string
		args   []string
		exit   int
		stdout string
		stderr string // a part of it; "" means nothing
		junit  string
	}{
		{"the same", []string{before, same, "--fail-on", "rollout.cores>+10%"}, exitDone, "none of 1 figure differs significantly", "", `failures="0"`},
		{"more", []string{before, more, "--fail-on", "rollout.cores>+10%"}, exitMissed, "1 of 1 figure differ significantly", "bounds missed: rollout.cores>+10%, 5 pods", `failures="1"`},
		{"more, not in turns", []string{before, moreLater, "--fail-on", "rollout.cores>+10%"}, exitUndecided, "1 of 1 figure differ significantly", "the runs of the sides were not interleaved (they ran as AAAAABBBBB)", `errors="1"`},
		{"more, and allowed", []string{before, more, "--fail-on", "rollout.cores>+150%"}, exitDone, "higher", "", `failures="0"`},
		{"more, with too few repeats", []string{before, few, "--fail-on", "rollout.cores>+10%"}, exitUndecided, "too few repeats", "2 runs can establish nothing; 4 on each side are the least", `errors="1"`},
		{"too few repeats, and within", []string{before, fewSame, "--fail-on", "rollout.cores>+10%"}, exitUndecided, "undecided", "bounds undecided: rollout.cores>+10%, 5 pods", `errors="1"`},
		{"no bound", []string{before, more}, exitDone, "higher", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			args := append([]string{"compare"}, tt.args...)
			if tt.junit != "" {
				args = append(args, "--junit", junit)
			}
			var stdout, stderr strings.Builder
			err := execute(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
			if got := exitCode(err); got != tt.exit {
				t.Errorf("exit code %d, want %d", got, tt.exit)
			}
			if !strings.Contains(stdout.String(), tt.stdout) {
				t.Errorf("stdout %q: want %q", stdout.String(), tt.stdout)
			}
			if !strings.Contains(stderr.String(), tt.stderr) || tt.stderr == "" && stderr.String() != "" || strings.Count(stderr.String(), "\n") > 1 {
				t.Errorf("stderr %q: want a line with %q", stderr.String(), tt.stderr)
			}
			if tt.junit != "" {
				if text, err := os.ReadFile(junit); err != nil || !strings.Contains(string(text), tt.junit) {
					t.Errorf("%v, %s: want %s", err, text, tt.junit)
				}
			}
		})
	}
}
