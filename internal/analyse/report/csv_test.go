package report

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

// cells are a CSV's rows by the names of their columns.
func cells(t *testing.T, runs []record.Run) []map[string]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text(t, CSV, runs))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var named []map[string]string
	for _, row := range rows[min(1, len(rows)):] {
		cells := map[string]string{}
		for i, cell := range row {
			if _, twice := cells[rows[0][i]]; twice {
				t.Errorf("two columns are called %q", rows[0][i])
			}
			cells[rows[0][i]] = cell
		}
		named = append(named, cells)
	}
	return named
}

func TestCSV(t *testing.T) {
	faulty := fullRun()
	faulty.Faults = []record.Fault{{Name: "rolling-restart", Seconds: new(3.5)}, {Name: "rolling-restart", Seconds: new(4.5)}}
	rows := cells(t, []record.Run{killedRun(), faulty})
	if len(rows) != 2 || rows[0]["name"] != "istiod-permissive-400" || rows[1]["name"] != "istiod-strict-200" {
		t.Fatalf("%d rows: %v", len(rows), rows)
	}
	for path, want := range map[string]string{
		"spec.pods": "200", "controlPlane.rollout.cores.mean": "1.52", "controlPlane.steady.cores.mean": "0",
		"phases.rollout.endedBy": "converged", "cluster.etcd.rollout.cores.mean": "0.2", "latencies.push.endpointAdd.lost": "50",
		"xds.bytes.EDS": "12345678", "faults.rolling-restart.seconds": "3.5", "faults.rolling-restart-2.seconds": "4.5",
		"instrument.floor.latencies.push.route.p50": "0.0031",
	} {
		if got := rows[1][path]; got != want {
			t.Errorf("%s is %q: want %q", path, got, want)
		}
	}
	if got := rows[1]["warnings"]; !strings.HasPrefix(got, "controlPlane.rollout: saturated for up to 38% of the phase") || strings.Count(got, "; ") != 3 {
		t.Errorf("warnings are %q", got)
	}
	if got, ok := rows[0]["controlPlane.rollout.cores.mean"]; !ok || got != "" {
		t.Errorf("what was not measured is %q: want an empty cell", got)
	}
}

func TestCSVTellsRunsOfOneNameApart(t *testing.T) {
	rows := cells(t, []record.Run{{Name: "a", Dir: "/x/before/a"}, {Name: "a", Dir: "/x/after/a"}})
	if got := []string{rows[0]["name"], rows[1]["name"]}; !slices.Equal(slices.Sorted(slices.Values(got)), []string{"after/a", "before/a"}) {
		t.Errorf("the rows are named %q", got)
	}
}

func TestCSVOfNothing(t *testing.T) {
	if got := text(t, CSV, nil); got != "" {
		t.Errorf("no runs are %q", got)
	}
}

func TestCSVIsNoFormula(t *testing.T) {
	rows := cells(t, []record.Run{{Name: "=1+1", Reason: "@SUM(A1)\n-x", Status: "+"}})
	for path, want := range map[string]string{"name": "'=1+1", "reason": "'@SUM(A1) -x", "status": "'+"} {
		if got := rows[0][path]; got != want {
			t.Errorf("%s is %q: want %q", path, got, want)
		}
	}
}
