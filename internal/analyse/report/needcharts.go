package report

import (
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/analyse/report/chart"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// sizeFigure is a figure drawn by size and settings.
type sizeFigure struct {
	name  string
	light bool
	figure
}

// sizeChart describes a chart over size; its figures have one unit.
type sizeChart struct {
	id, title string
	ticks     chart.Ticks
	figures   []sizeFigure
}

// meanCores returns the path of the mean cores in a usage, and their name. It returns reference cores if all runs have them in these phases: they can
// be compared between machines of different speeds and between dilation factors.
func meanCores(runs []*record.Run, phases ...record.PhaseName) (path, name string) {
	unknown := func(r *record.Run) bool {
		return slices.ContainsFunc(phases, func(p record.PhaseName) bool { return usage(r.ControlPlane, p).ReferenceCores == nil })
	}
	if len(runs) == 0 || slices.ContainsFunc(runs, unknown) {
		return "cores.mean", "cores"
	}
	return "referenceCores", "reference cores"
}

// coresChart describes the chart of mean cores.
func coresChart(groups []alike) sizeChart {
	var runs []*record.Run
	for _, g := range groups {
		runs = append(runs, g.runs...)
	}
	path, name := meanCores(runs, record.PhaseRollout, record.PhaseSteady)
	return sizeChart{"cores", capital(name) + ": rolling out against steady", chart.Number, []sizeFigure{
		{"rollout", false, need(record.PhaseRollout, path)}, {"steady", true, need(record.PhaseSteady, path)},
	}}
}

// otherSizeCharts are drawn after that of cores.
var otherSizeCharts = []sizeChart{
	{"memory", "Resident memory: rolling out against steady", chart.Bytes, []sizeFigure{
		{"peak of rollout", false, need(record.PhaseRollout, "memoryBytes.peak")}, {"mean of steady", true, need(record.PhaseSteady, "memoryBytes.mean")},
	}},
	{"heap", "Live heap: rolling out against steady", chart.Bytes, []sizeFigure{
		{"end of rollout", false, need(record.PhaseRollout, "heapBytes.end")}, {"mean of steady", true, need(record.PhaseSteady, "heapBytes.mean")},
	}},
	{"duration", "Rollout time", chart.Seconds, []sizeFigure{{"", false, rolloutTime}}},
	{"configuration", "Configuration of a sidecar", chart.Bytes, []sizeFigure{{"", false, configuration}}},
}

// sizeCharts draws the control plane's usage by size and settings.
func sizeCharts(runs []record.Run, d *warnings, draw *drawer) []template.HTML {
	groups := settings(runs)
	names := settingNames(groups)
	var sizes []int
	for _, g := range groups {
		sizes = append(sizes, g.sizes()...)
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	var drawn []template.HTML
	for _, c := range append([]sizeChart{coresChart(groups)}, otherSizeCharts...) {
		var all marks
		b := chart.Bars{
			Chart: chart.Chart{ID: "overview-" + c.id, Title: c.title, About: settingsLegend(groups, names, len(runs))},
			X:     chart.Axis{Name: "pods"}, Y: chart.Axis{Ticks: c.ticks}, Format: func(v float64) string { return c.figures[0].print(&v) },
		}
		for _, size := range sizes {
			b.Groups = append(b.Groups, fmt.Sprint(size))
		}
		b.Table.Head = append([]string{"pods"}, b.Groups...)
		for i, g := range groups {
			for _, f := range c.figures {
				s := chart.BarSeries{Name: strings.TrimSuffix(names[i]+", "+f.name, ", "), Style: chart.Style{Hue: i, Light: f.light}}
				row := []string{s.Name}
				for _, size := range sizes {
					of := ofSize(g.runs, size)
					s.Bars = append(s.Bars, barOf(spread(of, f.value)))
					row = append(row, rangeText(of, f.figure))
				}
				b.Series, b.Table.Rows = append(b.Series, s), append(b.Table.Rows, row)
				all = append(all, d.markAll(g.runs, f.path)...)
			}
		}
		b.LimitedBy = d.links(all)
		if len(groups) == 0 {
			b.Absent = "no run completed."
		}
		drawn = append(drawn, draw.draw(b))
	}
	return drawn
}

func ofSize(runs []*record.Run, pods int) []*record.Run {
	var of []*record.Run
	for _, r := range runs {
		if r.PodCount() == pods {
			of = append(of, r)
		}
	}
	return of
}

func barOf(v *values) chart.Bar {
	if v == nil {
		return chart.NoBar
	}
	return chart.Bar{Value: v.mean, Low: v.low, High: v.high}
}

// settingNames returns short, distinct names of the groups.
func settingNames(groups []alike) []string {
	var names []string
	seen := map[string]int{}
	for _, g := range groups {
		seen[shortKnobs(g.runs[0])]++
	}
	for _, g := range groups {
		name := shortKnobs(g.runs[0])
		if seen[name] > 1 {
			name += " as in " + orAbsent(g.runs[0].Name)
		}
		names = append(names, name)
	}
	return names
}

// settingsLegend explains the names in a chart.
func settingsLegend(groups []alike, names []string, runs int) string {
	var parts []string
	completed := 0
	for i, g := range groups {
		completed += len(g.runs)
		if of := names[i] + " is " + g.runs[0].Environment.Knobs.Text(); !slices.Contains(parts, of) {
			parts = append(parts, of)
		}
	}
	text := strings.Join(parts, "; ") + "."
	if n := runs - completed; n > 0 {
		text += fmt.Sprintf(" Without %s that did not complete.", output.Many(n, "run"))
	}
	if slices.ContainsFunc(groups, func(g alike) bool { return len(g.runs) > len(g.sizes()) }) {
		text += " A bar is the mean of repeats, and its line the range."
	}
	return text
}

// needCharts draw a run's need by phase.
func (r *runCharts) needCharts() []template.HTML {
	return []template.HTML{
		r.draw.draw(r.phaseBars(r.id+"-cores", "Cores by phase", chart.Number, phaseFigure{"mean", false, "cores.mean"}, phaseFigure{"peak over 1 s", true, "cores.peak"})),
		r.draw.draw(r.phaseBars(r.id+"-memory", "Memory by phase", chart.Bytes,
			phaseFigure{"resident, peak", true, "memoryBytes.peak"}, phaseFigure{"resident, mean", false, "memoryBytes.mean"}, phaseFigure{"live heap, mean", false, "heapBytes.mean"})),
	}
}

// phaseFigure is a figure drawn by phase.
type phaseFigure struct {
	name  string
	light bool
	path  string // below the usage
}

// phaseBars draws figures of one unit.
func (r *runCharts) phaseBars(id, title string, ticks chart.Ticks, figures ...phaseFigure) chart.Bars {
	b := chart.Bars{
		Chart: chart.Chart{ID: id, Title: title, About: "Of " + orAbsent(r.run.Environment.ControlPlane.Name) + " only."},
		X:     chart.Axis{Name: "phase"}, Y: chart.Axis{Ticks: ticks}, Format: func(v float64) string { return figureText(usageFigure(figures[0].path).Unit, &v) },
	}
	b.Table.Head = []string{"phase"}
	for i, f := range figures {
		b.Series = append(b.Series, chart.BarSeries{Name: f.name, Style: chart.Style{Hue: i, Light: f.light}})
		b.Table.Head = append(b.Table.Head, f.name)
	}
	var paths []string
	for _, p := range phasesShown {
		if *usage(r.run.ControlPlane, p.name) == (record.Usage{}) {
			continue
		}
		b.Groups = append(b.Groups, string(p.name))
		row := []string{string(p.name)}
		for i, f := range figures {
			of := need(p.name, f.path)
			paths = append(paths, of.path)
			b.Series[i].Bars = append(b.Series[i].Bars, chart.One(of.value(r.run)))
			row = append(row, of.text(r.run))
		}
		b.Table.Rows = append(b.Table.Rows, row)
	}
	b.LimitedBy = r.links(paths)
	return b
}

// xdsCharts draw what was sent by type.
func (r *runCharts) xdsCharts() []template.HTML {
	x := r.run.XDS
	if x == nil {
		return nil
	}
	whole := func(m map[string]int64) map[string]float64 {
		floats := map[string]float64{}
		for name, n := range m {
			floats[name] = float64(n)
		}
		return floats
	}
	size := orEmpty(x.ConfigurationBytes)
	return []template.HTML{
		r.draw.draw(typeBars(r.id+"-responses", "Responses by type", ofProxies("To all sidecars, over the whole run.", r.run), tally, chart.Number, "responses", whole(x.Responses))),
		r.draw.draw(typeBars(r.id+"-bytes", "Bytes of responses by type", ofProxies("To all sidecars, over the whole run, before compression.", r.run), bytes, chart.Bytes, "bytes", whole(x.Bytes))),
		r.draw.draw(typeBars(r.id+"-held", ofProxies("Configuration of a sidecar by type", r.run), ofProxies("What a sidecar holds when converged.", r.run), bytes, chart.Bytes, "held, mean", size.ByType)),
		r.draw.draw(typeBars(r.id+"-resources", ofProxies("Resources of a sidecar by type", r.run), ofProxies("How many of each type a sidecar holds when converged.", r.run), tally, chart.Number, "resources, mean", x.ConfigurationResources)),
	}
}

// typeBars draws a figure by type of resource.
func typeBars(id, title, about string, format func(*float64) string, ticks chart.Ticks, name string, byType map[string]float64) chart.Bars {
	b := chart.Bars{
		Chart: chart.Chart{ID: id, Title: title, About: about},
		X:     chart.Axis{Name: "type"}, Y: chart.Axis{Ticks: ticks}, Format: func(v float64) string { return format(&v) },
	}
	others := maps.Clone(byType)
	for _, kind := range usualTypes {
		if _, has := byType[kind]; has {
			b.Groups = append(b.Groups, kind)
		}
		delete(others, kind)
	}
	b.Groups = append(b.Groups, slices.Sorted(maps.Keys(others))...)
	b.Table.Head = append([]string{"type"}, b.Groups...)
	if len(byType) == 0 {
		return b
	}
	bars, row := chart.BarSeries{Name: name}, []string{name}
	for _, kind := range b.Groups {
		v := byType[kind]
		bars.Bars, row = append(bars.Bars, chart.One(&v)), append(row, format(&v))
	}
	b.Series, b.Table.Rows = []chart.BarSeries{bars}, [][]string{row}
	return b
}
