package report

import (
	"fmt"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/analyse/report/chart"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// latencyPart is a latency run in a page.
type latencyPart struct {
	*runReport // its warnings, machine and instrument
	latency    *record.LatencyRun
}

// newLatencyPart returns a latency run with its own warnings, and what reports read of every run.
func newLatencyPart(l *record.LatencyRun) latencyPart {
	p := latencyPart{&runReport{run: &record.Run{
		Name: l.Name, Dir: l.Dir, Started: l.Started, Finished: l.Finished, Environment: l.Environment, Instrument: l.Instrument, Warnings: l.Warnings,
	}}, l}
	p.warnings.add(p.run)
	return p
}

// answer states in two sentences the latency of requests at the highest load without
// sidecars, and the latency that sidecars added.
func (p latencyPart) answer() []marked {
	rows := p.highest()
	if len(rows) == 0 {
		return plain(fmt.Sprintf("%s measured no request: %s.", orAbsent(p.latency.Name), orAbsent(string(p.latency.Status))))
	}
	var texts []marked
	var added []string
	for _, i := range rows {
		row := &p.latency.Rows[i]
		took := fmt.Sprintf("%s at p50 and %s at p99", quantile(&row.Latency.Latency, row.Latency.P50), quantile(&row.Latency.Latency, row.Latency.P99))
		switch {
		case row.Variant == "none":
			texts = append(texts, p.rowMark(i).on(fmt.Sprintf("At %s, requests without sidecars took %s.", offered(row), took)))
		case row.Added == nil:
			texts = append(texts, p.rowMark(i).on(fmt.Sprintf("At %s, requests with sidecars (%s) took %s.", offered(row), row.Variant, took)))
		default:
			added = append(added, fmt.Sprintf("%s at p50 and %s at p99 (%s)", addedPhrase(row.Added.P50), addedPhrase(row.Added.P99), strings.TrimSuffix(row.Variant+", "+row.Placement, ", ")))
		}
	}
	if added != nil {
		texts = append(texts, p.rowMark(rows...).on(fmt.Sprintf("Sidecars added %s.", listed(added))))
	}
	return texts
}

// highest returns the indexes of the rows with the highest load.
func (p latencyPart) highest() []int {
	load := func(row *record.LatencyRow) float64 { return max(row.RPS, float64(row.Connections)) }
	var indexes []int
	for i := range p.latency.Rows {
		row := &p.latency.Rows[i]
		if indexes != nil {
			best := load(&p.latency.Rows[indexes[0]])
			if load(row) < best {
				continue
			}
			if load(row) > best {
				indexes = nil
			}
		}
		indexes = append(indexes, i)
	}
	return indexes
}

// rowMark marks what is derived from rows.
func (p latencyPart) rowMark(rows ...int) marks {
	paths := []string{"rows"}
	for _, i := range rows {
		about := fmt.Sprintf("rows[%d]", i)
		paths = append(paths, about, about+".latency", about+".added")
	}
	return p.warnings.markAll([]*record.Run{p.run}, paths...)
}

// addedPhrase describes the latency that a sidecar adds, for a sentence.
func addedPhrase(a *record.Added) string {
	switch {
	case a == nil:
		return "an unknown latency"
	case a.Significant != nil && !*a.Significant:
		return "no significant latency"
	default:
		return seconds(&a.Seconds)
	}
}

// glanceHeads are the columns of the overview of a latency run, but for the limits.
var glanceHeads = []string{"load", "variant", "p50", "p99", "added, p50", "added, p99", "achieved", "errors", "sidecar cores per 1000 RPS"}

// glanceTexts returns the figures of a row of the overview.
func (p latencyPart) glanceTexts(i int) []string {
	row := &p.latency.Rows[i]
	added := orEmpty(row.Added)
	return []string{
		offered(row), variantName(row.Variant), quantile(&row.Latency.Latency, row.Latency.P50), quantile(&row.Latency.Latency, row.Latency.P99),
		addedText(added.P50), addedText(added.P99), threeDigits(row.AchievedRPS) + "/s", count(&row.Errors), number(orEmpty(row.Sidecars).CoresPer1000RPS),
	}
}

// glance returns the overview table at the head of a page.
func (p latencyPart) glance() grid {
	g := grid{Name: "Request latency of each load and variant", Left: 1}
	for _, head := range append(slices.Clone(glanceHeads), "limits") {
		g.Head = append(g.Head, cell{Text: head})
	}
	for i := range p.latency.Rows {
		g.Rows = append(g.Rows, append(plainCells(p.glanceTexts(i)), p.warnings.limitsCell(p.rowMark(i))))
	}
	return g
}

// latencyBrief makes the answer of a latency run: the sentences of its page, and the overview.
func latencyBrief(l *record.LatencyRun) brief {
	p := newLatencyPart(l)
	b := brief{title: measured(nil, []record.LatencyRun{*l}), sentences: [][]marked{p.answer()}, warnings: p.warnings}
	if l.Status != record.StatusCompleted {
		text := "It did not complete: " + orAbsent(string(l.Status))
		if l.Reason != "" {
			text += " (" + l.Reason + ")"
		}
		b.sentences = append(b.sentences, plain(text+"."))
	}
	b.table = table{Head: append(plain(glanceHeads[:6]...), unmarked("errors"), unmarked("limits")), Left: 1}
	for i := range l.Rows {
		texts, marks := p.glanceTexts(i), p.rowMark(i)
		b.table.Add(append(plain(append(texts[:6:6], texts[7])...), limitsText(marks))...)
		b.table.marks = append(b.table.marks, marks...)
	}
	if dir := shownFolder(l.Dir); dir != "" {
		b.next = recordSteps(dir)
	}
	return b
}

// latencyNote explains the table's columns.
const latencyNote = "Latency runs from the time at which a request was due to the last byte of its answer. Added: over the same load without sidecars, with the 95 % interval; ~ is no significant difference among all rows (paired t tests, corrected by Holm's method). Limits: what limits figures of the row."

// section returns the section of a latency run.
func (p latencyPart) section(id string, draw *drawer) section {
	latency, sent := split(p.requests(), 7)
	title := "latency"
	if p.latency.Name != "" {
		title = p.latency.Name
	}
	s := section{
		ID: id, Title: output.Plain(title + ": request latency, " + orAbsent(string(p.latency.Status))), Facts: p.warnings.facts(p.facts()),
		Tables: p.warnings.grids(latency, sent, p.added(), publishedTable(p.latency), sidecarTable(p.latency), timelineTable(p.latency), p.instrument()),
	}
	for _, c := range []struct {
		id, title string
		of        func(*record.Latency) *float64
	}{
		{"p50", "Latency at p50", p50},
		{"p99", "Latency at p99", p99},
	} {
		s.Charts = append(s.Charts, draw.draw(p.bars(id+"-"+c.id, c.title, c.of)))
	}
	return s
}

// bars draws a quantile by load and variant.
func (p latencyPart) bars(id, title string, of func(*record.Latency) *float64) chart.Bars {
	b := chart.Bars{
		Chart: chart.Chart{ID: id, Title: title, About: "From the time at which a request was due to the last byte of its answer."},
		X:     chart.Axis{Name: "load"}, Y: chart.Axis{Ticks: chart.Seconds}, Format: func(v float64) string { return seconds(&v) },
	}
	var variants []string
	var indexes []int
	for i := range p.latency.Rows {
		b.Groups, variants = appendNew(b.Groups, offered(&p.latency.Rows[i])), appendNew(variants, p.latency.Rows[i].Variant)
		indexes = append(indexes, i)
	}
	b.Table.Head = append([]string{"variant"}, b.Groups...)
	for n, variant := range variants {
		bars, row := chart.BarSeries{Name: variantName(variant), Style: chart.Style{Hue: n}}, []string{variantName(variant)}
		for _, group := range b.Groups {
			var value *float64
			text := absent
			at := slices.IndexFunc(p.latency.Rows, func(r record.LatencyRow) bool { return r.Variant == variant && offered(&r) == group })
			if at >= 0 {
				l := &p.latency.Rows[at].Latency.Latency
				value = of(l)
				text = quantile(l, value)
			}
			bars.Bars, row = append(bars.Bars, chart.One(value)), append(row, text)
		}
		b.Series, b.Table.Rows = append(b.Series, bars), append(b.Table.Rows, row)
	}
	b.LimitedBy = p.warnings.links(p.rowMark(indexes...))
	return b
}

// split divides a table that is too wide for a page: columns from at on go to the second,
// which repeats the columns that identify a row.
func split(t table, at int) (first, second table) {
	first, second = table{Left: t.Left}, table{Left: t.Left}
	if len(t.Head) <= at {
		return t, second
	}
	cut := func(cells []marked) (left, right []marked) {
		return slices.Clone(cells[:at]), slices.Concat(cells[:t.Left+1], cells[at:])
	}
	first.Head, second.Head = cut(t.Head)
	for _, row := range t.Rows {
		left, right := cut(row)
		first.Add(left...)
		second.Add(right...)
	}
	return first, second
}

// limitsCell returns a row's cell in the column of limits.
func (d *warnings) limitsCell(m marks) cell {
	mark := d.cell(m.on("")).Mark
	if mark == nil {
		return cell{Text: "none"}
	}
	return cell{Text: strings.ReplaceAll(mark.Text, ",", ", "), Href: mark.Href}
}

// plainCells returns texts as cells without marks.
func plainCells(texts []string) []cell {
	var cells []cell
	for _, text := range texts {
		cells = append(cells, cell{Text: output.Plain(text)})
	}
	return cells
}
