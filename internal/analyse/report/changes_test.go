package report

import (
	"reflect"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

// What few changes do not show is unknown, however many sidecars saw them.
func TestChanges(t *testing.T) {
	run := fullRun()
	few := &record.Latency{Count: 20, P50: new(0.2)}
	run.Latencies.Push = map[record.ChangeKind]*record.Latency{record.RouteChange: {Count: 3990, Lost: 10, P50: new(0.15), P90: new(0.3), Max: new(1.5)}}
	run.Latencies.Propagation = map[record.ChangeKind]record.Propagation{record.RouteChange: {First: few, Last: few}}
	run.Latencies.PushIntervals = map[record.ChangeKind]*record.PushIntervals{record.RouteChange: {Changes: 20, P50: &record.QuantileInterval{Low: new(0.12)}}}
	r := runReport{run: &run}
	want := [][]string{{"route", "20", "150ms", "120ms to >1.50s", "300ms", "unknown, below 36 changes", "unknown, below 100 changes", "unknown, below 368 changes"}}
	if got := r.changes().printed().Rows; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, row := range r.latencies().printed().Rows {
		if row[0] == "push: route" && row[5] != unknown || row[0] == "first: route" && row[5] != unknown {
			t.Errorf("%q: want no p99", row)
		}
	}
}
