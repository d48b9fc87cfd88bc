package main

import (
	"fmt"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/drivers"
)

// ownRows returns a row for each control plane that has metrics of its own.
func ownRows() []row {
	var rows []row
	for _, d := range drivers.All() {
		if panels := panelsOf(d, controlplane.PanelOwn); panels != nil {
			rows = append(rows, thirds(fmt.Sprintf("What %s says of itself (%[1]s only)", d.Name), panels...))
		}
	}
	return rows
}

// ownPanels returns the panels with control planes' own metrics at a place, in addition
// to what scaler measures; their titles name the control plane.
func ownPanels(place controlplane.PanelPlace) []panel {
	var all []panel
	for _, d := range drivers.All() {
		for _, p := range panelsOf(d, place) {
			p.title += " (" + d.Name + " only)"
			all = append(all, p)
		}
	}
	return all
}

// panelsOf returns a control plane's panels at a place.
func panelsOf(d controlplane.Driver, place controlplane.PanelPlace) []panel {
	var all []panel
	for _, p := range d.Figures.Panels {
		if p.Place == place {
			all = append(all, panelOf(p))
		}
	}
	return all
}

func panelOf(p controlplane.Panel) panel {
	draw, about := lines, p.About
	if p.Stack {
		draw = stack
	}
	var queries []query
	for i, s := range p.Series {
		queries = append(queries, seriesOf(s))
		if i == 0 && s.Value == controlplane.ValueRate {
			about += " " + born
		}
	}
	if p.Limit != "" {
		queries = append(queries, knownLimit(p.Limit))
	}
	return draw(p.Title, unit(p.Unit), about, queries...)
}

func seriesOf(s controlplane.PanelSeries) query {
	var q query
	switch s.Value {
	case controlplane.ValueRate:
		q = rate(own(s.Metric, s.Matchers...), s.By...)
	case controlplane.ValueMean:
		q = mean(func(name string, more ...string) promql { return own(name, append(more, s.Matchers...)...) }, s.Metric, s.By...)
	case controlplane.ValueLeast:
		q = aggregate("min", own(s.Metric, s.Matchers...), s.By...)
	default:
		q = sum(own(s.Metric, s.Matchers...), s.By...)
	}
	return q.as(s.Name)
}
