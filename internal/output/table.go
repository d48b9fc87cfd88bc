package output

import (
	"strings"
	"unicode/utf8"
)

// Table is rows of cells below the names of their columns. What is in the cells need
// not be harmless: Text and Markdown make it so.
type Table struct {
	Head []string // the columns' names; nil is a table without them, for Text alone
	// Left is how many columns after the first hold words, and align left as it
	// does; the zero value is none. A column without a name holds words too. The
	// others hold figures and align right.
	Left int
	Rows [][]string // each with a cell for each column
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

func (t *Table) holdsWords(column int) bool {
	return column <= t.Left || column < len(t.Head) && t.Head[column] == ""
}

// gap is what stands between two columns of text.
const gap = "   "

// Text is the table as aligned columns, the names in capitals.
func (t Table) Text() string {
	rows := make([][]string, 0, 1+len(t.Rows))
	if t.Head != nil {
		head := make([]string, len(t.Head))
		for i, name := range t.Head {
			head[i] = Plain(strings.ToUpper(name))
		}
		rows = append(rows, head)
	}
	for _, row := range t.Rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = Plain(cell)
		}
		rows = append(rows, cells)
	}
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line.WriteString(gap)
			}
			if t.holdsWords(i) {
				line.WriteString(cell + padding)
			} else {
				line.WriteString(padding + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	return b.String()
}

// Markdown is the table as GitHub reads it.
func (t Table) Markdown() string {
	var b strings.Builder
	line := func(cells []string) {
		b.WriteString("|")
		for _, cell := range cells {
			b.WriteString(" " + Escaped(cell) + " |")
		}
		b.WriteString("\n")
	}
	line(t.Head)
	b.WriteString("|")
	for i := range t.Head {
		if t.holdsWords(i) {
			b.WriteString(" --- |")
		} else {
			b.WriteString(" ---: |")
		}
	}
	b.WriteString("\n")
	for _, row := range t.Rows {
		line(row)
	}
	return b.String()
}
