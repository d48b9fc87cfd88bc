package record

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLatencyRecord(t *testing.T) {
	out := filepath.Join(t.TempDir(), "made")
	w, err := CreateLatency(out, "latency")
	if err != nil {
		t.Fatal(err)
	}
	read := func() LatencyRun {
		t.Helper()
		_, latencies, err := ReadAll(out)
		if err != nil || len(latencies) != 1 {
			t.Fatalf("%d latency runs and error %v, want one", len(latencies), err)
		}
		return latencies[0]
	}
	if run := read(); run.Status != StatusInterrupted || run.Name != "latency" || run.Started.IsZero() {
		t.Errorf("before anything was measured it reads %+v", run)
	}
	if _, err := CreateLatency(out, "other"); !errors.Is(err, ErrLocked) {
		t.Errorf("a second writer has error %v, want ErrLocked", err)
	}
	run := LatencyRun{Status: StatusFailed, Reason: "why", Rows: []LatencyRow{{RPS: 100, Variant: "none", Requests: 7}}}
	if err := w.Save(&run); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	run.APIVersion, run.Kind, run.Schema, run.Name, run.Dir = APIVersion, LatencyKind, Schema, "latency", read().Dir
	if diff := cmp.Diff(run, read()); diff != "" {
		t.Errorf("read is not what was saved (-saved +read):\n%s", diff)
	}
	if _, err := CreateLatency(out, "latency"); !errors.Is(err, ErrExists) {
		t.Errorf("a second run of the name has error %v, want ErrExists", err)
	}
	if _, err := CreateLatency(out, "../latency"); err == nil {
		t.Error("a name that is a path was taken")
	}
}

func TestReadLatencyRuns(t *testing.T) {
	header := func(kind string, schema int) string {
		return fmt.Sprintf(`{"apiVersion":"scaler.mesh/v1","kind":"%s","schema":%d,"name":"x","status":"completed"`, kind, schema)
	}
	tests := []struct {
		name            string
		files           map[string]string // run.json by folder
		runs, latencies int               // that ReadAll finds
		all, rollouts   string            // in the errors of ReadAll and Read; "" = none
	}{
		{"a latency run alone", map[string]string{"l": header("LatencyRun", Schema) + "}"}, 0, 1, "", "no run in it of scaler rollout, but 1 of scaler latency"},
		{"both kinds", map[string]string{"l": header("LatencyRun", Schema) + "}", "r": header("Run", Schema) + "}"}, 1, 1, "", ""},
		{"a file cut off", map[string]string{"l": header("LatencyRun", Schema)}, 0, 0, "the file is cut off or damaged", "the file is cut off or damaged"},
		{"a wrong type", map[string]string{"l": header("LatencyRun", Schema) + `,"rows":7}`}, 0, 0, "the file is cut off or damaged", "the file is cut off or damaged"},
		{"a newer schema", map[string]string{"l": header("LatencyRun", 99) + `,"rows":7}`}, 0, 0, ErrSchema.Error(), ErrSchema.Error()},
		{"another kind", map[string]string{"l": header("Walk", Schema) + "}"}, 0, 0, `kind "Walk": want "Run" or "LatencyRun"`, `kind "Walk"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range tt.files {
				put(t, filepath.Join(dir, name, runFile), text)
			}
			runs, latencies, err := ReadAll(dir)
			if len(runs) != tt.runs || len(latencies) != tt.latencies {
				t.Errorf("read %d runs and %d latency runs, want %d and %d", len(runs), len(latencies), tt.runs, tt.latencies)
			}
			wantError(t, err, tt.all)
			_, err = Read(dir)
			wantError(t, err, tt.rollouts)
			if got, want := errors.Is(err, ErrNoRuns), tt.runs == 0 && tt.all == ""; got != want {
				t.Errorf("Read's error is ErrNoRuns: %v, want %v", got, want)
			}
		})
	}
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}
