package main

import (
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// panel is one drawing of queries.
type panel struct {
	draw    drawing
	title   string
	what    shown
	about   string // what the figure means and what limits its accuracy
	queries []query
	limit   float64 // a line at a value that means trouble; 0 draws none
	always  bool    // also outside of the chosen phases
}

// drawing places a panel on a dashboard.
type drawing func(p panel, id, width uint32) cog.Builder[dashboard.Panel]

// Constructors of panels. Lines and stacks show only the chosen phases; states and values
// have the full width, whatever their row.
var (
	lines  = drawn(drawLines)  // over time
	stack  = drawn(drawStack)  // over time, adding up
	states = drawn(drawStates) // over time, each value a state
	values = drawn(drawValues) // a table over the chosen time: a row for each set of labels, a column for each query
)

// drawn returns a constructor of panels of one kind of drawing.
func drawn(draw drawing) func(title string, what shown, about string, queries ...query) panel {
	return func(title string, what shown, about string, queries ...query) panel {
		return panel{draw: draw, title: title, what: what, about: about + what.inRecord(), queries: queries}
	}
}

// limited returns the panel with a fixed limit. A limit that is a series is added as a
// query instead.
func (p panel) limited(value float64) panel {
	p.limit = value
	return p
}

// outside returns the panel so that it shows data outside of the chosen phases too. It is
// for panels that show whether scaler itself could be scraped: where it could not, the
// phase is not known either.
func (p panel) outside() panel {
	p.always = true
	return p
}

const (
	height    = 8
	lowHeight = 5 // of panels with a row for each run
	fullWidth = 24
)

// canvas is the interface that the SDK's panel builders have in common.
type canvas[B any] interface {
	Id(id uint32) B
	Title(title string) B
	Description(description string) B
	Unit(unit string) B
	Datasource(source common.DataSourceRef) B
	Height(h uint32) B
	Span(w uint32) B
	Targets(targets []cog.Builder[variants.Dataquery]) B
}

// frame adds to a canvas what all panels have in common, and adds each query by ask.
func frame[B canvas[B]](b B, p panel, id, width uint32, ask func(query) *prometheus.DataqueryBuilder) B {
	var targets []cog.Builder[variants.Dataquery]
	for i, q := range p.queries {
		targets = append(targets, ask(q).RefId(refID(i)).Datasource(source).EditorMode(prometheus.QueryEditorModeCode))
	}
	return b.Id(id).Title(p.title).Description(p.about).Unit(p.what.unit).Datasource(source).
		Height(height).Span(width).Targets(targets)
}

// refID returns the name of the i-th query of a panel: A, B, C.
func refID(i int) string { return string(rune('A' + i)) }

// overTime returns a query for the values over the chosen time.
func overTime(q query) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Expr(string(q.expr)).LegendFormat(q.legend()).
		Range().Format(prometheus.PromQueryFormatTimeSeries)
}

// inPhases is like overTime, restricted to the chosen phases.
func inPhases(q query) *prometheus.DataqueryBuilder {
	q.expr = phased(q.expr)
	return overTime(q)
}

// atOnce returns a query for the values at the end of the chosen time.
func atOnce(q query) *prometheus.DataqueryBuilder {
	return prometheus.NewDataqueryBuilder().Expr(string(q.expr)).LegendFormat(q.name).
		Instant().Format(prometheus.PromQueryFormatTable)
}

func drawLines(p panel, id, width uint32) cog.Builder[dashboard.Panel] { return graph(p, id, width) }

func drawStack(p panel, id, width uint32) cog.Builder[dashboard.Panel] {
	return graph(p, id, width).
		FillOpacity(40).Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
}

func graph(p panel, id, width uint32) *timeseries.PanelBuilder {
	ask := inPhases
	if p.always {
		ask = overTime
	}
	b := frame(timeseries.NewPanelBuilder(), p, id, width, ask).
		Min(0).LineWidth(1).FillOpacity(10).ShowPoints(common.VisibilityModeAuto).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).Calcs([]string{"max"}))
	if p.what.unit == "short" {
		b.AxisSoftMax(1) // else an axis of nothing but zeros goes to 100
	}
	if p.limit > 0 {
		b.Thresholds(dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).
			Steps([]dashboard.Threshold{{Color: "transparent"}, {Value: new(p.limit), Color: "red"}})).
			ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	return b
}

// drawStates draws the phases of each run in a row of its own.
func drawStates(p panel, id, _ uint32) cog.Builder[dashboard.Panel] {
	return frame(statetimeline.NewPanelBuilder(), p, id, fullWidth, overTime).
		Height(lowHeight).
		ShowValue(common.VisibilityModeAuto).RowHeight(0.8).FillOpacity(80).LineWidth(0).
		ColorScheme(dashboard.NewFieldColorBuilder().Mode(dashboard.FieldColorModeIdPaletteClassic)). // with the default, a gradient, there is no legend
		Mappings(phaseMappings()).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom))
}

func drawValues(p panel, id, _ uint32) cog.Builder[dashboard.Panel] {
	hide, rename := map[string]any{"Time": true}, map[string]any{}
	columns := []string{"run", "mode"}
	for _, q := range p.queries {
		for _, label := range q.by {
			if !slices.Contains(columns, label) {
				columns = append(columns, label)
			}
		}
	}
	for i, q := range p.queries {
		rename["Value #"+refID(i)] = q.name
		columns = append(columns, "Value #"+refID(i))
	}
	if len(p.queries) == 1 { // then Grafana calls its column without a reference
		columns = append(columns, "Value")
		rename["Value"] = p.queries[0].name
		hide["Value"] = p.queries[0].name == ""
	}
	order := map[string]any{} // without it that of the alphabet
	for i, column := range columns {
		order[column] = i
	}
	return frame(table.NewPanelBuilder(), p, id, fullWidth, atOnce).
		Height(lowHeight).
		WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}}).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"excludeByName": hide, "renameByName": rename, "indexByName": order,
		}})
}
