package report

import (
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/record"
)

// figureText prints a figure in its unit, scaled for reading.
func figureText(unit record.Unit, v *float64) string {
	switch unit {
	case record.UnitSeconds:
		return seconds(v)
	case record.UnitBytes:
		return bytes(v)
	case record.UnitBytesPerSecond:
		if v != nil {
			return bytes(v) + "/s"
		}
	case record.UnitShare:
		return percent(v)
	case record.UnitCount:
		return tally(v)
	}
	return number(v)
}

// figure is a figure of a run.
type figure struct {
	path  string // in the record; its warnings are also those of what is derived from it
	value func(*record.Run) *float64
	print func(*float64) string
}

// as returns a figure that is printed in another way.
func (f figure) as(print func(*float64) string) figure {
	f.print = print
	return f
}

// text prints the figure of a run.
func (f figure) text(r *record.Run) string { return f.print(f.value(r)) }

var (
	rolloutTime      = figure{"phases.rollout", (*record.Run).RolloutSeconds, seconds} // known only if the mesh converged
	arrivalRate      = recorded("arrival.achievedPerSecond", number)
	pushesPerSidecar = recorded("xds.perSidecar.responses", number)
	bytesPerSidecar  = recorded("xds.perSidecar.bytes", bytes)
	configuration    = recorded("xds.configurationBytes.mean", bytes) // of a sidecar
)

// recorded returns a figure of the catalogue.
func recorded(path string, print func(*float64) string) figure {
	return figure{path, func(r *record.Run) *float64 { return r.Value(path) }, print}
}

// need returns a figure of the control plane in a phase, by its path below the usage.
func need(phase record.PhaseName, path string) figure {
	of := usageFigure(path)
	return figure{
		"controlPlane." + string(phase) + "." + path,
		func(r *record.Run) *float64 { return of.Of(usage(r.ControlPlane, phase)) },
		func(v *float64) string { return figureText(of.Unit, v) },
	}
}

// columnsOf returns the figures of a part of a record as columns, in the catalogue's order except that
// those in first come first.
func columnsOf(figures []record.Figure, of any, first ...string) []column {
	var columns []column
	for _, f := range figures {
		columns = append(columns, column{f.Label, f.Path, figureText(f.Unit, f.Of(of))})
	}
	slices.SortStableFunc(columns, func(a, b column) int { return placeIn(first, a.path) - placeIn(first, b.path) })
	return columns
}

// placeIn returns the index of a name in a list; the length of the list if it is not in
// it.
func placeIn(list []string, name string) int {
	if i := slices.Index(list, name); i >= 0 {
		return i
	}
	return len(list)
}

// usageFigure returns the figure of a usage at a path below it.
func usageFigure(path string) record.Figure {
	at := slices.IndexFunc(record.UsageFigures, func(f record.Figure) bool { return f.Path == path })
	return record.UsageFigures[at]
}

// usageText prints the figure of a usage at a path below it.
func usageText(u *record.Usage, path string) string {
	f := usageFigure(path)
	return figureText(f.Unit, f.Of(u))
}

// rare reports whether a figure of a usage is left out where no phase has it: not every program is measured so.
func rare(path string) bool {
	return path == "cores.peak100ms" || path == "referenceCPUSeconds" || path == "referenceCores" || strings.HasPrefix(path, "workingSetBytes.")
}

// latencyRow is one distribution of a run.
type latencyRow struct {
	name   string
	path   string // in the record
	always bool   // shown even when it was not measured
	value  *record.Latency
	// withheld reports that too few changes were made for p99.
	withheld bool
}

// changeKinds in the order they are shown.
var changeKinds = record.ChangeKinds

// expectedLatencies are the distributions that every rollout should have.
var expectedLatencies = []string{"podAdmission", "podReady", "certificate", "connect", "firstConfiguration", "completeConfiguration"}

// latencyRows returns the distributions shown in tables: all of the catalogue except
// those that are only for comparisons and charts.
func latencyRows(l *record.Latencies) []latencyRow {
	var rows []latencyRow
	for _, d := range l.All() {
		if record.Within(d.Path, "rolloutPush") || d.Path == "changeWrite" {
			continue
		}
		rows = append(rows, latencyRow{d.Label, "latencies." + d.Path, slices.Contains(expectedLatencies, d.Path), d.Latency, d.WithheldP99})
	}
	return rows
}
