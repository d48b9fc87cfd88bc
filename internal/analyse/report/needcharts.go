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
	path  string
	value func(*record.Run) *float64
}

// sizeChart describes a chart of figures over size.
type sizeChart struct {
	id, title, axis string
	format          func(*float64) string
	ticks           chart.Ticks
	figures         []sizeFigure
}

var sizeChartsOf = []sizeChart{
	{"cores", "Cores: rolling out against steady", "cores, mean", number, chart.Number, []sizeFigure{
		{"rollout", false, "controlPlane.rollout.cores.mean", usageFigure(record.PhaseRollout, func(u *record.Usage) *float64 { return orEmpty(u.Cores).Mean })},
		{"steady", true, "controlPlane.steady.cores.mean", usageFigure(record.PhaseSteady, func(u *record.Usage) *float64 { return orEmpty(u.Cores).Mean })},
	}},
	{"memory", "Resident memory: rolling out against steady", "bytes", bytes, chart.Bytes, []sizeFigure{
		{"peak of rollout", false, "controlPlane.rollout.memoryBytes.peak", usageFigure(record.PhaseRollout, func(u *record.Usage) *float64 { return orEmpty(u.MemoryBytes).Peak })},
		{"mean of steady", true, "controlPlane.steady.memoryBytes.mean", usageFigure(record.PhaseSteady, func(u *record.Usage) *float64 { return orEmpty(u.MemoryBytes).Mean })},
	}},
	{"heap", "Live heap: rolling out against steady", "bytes", bytes, chart.Bytes, []sizeFigure{
		{"end of rollout", false, "controlPlane.rollout.heapBytes.end", usageFigure(record.PhaseRollout, func(u *record.Usage) *float64 { return orEmpty(u.HeapBytes).End })},
		{"mean of steady", true, "controlPlane.steady.heapBytes.mean", usageFigure(record.PhaseSteady, func(u *record.Usage) *float64 { return orEmpty(u.HeapBytes).Mean })},
	}},
	{"duration", "Rollout time", "seconds", seconds, chart.Seconds, []sizeFigure{{"", false, "phases.rollout", (*record.Run).RolloutSeconds}}},
	{"configuration", "Configuration of a sidecar", "bytes, mean", bytes, chart.Bytes, []sizeFigure{{"", false, "xds.configurationBytes.mean", configurationMean}}},
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
	for _, c := range sizeChartsOf {
		var all marks
		b := chart.Bars{
			Chart: chart.Chart{ID: "overview-" + c.id, Title: c.title, About: settingsLegend(groups, names, len(runs))},
			X:     chart.Axis{Name: "pods"}, Y: chart.Axis{Ticks: c.ticks}, Format: func(v float64) string { return c.format(&v) },
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
					row = append(row, rangeText(of, f.value, c.format))
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
		r.draw.draw(r.phaseBars(r.id+"-cores", "Cores by phase", number, chart.Number, []sizeFigure{
			{name: "mean", path: "cores.mean"}, {name: "peak over 1 s", light: true, path: "cores.peak"},
		}, func(u *record.Usage) []*float64 { return []*float64{orEmpty(u.Cores).Mean, orEmpty(u.Cores).Peak} })),
		r.draw.draw(r.phaseBars(r.id+"-memory", "Memory by phase", bytes, chart.Bytes, []sizeFigure{
			{name: "resident, peak", light: true, path: "memoryBytes.peak"}, {name: "resident, mean", path: "memoryBytes.mean"}, {name: "live heap, mean", path: "heapBytes.mean"},
		}, func(u *record.Usage) []*float64 {
			return []*float64{orEmpty(u.MemoryBytes).Peak, orEmpty(u.MemoryBytes).Mean, orEmpty(u.HeapBytes).Mean}
		})),
	}
}

func (r *runCharts) phaseBars(id, title string, format func(*float64) string, ticks chart.Ticks, figures []sizeFigure, of func(*record.Usage) []*float64) chart.Bars {
	b := chart.Bars{
		Chart: chart.Chart{ID: id, Title: title, About: "Of " + orAbsent(r.run.Environment.ControlPlane.Name) + " only."},
		X:     chart.Axis{Name: "phase"}, Y: chart.Axis{Ticks: ticks}, Format: func(v float64) string { return format(&v) },
	}
	for i, f := range figures {
		b.Series = append(b.Series, chart.BarSeries{Name: f.name, Style: chart.Style{Hue: i, Light: f.light}})
	}
	var paths []string
	b.Table.Head = []string{"phase"}
	for _, f := range figures {
		b.Table.Head = append(b.Table.Head, f.name)
	}
	for _, p := range phasesShown {
		u := usage(r.run.ControlPlane, p.name)
		if *u == (record.Usage{}) {
			continue
		}
		b.Groups = append(b.Groups, string(p.name))
		row := []string{string(p.name)}
		for _, f := range figures {
			paths = append(paths, "controlPlane."+string(p.name)+"."+f.path)
		}
		for i, v := range of(u) {
			bar := chart.NoBar
			if v != nil {
				bar = chart.One(*v)
			}
			b.Series[i].Bars = append(b.Series[i].Bars, bar)
			row = append(row, format(v))
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
		r.draw.draw(typeBars(r.id+"-responses", "Responses by type", ofProxies("To all sidecars, over the whole run.", r.run), tally, chart.Number, named{"responses", whole(x.Responses)})),
		r.draw.draw(typeBars(r.id+"-bytes", "Bytes of responses by type", ofProxies("To all sidecars, over the whole run, before compression.", r.run), bytes, chart.Bytes, named{"bytes", whole(x.Bytes)})),
		r.draw.draw(typeBars(r.id+"-held", ofProxies("Configuration of a sidecar by type", r.run), ofProxies("What a sidecar holds when converged.", r.run), bytes, chart.Bytes, named{"held, mean", size.ByType})),
		r.draw.draw(typeBars(r.id+"-resources", ofProxies("Resources of a sidecar by type", r.run), ofProxies("How many of each type a sidecar holds when converged.", r.run), tally, chart.Number, named{"resources, mean", x.ConfigurationResources})),
	}
}

// named holds figures by type of resource, with a name.
type named struct {
	name   string
	byType map[string]float64
}

func typeBars(id, title, about string, format func(*float64) string, ticks chart.Ticks, series ...named) chart.Bars {
	b := chart.Bars{
		Chart: chart.Chart{ID: id, Title: title, About: about},
		X:     chart.Axis{Name: "type"}, Y: chart.Axis{Ticks: ticks}, Format: func(v float64) string { return format(&v) },
	}
	types := map[string]bool{}
	for _, s := range series {
		for name := range s.byType {
			types[name] = true
		}
	}
	for _, name := range usualTypes {
		if types[name] {
			b.Groups = append(b.Groups, name)
		}
		delete(types, name)
	}
	b.Groups = append(b.Groups, slices.Sorted(maps.Keys(types))...)
	b.Table.Head = append([]string{"type"}, b.Groups...)
	for i, s := range series {
		if len(s.byType) == 0 {
			continue
		}
		bars, row := chart.BarSeries{Name: s.name, Style: chart.Style{Hue: i, Light: i > 0}}, []string{s.name}
		for _, name := range b.Groups {
			bar := chart.NoBar
			if v, ok := s.byType[name]; ok {
				bar = chart.One(v)
			}
			bars.Bars, row = append(bars.Bars, bar), append(row, entry(s.byType, name, func(v float64) string { return format(&v) }))
		}
		b.Series, b.Table.Rows = append(b.Series, bars), append(b.Table.Rows, row)
	}
	return b
}
