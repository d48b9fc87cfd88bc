package output

import (
	"strings"
	"unicode/utf8"
)

// Table is a table with named columns. Its texts may contain anything: Text and Markdown
// escape them.
type Table struct {
	Head []string // the columns' names; nil means a table without them, only for Text
	// Left is the number of columns after the first that contain words and are
	// left-aligned like it; 0 means none. A column without a name contains words too. The
	// other columns contain figures and are right-aligned.
	Left int
	Rows [][]string // each with one text per column
}

// Add adds a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

func (t *Table) holdsWords(column int) bool {
	return column <= t.Left || column < len(t.Head) && t.Head[column] == ""
}

// gap separates two columns of text.
const gap = "   "

// Text returns the table as aligned columns, the names in capitals.
func (t Table) Text() string {
	var b strings.Builder
	for _, line := range t.Lines() {
		b.WriteString(line + "\n")
	}
	return b.String()
}

// Lines returns the lines of Text.
func (t Table) Lines() []string {
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
	lines := make([]string, 0, len(rows))
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
		lines = append(lines, strings.TrimRight(line.String(), " "))
	}
	return lines
}

// Markdown returns the table in GitHub's syntax.
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
