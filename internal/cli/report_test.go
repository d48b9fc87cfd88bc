package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// twoRuns makes a folder with the records of two runs, and one without any.
func twoRuns(t *testing.T) (out, empty string) {
	t.Helper()
	out, empty = t.TempDir(), t.TempDir()
	for _, name := range []string{"first", "second"} {
		w, err := record.Create(out, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Save(&record.Run{Status: record.StatusCompleted, Scenario: scenario.Scenario{Mesh: scenario.Mesh{Pods: scenario.List[int]{5}}}}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return out, empty
}

func TestReport(t *testing.T) {
	out, empty := twoRuns(t)
	damaged := t.TempDir()
	if err := os.WriteFile(filepath.Join(damaged, "run.json"), []byte(`{"apiVersion": "scal`), 0o644); err != nil {
		t.Fatal(err)
	}
	first := filepath.Join(out, "first")
	tests := []struct {
		name string
		args []string
		exit int
		want string // on stdout when exit is 0, else on stderr
	}{
		{"one run", []string{first}, exitDone, "Rolling out 5 pods"},
		{"its tables", []string{first, "-o", "wide"}, exitDone, "first: completed"},
		{"several", []string{out, "-o", "wide"}, exitDone, "2 runs"},
		{"json", []string{out, "-o", "json"}, exitDone, `"kind": "RunList"`},
		{"yaml", []string{out, "--output=yaml"}, exitDone, "kind: RunList"},
		{"markdown", []string{out, "-o", "markdown"}, exitDone, "### 2 runs"},
		{"no folder named", nil, exitUsage, "DIR"},
		{"unknown format", []string{out, "-o", "xml"}, exitUsage, `"xml"`},
		{"empty format", []string{out, "-o", ""}, exitUsage, "--output"},
		{"unknown flag", []string{out, "--nope"}, exitUsage, "--nope"},
		{"missing folder", []string{filepath.Join(out, "nowhere")}, exitUsage, "nowhere"},
		{"folder without runs", []string{empty}, exitUsage, "no run in it"},
		{"damaged record", []string{out, damaged}, exitFailed, "cut off or damaged"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr strings.Builder
			err := execute(t.Context(), append([]string{"report"}, tt.args...), strings.NewReader(""), &stdout, &stderr)
			if got := exitCode(err); got != tt.exit {
				t.Errorf("exit code %d, want %d; stderr: %s", got, tt.exit, stderr.String())
			}
			if tt.exit == exitDone {
				if !strings.Contains(stdout.String(), tt.want) || stderr.String() != "" {
					t.Errorf("stdout %q, stderr %q: want %q on stdout alone", stdout.String(), stderr.String(), tt.want)
				}
				return
			}
			if !strings.Contains(stderr.String(), tt.want) || strings.Count(stderr.String(), "\n") != 1 || stdout.String() != "" {
				t.Errorf("stdout %q, stderr %q: want one line on stderr with %q", stdout.String(), stderr.String(), tt.want)
			}
		})
	}
}
