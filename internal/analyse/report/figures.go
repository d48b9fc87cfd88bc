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

// usageRow is one figure of a record.Usage.
type usageRow struct {
	name  string
	path  string // below the usage
	rare  bool   // left out where no phase has it: not every program is measured so
	print func(*record.Usage) string
}

// usageRows are the figures of a usage in display order.
var usageRows = func() []usageRow {
	var rows []usageRow
	for _, f := range record.UsageFigures {
		rare := f.Path == "cores.peak100ms" || f.Path == "referenceCPUSeconds" || f.Path == "referenceCores" || strings.HasPrefix(f.Path, "workingSetBytes.")
		rows = append(rows, usageRow{f.Label, f.Path, rare, func(u *record.Usage) string { return figureText(f.Unit, f.Of(u)) }})
	}
	return rows
}()

// usageText prints one of usageRows.
func usageText(u *record.Usage, path string) string {
	for _, row := range usageRows {
		if row.path == path {
			return row.print(u)
		}
	}
	return absent
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
