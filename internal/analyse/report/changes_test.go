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
	for _, row := range r.changeLatencies().printed().Rows {
		if row[0] == "push: route" && row[5] != unknown || row[0] == "first: route" && row[5] != unknown {
			t.Errorf("%q: want no p99", row)
		}
	}
}

// A push whose start was seen after its end is unknown, and the one from the write is printed.
func TestUnknownPush(t *testing.T) {
	run := fullRun()
	run.Latencies.Push = map[record.ChangeKind]*record.Latency{record.EndpointRemove: {Count: 40, Clamped: 20}}
	run.Latencies.PushFromWrite = map[record.ChangeKind]*record.Latency{record.EndpointRemove: {Count: 40, P50: new(0.012), P90: new(0.02), P99: new(0.03), Max: new(0.04)}}
	few := &record.Latency{Count: 2, P50: new(0.2)}
	run.Latencies.Propagation = map[record.ChangeKind]record.Propagation{record.EndpointRemove: {First: few, Last: few}}
	run.Latencies.PushIntervals = nil
	r := runReport{run: &run}
	want := [][]string{{"endpointRemove, from the write", "2", "12.0ms", "unknown", "20.0ms", "unknown", "unknown, below 100 changes", "unknown"}}
	if got := r.changes().printed().Rows; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	rows := map[string][]string{}
	for _, row := range r.changeLatencies().printed().Rows {
		rows[row[0]] = row[1:]
	}
	if got, want := rows["push: endpointRemove"], []string{"40", "0", unknown, unknown, unknown, unknown}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := rows["push from write: endpointRemove"]; len(got) == 0 || got[2] != "12.0ms" {
		t.Errorf("from the write %q, want 12 ms", got)
	}
	if l := slowestPush(&run); l == nil || l.P50 == nil || *l.P50 != 0.012 {
		t.Errorf("the slowest push is %+v, want the one from the write", l)
	}
}

func TestProcessorText(t *testing.T) {
	p := &record.Processor{
		Model:  "AMD EPYC",
		Before: &record.Speed{Work: "1", Speed: 1.02, Low: 0.95, High: 1.1}, Run: &record.Speed{Work: "1", Speed: 0.9, Low: 0.8, High: 1},
		Steal: map[record.PhaseName]float64{record.PhaseRollout: 0.123, record.PhaseSteady: 0.0001},
	}
	want := "AMD EPYC; 1.02 reference processors before the run (0.95 to 1.1); 0.9 reference processors in the run (0.8 to 1); stolen by others on its host: 12.3% in rollout"
	if got := processorText(p); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := processorText(nil); got != "" {
		t.Errorf("of none %q", got)
	}
}
