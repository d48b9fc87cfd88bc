package report

import (
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"strconv"
	"strings"

	"scaler.mesh/scaler/internal/analyse/report/chart"
	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/pkg/record"
)

// curve is one distribution of a run, to be drawn by percentile.
type curve struct {
	run     *record.Run
	name    string
	file    string // its distribution's name in the record
	style   chart.Style
	summary *record.Latency
	// withheld reports that too few changes were made for p99 and beyond.
	withheld bool
}

// path returns the path of its figures in the record.
func (c curve) path() string { return "latencies." + strings.ReplaceAll(c.file, "-", ".") }

// curves draw a run's latencies.
func (r *runCharts) curves() []template.HTML {
	l := &r.run.Latencies
	line := func(name, file string, hue int, summary *record.Latency) curve {
		return curve{run: r.run, name: name, file: file, style: chart.Style{Hue: hue, Dash: hue}, summary: summary}
	}
	var push, propagation []curve
	for i, kind := range changeKinds {
		followed, few := line(string(kind), "push-"+string(kind), i, l.Push[kind]), l.WithholdsP99(kind)
		followed.withheld = few
		push = append(push, followed)
		first, last := l.Propagation[kind].First, l.Propagation[kind].Last
		propagation = append(propagation,
			curve{r.run, string(kind) + ", to the first", "propagation-" + string(kind) + "-first", chart.Style{Hue: i, Dash: 2}, first, few},
			curve{r.run, string(kind) + ", to the last", "propagation-" + string(kind) + "-last", chart.Style{Hue: i}, last, few})
	}
	var drawn []template.HTML
	for _, c := range []struct {
		id, title string
		curves    []curve
		none      string
	}{
		{"certificate", "Certificate latency", []curve{line("certificate", "certificate", 0, l.Certificate), line("token", "token", 1, l.Token)}, "no certificate was requested."},
		{"complete", "Configuration latency", []curve{
			line("first configuration", "firstConfiguration", 0, l.FirstConfiguration), line("complete configuration", "completeConfiguration", 1, l.CompleteConfiguration),
			line("pod ready", "podReady", 2, l.PodReady),
		}, "no sidecar was configured."},
		{"push", "Push latency, by kind of change", push, ofProxies("no change was followed to the sidecars.", r.run)},
		{"propagation", "Propagation, by kind of change", propagation, ofProxies("no change was followed to the sidecars.", r.run)},
	} {
		about := "The share of all observations (horizontal) that took at most this time (vertical). Where a curve ends early, the rest was lost."
		drawn = append(drawn, r.draw.draw(curveChart(chart.Chart{ID: r.id + "-curve-" + c.id, Title: c.title, About: about, Absent: c.none}, c.curves, &r.warnings)))
	}
	return drawn
}

// curvesAtMost is the largest number of runs whose curves one chart can distinguish.
const curvesAtMost = chart.Hues

// runCurves draws the configuration latency of several runs in one chart.
func runCurves(runs []record.Run, d *warnings, draw *drawer) template.HTML {
	c := chart.Chart{ID: "overview-complete", Title: "Complete configuration, by run", Absent: "no sidecar was configured.",
		About: "The share of all sidecars (horizontal) that took at most this time (vertical)."}
	var curves []curve
	left := 0
	for i := range runs {
		r := &runs[i]
		if r.Latencies.CompleteConfiguration == nil {
			continue
		}
		if len(curves) == curvesAtMost {
			left++
			continue
		}
		style := chart.Style{Hue: len(curves), Dash: len(curves)}
		curves = append(curves, curve{r, orAbsent(r.Name), "completeConfiguration", style, r.Latencies.CompleteConfiguration, false})
	}
	if left > 0 {
		c.About += fmt.Sprintf(" Of the first %d runs; the sections of %d more have theirs.", curvesAtMost, left)
	}
	return draw.draw(curveChart(c, curves, d))
}

// curveChart draws curves. c.Absent is the reason to show when none was measured.
func curveChart(c chart.Chart, curves []curve, d *warnings) chart.Lines {
	none := c.Absent
	c.Table.Head = []string{"latency", "count", "lost", "p50", "p90", "p99", "p99.9", "max"}
	l := chart.Lines{
		X: chart.Axis{Name: "percentile", Kind: chart.Percentile, Ticks: chart.Ticks{Text: percentile}},
		Y: chart.Axis{Kind: chart.Log, Ticks: chart.Seconds},
	}
	var unread []string
	var all marks
	for _, one := range curves {
		s := one.summary
		if s == nil {
			continue
		}
		row := latencyRow{value: s, withheld: one.withheld}
		c.Table.Rows = append(c.Table.Rows, []string{
			one.name, count(&s.Count), count(&s.Lost), quantile(s, s.P50), quantile(s, s.P90), row.quantile("p99", s.P99), row.quantile("p999", s.P999), greatest(s),
		})
		for _, figure := range []string{".lost", ".p50", ".p90", ".p99", ".p999", ".max"} {
			all = append(all, d.mark(one.run, one.path()+figure, "")...)
		}
		if s.Unknown() {
			continue
		}
		points, err := one.points()
		if err != nil {
			unread = append(unread, fmt.Sprintf("%s (%v)", one.name, err))
			continue
		}
		if points != nil {
			l.Series = append(l.Series, chart.Series{Name: one.name, Style: one.style, Points: points})
		}
	}
	c.LimitedBy = d.links(all)
	c.Absent = ""
	if len(l.Series) == 0 {
		c.Absent = none
		if unread != nil {
			c.Absent = "the distributions could not be read: " + strings.Join(unread, ", ") + "."
		}
	} else if unread != nil {
		c.About += " Could not be read: " + strings.Join(unread, ", ") + "."
	}
	l.Chart = c
	return l
}

// points returns the points of the distribution; nil if it is empty.
func (c curve) points() ([]chart.Point, error) {
	missing := fmt.Errorf("no latencies/%s.hgrm in the record", c.file)
	if c.run.Dir == "" {
		return nil, missing // it was not read from a folder
	}
	f, err := c.run.OpenFile("latencies/" + c.file + ".hgrm")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing
	}
	if err != nil {
		return nil, fmt.Errorf("latencies/%s.hgrm cannot be opened", c.file)
	}
	defer f.Close()
	h, err := stats.ReadHistogram(f)
	if err != nil {
		return nil, err
	}
	curve := h.Curve()
	if curve == nil {
		return nil, nil
	}
	// The largest of n is drawn half an observation before the end, which is infinitely
	// far to the right.
	n := float64(c.summary.Count + c.summary.Lost)
	var points []chart.Point
	for _, p := range curve {
		points = append(points, chart.Point{X: min(p.Quantile, 1-0.5/n), Y: p.Seconds / c.run.Slowdown()}) // the file is in the slowed-down time of the test machine
	}
	return points, nil
}

// percentile prints a quantile as in 99.9.
func percentile(q float64) string {
	return "p" + strconv.FormatFloat(q*100, 'f', -1, 32)
}
