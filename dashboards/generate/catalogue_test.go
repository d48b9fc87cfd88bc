package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

// figurePath is a path of a record in a panel's description; own.PHASE has names of each control
// plane's, which are no figures of the catalogue.
var figurePath = regexp.MustCompile(`\b(?:arrival|certificates|change|churn|cluster|controlPlane|faults|instrument|latencies|pods|sidecars|xds)(?:\.[A-Za-z]+)+`)

// grafanaUnits are what a panel can show of a figure by its unit: the figure, or its rate.
var grafanaUnits = map[record.Unit][]string{
	record.UnitSeconds: {"s"}, record.UnitBytes: {"bytes", "Bps"}, record.UnitCores: {"suffix: cores"},
	record.UnitShare: {"percentunit"}, record.UnitCount: {"short", "cps", "percentunit"}, record.UnitPerSecond: {"cps"}, record.UnitBytesPerSecond: {"Bps"},
}

// What a panel names of a record is in the catalogue of figures, and has a unit that fits.
func TestPanelsNameFigures(t *testing.T) {
	named := 0
	for _, b := range boards() {
		for _, r := range b.rows {
			for _, p := range r.panels {
				for _, path := range figurePath.FindAllString(p.about, -1) {
					named++
					units := unitsOf(path)
					if units == nil {
						t.Errorf("%s: no figure has the path %s", p.title, path)
					} else if !slices.ContainsFunc(units, func(u record.Unit) bool { return slices.Contains(grafanaUnits[u], p.unit) }) {
						t.Errorf("%s: %s is in %v, the panel in %q", p.title, path, units, p.unit)
					}
				}
			}
		}
	}
	if named == 0 {
		t.Error("no panel names a figure")
	}
}

// unitsOf are the units of the figures at or below a path.
func unitsOf(path string) []record.Unit {
	if path == "sidecars.real.count" {
		return []record.Unit{record.UnitCount} // what was asked for, and so no figure
	}
	path = strings.ReplaceAll(path, ".KIND", ".route")
	var units []record.Unit
	for _, f := range record.Figures() {
		if f.Path == path || strings.HasPrefix(f.Path, path+".") {
			units = append(units, f.Unit)
		}
	}
	return units
}
