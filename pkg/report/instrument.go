package report

import (
	"scaler.mesh/scaler/pkg/output"
	"scaler.mesh/scaler/pkg/record"
)

// instrument has what scaler itself needed, and how little that may be.
func (r *runReport) instrument() output.Table {
	t := output.Table{Head: []string{"instrument", "cores", "memory, peak", "memory per sidecar", "open files", "lag p99", "lag max"}}
	i := r.run.Instrument
	if i == nil {
		return t
	}
	lag := i.Lag
	if lag == nil {
		lag = &record.Latency{}
	}
	within := "instrument"
	t.Add("scaler itself"+r.mark(within, ""),
		number(i.Cores)+r.mark("instrument.cores", within),
		bytes(i.MemoryBytes)+r.mark("instrument.memoryBytes", within),
		bytes(i.BytesPerSidecar)+r.mark("instrument.bytesPerSidecar", within),
		count(i.OpenFiles)+r.mark("instrument.openFiles", within),
		seconds(lag.P99)+r.mark("instrument.lag.p99", within),
		seconds(lag.Max)+r.mark("instrument.lag.max", within))
	if floor := r.run.Instrument.Floor; len(floor) > 0 {
		t.Add("its floor"+r.mark("instrument.floor", within), floorAt(floor, "instrument.cores", number), absent,
			floorAt(floor, "instrument.bytesPerSidecar", bytes), absent, absent, absent)
	}
	return t
}

// floor lays what latencies would read against a control plane that costs
// nothing beside what they read.
func (r *runReport) floor() output.Table {
	t := output.Table{Head: []string{"instrument's floor", "p50", "p99", "measured p50", "p99"}}
	if r.run.Instrument == nil {
		return t
	}
	floor := r.run.Instrument.Floor
	for _, row := range latencyRows(&r.run.Latencies) {
		p50, p99 := floorAt(floor, row.path+".p50", seconds), floorAt(floor, row.path+".p99", seconds)
		if p50 == absent && p99 == absent {
			continue
		}
		measured := row.value
		if measured == nil {
			measured = &record.Latency{}
		}
		t.Add(row.name, p50, p99, quantile(measured, measured.P50), quantile(measured, measured.P99))
	}
	return t
}

// floorAt prints the floor of the figure at path.
func floorAt(floor map[string]float64, path string, print func(*float64) string) string {
	return entry(floor, path, func(v float64) string { return print(&v) })
}
