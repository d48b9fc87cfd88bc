package report

import (
	"fmt"
	"io"

	"scaler.mesh/scaler/pkg/record"
)

// PrintCalibration writes a calibration in one of Formats.
func PrintCalibration(w io.Writer, format string, c *record.Calibration) error {
	return printObject(w, format, c, func() document { return calibrationDocument(c) })
}

func calibrationDocument(c *record.Calibration) document {
	d := document{
		title: "calibration",
		facts: []fact{
			{"machine", fmt.Sprintf("%s, %s, kernel %s", orAbsent(c.Machine.CPUModel), many(c.Machine.CPUs, "CPU"), c.Machine.Kernel)},
			{"scaler", c.Scaler},
		},
	}
	for i := range c.Points {
		d.tables = append(d.tables, pointTables(&c.Points[i])...)
	}
	return d
}

// pointTables show one point: what arrived when, and what that took.
func pointTables(p *record.CalibrationPoint) []table {
	name := fmt.Sprintf("%d sidecars, %s", p.Sidecars, p.XDS)
	if p.DelaySeconds > 0 || p.Drop > 0 {
		name += fmt.Sprintf(", pushes delayed %s, %s dropped", seconds(&p.DelaySeconds), percent(&p.Drop))
	}
	latencies := table{head: []string{name, "count", "lost", "p50", "p90", "p99", "max"}}
	for _, row := range latencyRows(&p.Latencies) {
		if l := row.value; l != nil {
			latencies.add(row.name, count(&l.Count), count(&l.Lost), quantile(l, l.P50), quantile(l, l.P90), quantile(l, l.P99), seconds(l.Max))
		}
	}
	i := &p.Instrument
	lag := i.Lag
	if lag == nil {
		lag = &record.Latency{}
	}
	cost := table{head: []string{"cost", "cores, held", "memory per sidecar", "configuration", "CPU per push, scaler", "control plane", "fan-out's share", "lag p99", "arrival"}}
	cost.add(name, number(i.Cores), bytes(i.BytesPerSidecar), bytes(&p.ConfigurationBytes),
		seconds(&p.FanOut.InstrumentSeconds), seconds(&p.FanOut.ControlPlaneSeconds), percent(&p.FanOut.Share), seconds(lag.P99), seconds(&p.ArrivalSeconds))
	tables := []table{latencies, cost}
	if p.Dropped != nil {
		dropped := table{head: []string{"faults", "pushes dropped"}}
		dropped.add("as the control plane counts", count(p.Dropped))
		tables = append(tables, dropped)
	}
	return tables
}
