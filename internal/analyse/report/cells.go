package report

import (
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/analyse/report/chart"
	"scaler.mesh/scaler/internal/output"
)

// cell is a text in a page with at most one mark, which links to the reasons that limit
// the figure.
type cell struct {
	Text   string
	Href   string      // of another place in the page; "" = the text is no link
	Class  string      // in the style, of a result; "" = none
	Mark   *chart.Link // nil = nothing limits it
	limits []int       // numbers of reasons, ascending
}

// grid is a table of a page.
type grid struct {
	Name string
	Left int // how many columns after the first hold words
	Head []cell
	Rows [][]cell
}

// namedFact is a fact of a page.
type namedFact struct {
	Name  string
	Value cell
}

// cell converts a document's text to a cell of a page.
func (d *warnings) cell(m marked) cell {
	c := cell{Text: output.Plain(m.text)}
	c.limit(m.marks...)
	d.finish(&c)
	return c
}

// cells converts several texts of a document.
func (d *warnings) cells(texts []marked) []cell {
	var cells []cell
	for _, text := range texts {
		cells = append(cells, d.cell(text))
	}
	return cells
}

// limit adds reasons to a cell.
func (c *cell) limit(numbers ...int) {
	c.limits = append(c.limits, numbers...)
	slices.Sort(c.limits)
	c.limits = slices.Compact(c.limits)
}

// letters returns the name of a reason in a page: a to z, then aa and so on. A number
// after a figure would be read as a part of it.
func letters(number int) string {
	text := ""
	for n := number; n > 0; n = (n - 1) / 26 {
		text = string(rune('a'+(n-1)%26)) + text
	}
	return text
}

func limitID(number int) string { return "limit-" + letters(number) }

// finish makes the mark of a cell. If there are several reasons, it links to the first.
func (d *warnings) finish(c *cell) {
	c.Mark = nil
	if len(c.limits) == 0 {
		return
	}
	var names, titles []string
	for _, n := range c.limits {
		names, titles = append(names, letters(n)), append(titles, explained(d.reasons[n-1]).title)
	}
	c.Mark = &chart.Link{Href: "#" + limitID(c.limits[0]), Text: strings.Join(names, ","), Label: "limited by: " + strings.Join(titles, "; ")}
}

// links returns links to the reasons of marks, each once, in order.
func (d *warnings) links(m marks) []chart.Link {
	var links []chart.Link
	for _, n := range d.cell(m.on("")).limits {
		links = append(links, d.link(n))
	}
	return links
}

// link leads to a reason.
func (d *warnings) link(n int) chart.Link {
	title := explained(d.reasons[n-1]).title
	return chart.Link{Href: "#" + limitID(n), Text: letters(n), Label: title}
}

// facts converts a document's facts.
func (d *warnings) facts(of facts) []namedFact {
	var cells []namedFact
	for _, f := range of {
		cells = append(cells, namedFact{f.name, d.cell(f.value)})
	}
	return cells
}

// grids converts a document's tables, without those that have no rows.
func (d *warnings) grids(tables ...table) []grid {
	var grids []grid
	for _, t := range tables {
		if len(t.Rows) > 0 {
			grids = append(grids, d.grid(t))
		}
	}
	return grids
}

func (d *warnings) grid(t table) grid {
	g := grid{Left: t.Left}
	g.Head = d.cells(t.Head)
	g.Name = g.Head[0].Text
	for _, texts := range t.Rows {
		g.Rows = append(g.Rows, d.cells(texts))
	}
	for n := range d.reasons {
		g.raise(n + 1)
	}
	for _, cells := range append([][]cell{g.Head}, g.Rows...) {
		for i := range cells {
			d.finish(&cells[i])
		}
	}
	return g
}

// raise moves a reason that limits all figures of a table, a column or a row to its
// heading.
func (g *grid) raise(number int) {
	var all []*cell
	columns := make([][]*cell, len(g.Head))
	rows := make([][]*cell, len(g.Rows))
	for r, cells := range g.Rows {
		for c := g.Left + 1; c < len(cells) && c < len(g.Head); c++ {
			if figure := &cells[c]; figure.Text != absent && figure.Text != "" {
				all = append(all, figure)
				columns[c] = append(columns[c], figure)
				rows[r] = append(rows[r], figure)
			}
		}
	}
	raised(&g.Head[0], all, number)
	for c, figures := range columns {
		raised(&g.Head[c], figures, number)
	}
	for r, figures := range rows {
		if len(figures) > 0 {
			raised(&g.Rows[r][0], figures, number)
		}
	}
}

// raised moves a reason from figures to their heading if it limits all of them and
// there are several.
func raised(heading *cell, figures []*cell, number int) {
	limited := func(c *cell) bool { return slices.Contains(c.limits, number) }
	if len(figures) < 2 || slices.ContainsFunc(figures, func(c *cell) bool { return !limited(c) }) {
		return
	}
	for _, c := range figures {
		c.limits = slices.DeleteFunc(c.limits, func(n int) bool { return n == number })
	}
	heading.limit(number)
}
