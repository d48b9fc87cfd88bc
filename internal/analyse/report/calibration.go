package report

import (
	"fmt"
	"io"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// PrintCalibration writes a calibration in one of output.Formats.
func PrintCalibration(w io.Writer, format string, c *record.Calibration) error {
	return output.Print(w, format, "a calibration", c, calibrationDocument(c).write)
}

// PrintSpeed prints the speed of a machine in one of output.Formats.
func PrintSpeed(w io.Writer, format string, s *record.MachineSpeed) error {
	return output.Print(w, format, "a speed", s, speedDocument(s).write)
}

func speedDocument(s *record.MachineSpeed) document {
	t := table{Head: plain("processor", "reference processors", "slowest part", "quickest part", "CPU time", "work")}
	three := func(v float64) string { return fmt.Sprintf("%.3g", v) }
	t.Add(plain(orAbsent(s.Machine.CPUModel), three(s.Speed.Speed), three(s.Speed.Low), three(s.Speed.High), seconds(&s.Speed.CPUSeconds), s.Speed.Work)...)
	return document{title: "speed", facts: facts{measuredOn(s.Machine), {"scaler", unmarked(s.Scaler)}}, tables: []table{t}}
}

func calibrationDocument(c *record.Calibration) document {
	d := document{title: "calibration", facts: facts{measuredOn(c.Machine), {"scaler", unmarked(c.Scaler)}}}
	for i := range c.Points {
		d.tables = append(d.tables, pointTables(&c.Points[i])...)
	}
	return d
}

func measuredOn(m record.Machine) fact {
	return fact{"machine", unmarked(fmt.Sprintf("%s, %s, kernel %s", orAbsent(m.CPUModel), output.Many(m.CPUs, "CPU"), m.Kernel))}
}

// pointTables show one point: the times at which things arrived, and the usage.
func pointTables(p *record.CalibrationPoint) []table {
	name := fmt.Sprintf("%d sidecars, %s", p.Sidecars, p.XDS)
	if p.DelaySeconds > 0 || p.Drop > 0 {
		name += fmt.Sprintf(", pushes delayed %s, %s dropped", seconds(&p.DelaySeconds), percent(&p.Drop))
	}
	latencies := table{Head: plain(name, "count", "lost", "p50", "p90", "p99", "max")}
	for _, row := range latencyRows(&p.Latencies) {
		if l := row.value; l != nil {
			latencies.AddPlain(row.name, count(&l.Count), count(&l.Lost), quantile(l, l.P50), quantile(l, l.P90), quantile(l, l.P99), seconds(l.Max))
		}
	}
	i := &p.Instrument
	cost := table{Head: plain("cost", "cores, held", "memory per sidecar", "configuration", "CPU per push, scaler", "control plane", "fan-out's share", "lag p99", "arrival")}
	cost.AddPlain(name, number(i.Cores), bytes(i.BytesPerSidecar), bytes(&p.ConfigurationBytes),
		seconds(&p.FanOut.InstrumentSeconds), seconds(&p.FanOut.ControlPlaneSeconds), percent(&p.FanOut.Share), seconds(orEmpty(i.Lag).P99), seconds(&p.ArrivalSeconds))
	tables := []table{latencies, cost}
	if p.Dropped != nil {
		dropped := table{Head: plain("faults", "pushes dropped")}
		dropped.AddPlain("as the control plane counts", count(p.Dropped))
		tables = append(tables, dropped)
	}
	return tables
}
