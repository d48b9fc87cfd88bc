package report

import (
	"fmt"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/output"
)

// marks are the numbers of the reasons that limit a figure, ascending.
type marks []int

// String returns the marks as they follow a figure, as in " [1,3]"; "" if there are
// none.
func (m marks) String() string {
	if len(m) == 0 {
		return ""
	}
	return " [" + strings.Join(strings.Fields(strings.Trim(fmt.Sprint([]int(m)), "[]")), ",") + "]"
}

// on returns a text that has the marks.
func (m marks) on(text string) marked { return marked{text, m} }

// marked is a text of a document: a value with the marks of the reasons that limit it.
// Each renderer prints the marks in its own way.
type marked struct {
	text  string
	marks marks
}

// String returns the text with its marks.
func (m marked) String() string { return m.text + m.marks.String() }

// unmarked returns a text that nothing limits.
func unmarked(text string) marked { return marked{text: text} }

// plain returns several texts without marks.
func plain(texts ...string) []marked {
	all := make([]marked, len(texts))
	for i, text := range texts {
		all[i] = unmarked(text)
	}
	return all
}

// table is an output.Table whose texts have marks.
type table struct {
	Title string // of the part of the report that begins with it; "" = it belongs to the one before
	Head  []marked
	Left  int // how many columns after the first hold words
	Rows  [][]marked
	marks marks // of the rows, where a column states them
}

// Add adds a row.
func (t *table) Add(cells ...marked) { t.Rows = append(t.Rows, cells) }

// AddPlain adds a row that nothing limits.
func (t *table) AddPlain(texts ...string) { t.Add(plain(texts...)...) }

// withoutUnknown returns the table without the columns in which every figure is unknown: a run with
// too few changes has no p99 of them.
func (t table) withoutUnknown() table {
	known := table{Title: t.Title, Left: t.Left}
	var keep []int
	for c := range t.Head {
		if c <= t.Left || len(t.Rows) == 0 || !slices.ContainsFunc(t.Rows, func(row []marked) bool { return c < len(row) && strings.HasPrefix(row[c].text, unknown) }) ||
			slices.ContainsFunc(t.Rows, func(row []marked) bool {
				return c < len(row) && row[c].text != absent && !strings.HasPrefix(row[c].text, unknown)
			}) {
			keep = append(keep, c)
		}
	}
	pick := func(cells []marked) []marked {
		var of []marked
		for _, c := range keep {
			if c < len(cells) {
				of = append(of, cells[c])
			}
		}
		return of
	}
	known.Head = pick(t.Head)
	for _, row := range t.Rows {
		known.Add(pick(row)...)
	}
	return known
}

// printed returns the table with its marks included in the texts.
func (t table) printed() output.Table {
	texts := func(cells []marked) []string {
		all := make([]string, len(cells))
		for i, c := range cells {
			all[i] = c.String()
		}
		return all
	}
	p := output.Table{Head: texts(t.Head), Left: t.Left}
	for _, row := range t.Rows {
		p.Add(texts(row)...)
	}
	return p
}
