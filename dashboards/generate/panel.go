package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// panel is one drawing.
type panel struct {
	title string
	about string // what the figure means and what makes it doubtful, as docs/definitions.md has it
	unit  string
	draw  drawing
	wide  bool // half of the width, not a third
	// limit is a line at a value that means trouble; 0 draws none. A limit that
	// is a series itself is a query.
	limit   float64
	queries []query
}

// drawing is how a panel shows its queries.
type drawing int

const (
	lines   drawing = iota // over time
	stacked                // over time, adding up
	states                 // over time, each value a state
	values                 // a table of values over the whole range, one row for each set of labels
)

// query is one question of a panel.
type query struct {
	legend string // of lines; of values, the name of the column
	expr   string
}

const (
	height    = 8
	narrow    = 8 // of 24
	half      = 12
	fullWidth = 24
)

func (p panel) width() uint32 {
	switch {
	case p.draw == values || p.draw == states:
		return fullWidth
	case p.wide:
		return half
	default:
		return narrow
	}
}

func (p panel) builder(id uint32) cog.Builder[dashboard.Panel] {
	switch p.draw {
	case values:
		return p.table(id)
	case states:
		return p.timeline(id)
	default:
		return p.graph(id)
	}
}

func (p panel) graph(id uint32) cog.Builder[dashboard.Panel] {
	b := timeseries.NewPanelBuilder().
		Id(id).Title(p.title).Description(p.about).Unit(p.unit).Datasource(source).
		Height(height).Span(p.width()).
		Min(0).LineWidth(1).FillOpacity(10).ShowPoints(common.VisibilityModeAuto).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).Calcs([]string{"max"}))
	if p.draw == stacked {
		b.FillOpacity(40).Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
	}
	if p.limit > 0 {
		b.Thresholds(dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).
			Steps([]dashboard.Threshold{{Color: "transparent"}, {Value: new(p.limit), Color: "red"}})).
			ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	for _, q := range p.targets(prometheus.PromQueryFormatTimeSeries) {
		b.WithTarget(q)
	}
	return b
}

func (p panel) timeline(id uint32) cog.Builder[dashboard.Panel] {
	b := statetimeline.NewPanelBuilder().
		Id(id).Title(p.title).Description(p.about).Unit(p.unit).Datasource(source).
		Height(height).Span(p.width()).
		ShowValue(common.VisibilityModeNever).RowHeight(0.8).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdPaletteClassicByName))
	for _, q := range p.targets(prometheus.PromQueryFormatTimeSeries) {
		b.WithTarget(q)
	}
	return b
}

// table shows the values over the chosen time: labels are columns, and each
// query is one.
func (p panel) table(id uint32) cog.Builder[dashboard.Panel] {
	hide, rename := map[string]any{"Time": true}, map[string]any{}
	if len(p.queries) == 1 {
		rename["Value"] = p.queries[0].legend
		hide["Value"] = p.queries[0].legend == ""
	}
	for i, q := range p.queries {
		rename["Value #"+refID(i)] = q.legend
	}
	b := table.NewPanelBuilder().
		Id(id).Title(p.title).Description(p.about).Unit(p.unit).Datasource(source).
		Height(height).Span(p.width()).
		WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{"excludeByName": hide, "renameByName": rename}})
	for _, q := range p.targets(prometheus.PromQueryFormatTable) {
		b.WithTarget(q)
	}
	return b
}

func (p panel) targets(format prometheus.PromQueryFormat) []cog.Builder[variants.Dataquery] {
	var all []cog.Builder[variants.Dataquery]
	for i, q := range p.queries {
		b := prometheus.NewDataqueryBuilder().
			RefId(refID(i)).Expr(q.expr).LegendFormat(q.legend).Datasource(source).
			Format(format).EditorMode(prometheus.QueryEditorModeCode)
		if format == prometheus.PromQueryFormatTable {
			b.Instant()
		} else {
			b.Range()
		}
		all = append(all, b)
	}
	return all
}

// refID names the i-th query of a panel: A, B, C.
func refID(i int) string { return string(rune('A' + i)) }

// chosen are the label matchers for what the reader has chosen.
const chosen = `run=~"$run",mode=~"$mode"`

// ofControlPlane selects a metric that the control plane itself exposes.
const ofControlPlane = chosen + `,job=~"$control_plane"`

// sel is the selector of a metric within what the reader has chosen.
func sel(metric string, matchers ...string) string {
	return metric + "{" + strings.Join(append([]string{chosen}, matchers...), ",") + "}"
}

// own is the selector of a metric of the control plane.
func own(metric string, matchers ...string) string {
	return metric + "{" + strings.Join(append([]string{ofControlPlane}, matchers...), ",") + "}"
}

// phased leaves of a result what lies in the phases that the reader has chosen.
func phased(expr string) string {
	return fmt.Sprintf(`(%s) and on (run, mode) %s`, expr, sel("scaler_phase_info", `phase=~"$phase"`))
}

// perSecond is a counter's rate, added up by these labels beside run and mode.
func perSecond(selector string, by ...string) string {
	return phased(sumRate(selector, by...))
}

func sumRate(selector string, by ...string) string {
	return fmt.Sprintf("sum by (%s) (rate(%s[$__rate_interval]))", labels(by), selector)
}

// gauge is a gauge, added up by these labels beside run and mode.
func gauge(selector string, by ...string) string {
	return phased(fmt.Sprintf("sum by (%s) (%s)", labels(by), selector))
}

func labels(by []string) string { return strings.Join(append([]string{"run", "mode"}, by...), ", ") }

// mean is the mean of what a histogram or summary counts, from its sum and its
// count; where nothing was counted there is none. selected is own or sel.
func mean(selected func(string, ...string) string, metric string, by ...string) string {
	return phased(fmt.Sprintf("%s / (%s > 0)", sumRate(selected(metric+"_sum"), by...), sumRate(selected(metric+"_count"), by...)))
}

// meanOf is mean for a metric of the cluster, by one label.
func meanOf(metric, by string, matchers ...string) string {
	return mean(func(name string, _ ...string) string { return sel(name, matchers...) }, metric, by)
}

// quantile is a quantile of one of scaler's native histograms.
func quantile(q float64, selector string, by ...string) string {
	return phased(fmt.Sprintf("histogram_quantile(%s, %s)", number(q), sumRate(selector, by...)))
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// quantiles are three quantiles of one of scaler's native histograms.
func quantiles(metric string, by ...string) []query {
	legend := "{{run}}"
	for _, label := range by {
		legend += " {{" + label + "}}"
	}
	var all []query
	for _, q := range []struct {
		name  string
		value float64
	}{{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}} {
		all = append(all, query{legend + " " + q.name, quantile(q.value, sel(metric), by...)})
	}
	return all
}
