package main

import (
	"fmt"
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/record"
)

// shown describes the data of a panel: its unit, and the figures of a run's record that
// it shows over time.
type shown struct {
	unit    string   // as Grafana calls it
	figures []figure // none where no record has the like
}

// figure is a figure of the catalogue, by the path that a reader looks for in a record:
// that of a distribution or a usage, not of each quantile.
type figure struct {
	path string
	record.Figure
}

// unit returns the data of a panel that shows no figure of a record.
func unit(name string) shown { return shown{unit: name} }

// figures returns the data of a panel that shows figures in the unit that the catalogue
// states for them.
func figures(paths ...string) shown {
	return shownAs(map[record.Unit]string{
		record.UnitSeconds: "s", record.UnitBytes: "bytes", record.UnitCores: "suffix: cores", record.UnitShare: "percentunit",
		record.UnitCount: "short", record.UnitPerSecond: "cps", record.UnitBytesPerSecond: "binBps",
	}, paths)
}

// rateOf returns the data of a panel that shows the rate per second of figures that
// count.
func rateOf(paths ...string) shown {
	return shownAs(map[record.Unit]string{record.UnitCount: "cps", record.UnitBytes: "binBps"}, paths)
}

// shareOf returns the data of a panel that shows figures that count as a share of
// something else.
func shareOf(paths ...string) shown {
	return shownAs(map[record.Unit]string{record.UnitCount: "percentunit"}, paths)
}

// shownAs returns the data of a panel with the figures at the paths and Grafana's name of
// their common unit. It panics for a path without a figure, and for a unit that is not in
// units: that is a mistake in this package, and no dashboard is written.
func shownAs(units map[record.Unit]string, paths []string) shown {
	var s shown
	for _, path := range paths {
		f := figureAt(path)
		name, ok := units[f.Unit]
		if !ok || s.unit != "" && s.unit != name {
			panic(fmt.Sprintf("figure %s is in %q, which the panel cannot show", path, f.Unit))
		}
		s.unit, s.figures = name, append(s.figures, f)
	}
	return s
}

// examples replaces the placeholders in capitals in a figure's path by values for which
// there is a figure.
var examples = strings.NewReplacer("PHASE", string(record.PhaseRollout), "KIND", string(record.RouteChange), "TYPE", "CDS")

func figureAt(path string) figure {
	for _, below := range []string{"", ".p50", ".mean"} {
		if f, ok := record.FigureAt(examples.Replace(path) + below); ok {
			return figure{path, f}
		}
	}
	panic("no figure has the path " + path)
}

// inRecord names the figures that a panel shows, for its description; "" without any.
func (s shown) inRecord() string {
	if len(s.figures) == 0 {
		return ""
	}
	var paths, observations []string
	for _, f := range s.figures {
		paths = append(paths, f.path)
		if !slices.Contains(observations, f.Counts) {
			observations = append(observations, f.Counts)
		}
	}
	return fmt.Sprintf(" In the record: %s; one observation: %s.", strings.Join(paths, ", "), strings.Join(observations, ", "))
}
