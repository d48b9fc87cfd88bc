package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/analyse/assess"
	"scaler.mesh/scaler/internal/series"
	"scaler.mesh/scaler/internal/series/rehearsal"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// rehearsed writes the records of a rehearsal, whose istiod needs 100 MiB, and how its last step ended.
func rehearsed(t *testing.T, captured assess.Captured, limit int64, upgrade record.Status) string {
	t.Helper()
	dir := t.TempDir()
	result := rehearsal.Result{Head: series.NewHead(rehearsal.Kind), Captured: captured}
	for _, step := range []struct {
		name, version string
		status        record.Status
	}{{rehearsal.From, "1.29.1", record.StatusCompleted}, {rehearsal.Onto, "1.31.0", record.StatusCompleted}, {rehearsal.Upgrade, "1.29.1", upgrade}} {
		w, err := record.Create(filepath.Join(dir, step.name), "run")
		if err != nil {
			t.Fatal(err)
		}
		r := &record.Run{Status: step.status, Scenario: scenario.Default(), Mesh: &record.Mesh{}, Pods: &record.Pods{Requested: 10}, Phases: []record.Phase{{Name: record.PhaseRollout}}}
		r.ControlPlane = &record.ByPhase[*record.Usage]{Rollout: &record.Usage{MemoryBytes: &record.Level{Peak: new(100.0 * (1 << 20))}}}
		r.Environment.ControlPlane = record.ControlPlaneSource{Name: "istiod", Version: step.version, MemoryLimitBytes: limit}
		if step.name == rehearsal.Upgrade {
			r.Upgrade = &record.Upgrade{Stages: map[string]*record.UpgradeStage{}}
		}
		if err := w.Save(r); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		result.Steps = append(result.Steps, rehearsal.Done{Name: step.name, Done: series.Done{Status: step.status, Record: filepath.Join(step.name, "run")}})
	}
	text, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, rehearsal.File), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The verdict is the exit code of an assessment that is answered again, and of its report it is not.
func TestAssessAgain(t *testing.T) {
	known, unknown := assess.Captured{Release: "1.29.1", Installed: true, Replicas: 1}, assess.Captured{Installed: true, Replicas: 1}
	const mebibyte = 1 << 20
	for _, test := range []struct {
		captured assess.Captured
		limit    int64
		upgrade  record.Status
		exit     int
		verdict  assess.Verdict
		reason   string // on stdout, and at the end of stderr unless exit is 0
	}{
		{known, 200 * mebibyte, record.StatusCompleted, exitDone, assess.Go, "and has a limit of 200MiB"},
		{known, 100 * mebibyte, record.StatusCompleted, exitDone, assess.GoWithChanges, "its limit of 100MiB is within that interval"},
		{known, 50 * mebibyte, record.StatusCompleted, exitMissed, assess.NoGo, "and has a limit of 50MiB"},
		{known, 200 * mebibyte, record.StatusUnconverged, exitMissed, assess.NoGo, "did not come to rest in rollout within the time limit"},
		{unknown, 50 * mebibyte, record.StatusCompleted, exitUndecided, assess.CannotTell, "the version that production runs is not known"},
	} {
		dir := rehearsed(t, test.captured, test.limit, test.upgrade)
		for command, exit := range map[string]int{"assess": test.exit, "report": exitDone} {
			var stdout, stderr strings.Builder
			err := execute(t.Context(), []string{command, dir}, strings.NewReader(""), &stdout, &stderr)
			shown := strings.Join(strings.Fields(stdout.String()), " ")
			if exitCode(err) != exit || !strings.HasPrefix(shown, string(test.verdict)+": istiod 1.29.1 to 1.31.0") || !strings.Contains(shown, test.reason) {
				t.Errorf("%s: exit %d, want %d, %s and %q: %v\n%s", command, exitCode(err), exit, test.verdict, test.reason, err, stdout.String())
			}
			if exit != exitDone && (!strings.HasPrefix(err.Error(), string(test.verdict)+": ") || !strings.Contains(err.Error(), test.reason)) {
				t.Errorf("%s: %v, want %s: %s", command, err, test.verdict, test.reason)
			}
		}
	}
}
