package report

import (
	"scaler.mesh/scaler/pkg/record"
)

// instrument shows scaler's own usage and its limits.
func (r *runReport) instrument() table {
	i := r.run.Instrument
	if i == nil {
		return table{}
	}
	lag := orEmpty(i.Lag)
	t := r.oneRow("instrument", "instrument", "scaler itself", append(columnsOf(record.InstrumentFigures, i),
		column{"lag p99", "lag.p99", seconds(lag.P99)},
		column{"lag max", "lag.max", seconds(lag.Max)}))
	if floor := i.Floor; len(floor) > 0 {
		cells := []marked{r.mark("instrument.floor", "instrument").on("its floor")}
		for _, f := range record.InstrumentFigures {
			cells = append(cells, unmarked(entry(floor, "instrument."+f.Path, func(v *float64) string { return figureText(f.Unit, v) })))
		}
		t.Add(append(cells, plain(absent, absent)...)...)
	}
	return t
}

// floor compares latencies with scaler's own floor: its measurements with a control plane
// of almost no cost.
func (r *runReport) floor() table {
	t := table{Head: plain("instrument's floor", "p50", "p99", "measured p50", "p99")}
	if r.run.Instrument == nil {
		return t
	}
	floor := r.run.Instrument.Floor
	for _, row := range latencyRows(&r.run.Latencies) {
		p50, p99 := entry(floor, row.path+".p50", seconds), entry(floor, row.path+".p99", seconds)
		if p50 == absent && p99 == absent {
			continue
		}
		measured := orEmpty(row.value)
		t.AddPlain(row.name, p50, p99, quantile(measured, measured.P50), row.quantile("p99", measured.P99))
	}
	return t
}
