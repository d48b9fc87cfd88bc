package report

import (
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/analyse/report/chart"
	"scaler.mesh/scaler/pkg/record"
)

// timeLine is one line over time: a value for each moment of a run, NaN for none. The
// previous moment is nil for the first.
type timeLine struct {
	name  string
	style chart.Style
	of    func(m, before *record.Moment) float64
}

// timeLines draws the run over time, with its phases in the background.
func (r *runCharts) timeLines() []template.HTML {
	moments, err := r.run.Timeline()
	absent := r.absence(err, "timeline.jsonl", "the record has no time line (timeline.jsonl).")
	if len(moments) > 0 {
		absent = "" // as far as it could be read
	}
	named := []string{orAbsent(r.run.Environment.ControlPlane.Name), "kube-apiserver", "scaler"}
	if u := r.run.Upgrade; u != nil && u.To.Program != "" {
		named = slices.Insert(named, 1, u.To.Program)
	}
	types := typesSent(moments)
	var pushes []timeLine
	for i, kind := range types {
		pushes = append(pushes, timeLine{kind, chart.Style{Hue: i, Dash: i}, rate(func(m *record.Moment) int64 { return m.Responses[kind] })})
	}
	count := func(name string, hue int, of func(*record.Moment) int) timeLine {
		return timeLine{name, chart.Style{Hue: hue, Dash: hue}, func(m, _ *record.Moment) float64 { return float64(of(m)) }}
	}
	var drawn []template.HTML
	for _, c := range []struct {
		id, title, about string
		format           func(*float64) string
		ticks            chart.Ticks
		lines            []timeLine
		figures          []string // paths of the figures whose warnings also apply to the lines
	}{
		{"cores", "Cores over time", "Means over a second each.", number, chart.Number, loads(named, func(l record.Load) float64 { return l.Cores }), loadFigures("cores.mean", "cores.peak")},
		{"memory", "Resident memory over time", "", bytes, chart.Bytes, loads(named, func(l record.Load) float64 { return l.MemoryBytes }), loadFigures("memoryBytes.mean", "memoryBytes.peak")},
		{"pods", "Pods over time", "", tally, chart.Number, []timeLine{
			count("created", 0, func(m *record.Moment) int { return m.Created }), count("seen ready", 1, func(m *record.Moment) int { return m.Ready }),
		}, []string{"pods.created", "pods.ready"}},
		{"connections", "Connections over time", connectionsAbout(r.run), tally, chart.Number, []timeLine{
			count("connected", 0, func(m *record.Moment) int { return m.Connected }), count("complete", 1, func(m *record.Moment) int { return m.Complete }),
			count("converged", 2, func(m *record.Moment) int { return m.Converged }),
		}, []string{"pods.connected", "pods.complete", "pods.converged"}},
		{"pushes", "Pushes over time", ofProxies("Responses a second to all sidecars, by type.", r.run), tally, chart.Number, pushes, below("xds.responses.", types)},
		{"attempts", "Connecting and certificates over time", ofProxies("A second, of all sidecars.", r.run), tally, chart.Number, []timeLine{
			{"dials", chart.Style{}, rate(func(m *record.Moment) int64 { return m.Attempts })},
			{"refusals", chart.Style{Hue: 1, Dash: 1}, rate(func(m *record.Moment) int64 { return m.Refusals })},
			{"certificates", chart.Style{Hue: 2, Dash: 2}, rate(func(m *record.Moment) int64 { return m.Certificates })},
		}, []string{"xds.attempts", "xds.refusals", "certificates.attempts", "certificates.issued"}},
	} {
		drawn = append(drawn, r.draw.draw(r.timeChart(chart.Chart{ID: r.id + "-time-" + c.id, Title: c.title, About: c.about, Absent: absent, LimitedBy: r.links(c.figures)}, c.format, c.ticks, c.lines, moments)))
	}
	return drawn
}

// usualTypes are the types that every sidecar subscribes to.
var usualTypes = []string{"CDS", "EDS", "LDS", "RDS"}

// typesSent returns the types of responses over time: those of sidecars, unless the
// proxies use only others, and others that were sent.
func typesSent(moments []record.Moment) []string {
	if len(moments) == 0 {
		return usualTypes
	}
	var types, others []string
	sent := moments[len(moments)-1].Responses
	for _, kind := range usualTypes {
		if _, ok := sent[kind]; ok || len(sent) == 0 {
			types = append(types, kind)
		}
	}
	for kind, n := range sent {
		if n > 0 && !slices.Contains(usualTypes, kind) {
			others = append(others, kind)
		}
	}
	slices.Sort(others)
	return append(types, others...)
}

// connectionsAbout describes the chart of connections. If nodes have proxies, streams are
// counted, and pods by the proxy that serves each.
func connectionsAbout(r *record.Run) string {
	if r.Proxies == nil {
		return "Sidecars with an open stream, and how far they have come."
	}
	return "Proxies with an open stream (connected), and pods: those that their proxy serves (complete), and those whose proxy holds exactly what is expected (converged)."
}

