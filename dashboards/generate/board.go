package main

import (
	"bytes"
	"encoding/json"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// board is one dashboard.
type board struct {
	uid, title string // the uid is stable: links and bookmarks hold it
	about      string
	rows       []row
}

// row is a headline with panels under it.
type row struct {
	title  string
	width  uint32 // of each panel
	panels []panel
}

// thirds returns a row with three panels side by side.
func thirds(title string, panels ...panel) row { return row{title, fullWidth / 3, panels} }

// halves returns a row with two panels side by side.
func halves(title string, panels ...panel) row { return row{title, fullWidth / 2, panels} }

// tag is the tag of all of scaler's dashboards.
const tag = "scaler"

// source is the data source that the reader has chosen.
var source = common.DataSourceRef{Type: new("prometheus"), Uid: new("${datasource}")}

// JSON returns the dashboard in the form that Grafana imports.
func (b board) JSON() ([]byte, error) {
	builder := dashboard.NewDashboardBuilder(b.title).
		Uid(b.uid).
		Description(b.about).
		Tags([]string{tag}).
		Time("now-1h", "now").
		Timezone("browser").
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Link(dashboard.NewDashboardLinkBuilder("scaler").
			Type(dashboard.DashboardLinkTypeDashboards).
			Tags([]string{tag}).AsDropdown(true).IncludeVars(true).KeepTime(true))
	for _, v := range variables() {
		builder.WithVariable(v)
	}
	for _, a := range annotations {
		builder.Annotation(a.builder())
	}
	id := uint32(0)
	next := func() uint32 { id++; return id }
	for _, r := range b.rows {
		builder.WithRow(dashboard.NewRowBuilder(r.title).Id(next()))
		for _, p := range r.panels {
			builder.WithPanel(p.draw(p, next(), r.width))
		}
	}
	built, err := builder.Build()
	if err != nil {
		return nil, err
	}
	return encode(built)
}

// encode encodes the dashboard, with properties for which the SDK's types have no fields.
func encode(built dashboard.Dashboard) ([]byte, error) {
	data, err := json.Marshal(built)
	if err != nil {
		return nil, err
	}
	var document map[string]any
	if err := json.Unmarshal(data, &document); err != nil {
		return nil, err
	}
	list := document["annotations"].(map[string]any)["list"].([]any)
	for i, a := range annotations {
		entry := list[i].(map[string]any)
		entry["step"], entry["titleFormat"], entry["textFormat"], entry["tagKeys"] = annotationStep, a.title, a.text, a.tags
		entry["useValueForTime"] = true
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(document); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// variables returns the variables with which a reader selects runs: several of each, or
// all.
func variables() []cog.Builder[dashboard.VariableModel] {
	query := func(name, label, about, expr string) *dashboard.QueryVariableBuilder {
		return dashboard.NewQueryVariableBuilder(name).
			Label(label).Description(about).
			Datasource(source).
			Query(dashboard.StringOrMap{Map: map[string]any{"query": expr, "refId": "variable-" + name}}).
			Definition(expr).
			Refresh(dashboard.VariableRefreshOnTimeRangeChanged).
			Sort(dashboard.VariableSortNaturalAsc).
			Multi(true).IncludeAll(true).
			Current(dashboard.VariableOption{
				Text:  dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
				Value: dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
			})
	}
	const everything = ".*" // shorter than a list of all names
	return []cog.Builder[dashboard.VariableModel]{
		dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").
			Description("A Prometheus that holds runs of scaler.").Type("prometheus"),
		query("run", "Run", "Runs, by the names of their folders.", `label_values(scaler_run_info, run)`).AllValue(everything),
		query("mode", "Mode", "permissive and strict are presets of the knobs; other knobs are named one by one: mTLS, scope, authorization.",
			`label_values(scaler_run_info{run=~"$run"}, mode)`).AllValue(everything),
		query("phase", "Phase", "Only what was in these phases; none is the time between phases.",
			`label_values(scaler_phase_info{run=~"$run"}, phase)`).AllValue(everything),
		// The values are the control planes that were under test, not every program that
		// was measured.
		query("control_plane", "Control plane", "The program under test.",
			`label_values(scaler_run_info{run=~"$run"}, control_plane)`).Hide(dashboard.VariableHideHideVariable),
	}
}

// annotation marks times on every panel: the values of its query, in milliseconds. If the
// times at which a query has a value were marked instead, they would be returned one by
// one, at intervals of a hundredth of the time range, and shorter ones not at all.
type annotation struct {
	name              string
	expr              promql
	on                bool
	title, text, tags string
	color             string
}

// annotationStep is the resolution of annotations: by default Grafana asks for one value
// a minute, and phases are shorter.
const annotationStep = "1s"

// moment returns the query for the time that a gauge holds, in milliseconds.
func moment(selected promql) promql { return "1000 * " + recent(selected) }

var annotations = []annotation{
	{
		name: "Rollouts, faults and upgrades", on: true, color: "orange",
		expr:  moment(metric("scaler_phase_start_timestamp_seconds", byPhase, events)),
		title: "{{phase}}", text: "{{run}}", tags: "run,mode,phase",
	},
	{
		name: "All phases", color: "blue",
		expr:  moment(metric("scaler_phase_start_timestamp_seconds", byPhase)),
		title: "{{phase}}", text: "{{run}}", tags: "run,mode,phase",
	},
	{
		name: "Runs", color: "purple",
		expr: aggregate("max", recent(metric("scaler_run_info")), "control_plane", "pods", "mtls", "scope", "authz").expr +
			" * on (run, mode) group_left " + aggregate("max", moment(metric("scaler_run_start_timestamp_seconds"))).expr,
		title: "{{run}}", text: "{{control_plane}}, {{pods}} pods, mTLS {{mtls}}, scope {{scope}}, authorization {{authz}}", tags: "run,mode",
	},
}

func (a annotation) builder() cog.Builder[dashboard.AnnotationQuery] {
	return dashboard.NewAnnotationQueryBuilder().
		Name(a.name).Enable(a.on).IconColor(a.color).
		Datasource(source).
		Expr(string(a.expr)).
		Target(prometheus.NewDataqueryBuilder().Expr(string(a.expr)).Interval(annotationStep).RefId("Annotation"))
}