// loadFigures returns the paths of the figures of the drawn programs, in every phase.
func loadFigures(figures ...string) []string {
	var paths []string
	for _, p := range phasesShown {
		for _, program := range []string{"controlPlane.", "cluster.kube-apiserver."} {
			paths = append(paths, below(program+string(p.name)+".", figures)...)
		}
	}
	return paths
}

func below(path string, names []string) []string {
	var paths []string
	for _, name := range names {
		paths = append(paths, path+name)
	}
	return paths
}

// absence explains why a file of the record is not shown; "" for no error.
func (r *runCharts) absence(err error, what, none string) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, fs.ErrNotExist):
		return none
	default:
		// The path of the folder has no meaning on another machine.
		return what + " could not be read: " + strings.ReplaceAll(err.Error(), r.run.Dir+"/", "") + "."
	}
}

// rate returns a function for the increase of a count per second.
func rate(of func(*record.Moment) int64) func(m, before *record.Moment) float64 {
	return func(m, before *record.Moment) float64 {
		if before == nil || !m.Time.After(before.Time) {
			return math.NaN()
		}
		return float64(of(m)-of(before)) / m.Time.Sub(before.Time).Seconds()
	}
}

// loads returns lines of programs by name, and of all others together.
func loads(named []string, of func(record.Load) float64) []timeLine {
	var lines []timeLine
	for i, name := range named {
		lines = append(lines, timeLine{name, chart.Style{Hue: i, Dash: i}, func(m, _ *record.Moment) float64 {
			if l, ok := m.Programs[name]; ok {
				return of(l)
			}
			return math.NaN()
		}})
	}
	return append(lines, timeLine{"all others together", chart.Style{Hue: 6, Dash: 3}, func(m, _ *record.Moment) float64 {
		sum := math.NaN()
		for name, l := range m.Programs {
			if slices.Contains(named, name) {
				continue
			}
			if math.IsNaN(sum) {
				sum = 0
			}
			sum += of(l)
		}
		return sum
	}})
}

func (r *runCharts) timeChart(c chart.Chart, format func(*float64) string, ticks chart.Ticks, lines []timeLine, moments []record.Moment) chart.Lines {
	l := chart.Lines{
		Chart: c, X: chart.Axis{Name: "seconds since the first phase began", Ticks: chart.Ticks{Text: func(v float64) string { return fmt.Sprintf("%.0f", v) }}},
		Y: chart.Axis{Ticks: ticks},
	}
	if len(moments) == 0 {
		if l.Absent == "" {
			l.Absent = "the time line is empty: the run ended before its first phase."
		}
		return l
	}
	origin := moments[0].Time
	if len(r.run.Phases) > 0 && !r.run.Phases[0].Start.IsZero() {
		origin = r.run.Phases[0].Start
	}
	since := func(t time.Time) float64 { return max(0, t.Sub(origin).Seconds()) }
	for _, p := range r.run.Phases {
		b := chart.Band{Name: string(p.Name), From: since(p.Start), To: since(moments[len(moments)-1].Time)}
		if p.End != nil {
			b.To = since(*p.End)
		}
		l.Bands = append(l.Bands, b)
	}
	l.About = strings.TrimSpace(l.About + " Shaded: " + phaseNames(r.run.Phases) + ".")
	for _, line := range lines {
		s := chart.Series{Name: line.name, Style: line.style}
		var before *record.Moment
		for i := range moments {
			m := &moments[i]
			if !m.Time.Before(origin) {
				s.Points = append(s.Points, chart.Point{X: since(m.Time), Y: line.of(m, before)})
			}
			before = m
		}
		l.Series = append(l.Series, s)
	}
	l.Table = timeTable(l, format)
	return l
}

func phaseNames(phases []record.Phase) string {
	var names []string
	for _, p := range phases {
		names = append(names, string(p.Name))
	}
	return strings.Join(names, ", ")
}

// timeTable returns a table with the mean and the maximum of each line in each phase.
func timeTable(l chart.Lines, format func(*float64) string) chart.Table {
	t := chart.Table{Head: []string{"mean, greatest"}}
	for _, b := range l.Bands {
		t.Head = append(t.Head, b.Name)
	}
	for _, s := range l.Series {
		row := []string{s.Name}
		for _, b := range l.Bands {
			sum, n, most := 0.0, 0.0, math.Inf(-1)
			for _, p := range s.Points {
				if p.X >= b.From && p.X < b.To && !math.IsNaN(p.Y) {
					sum, n, most = sum+p.Y, n+1, max(most, p.Y)
				}
			}
			if n == 0 {
				row = append(row, absent)
				continue
			}
			row = append(row, format(new(sum/n))+", "+format(&most))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
