package compare

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// sheet is what is printed, before it takes a form. Texts in it come from records
// and the command line, and so from anywhere; the forms make them harmless.
type sheet struct {
	title string
	lines []string
	parts []part
}

// part is a section of a sheet: lines, tables, and lines after them.
type part struct {
	title  string
	lines  []string
	tables []table
	after  []string
}

// table has a head for each column. The first column and left more are words, as
// is a last one without a head; the others align right.
type table struct {
	head []string
	left int
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// isWords says whether a column aligns left.
func (t *table) isWords(column int) bool { return column <= t.left || t.head[column] == "" }

// text prints a sheet as aligned columns.
func (s sheet) text() string {
	var b strings.Builder
	b.WriteString(plain(s.title) + "\n")
	block := func(lines []string) {
		for i, line := range lines {
			if i == 0 {
				b.WriteString("\n")
			}
			b.WriteString(plain(line) + "\n")
		}
	}
	block(s.lines)
	for _, p := range s.parts {
		b.WriteString("\n" + strings.ToUpper(plain(p.title)) + "\n")
		for _, line := range p.lines {
			b.WriteString(plain(line) + "\n")
		}
		for _, t := range p.tables {
			b.WriteString("\n")
			t.text(&b)
		}
		block(p.after)
	}
	return b.String()
}

func (t table) text(b *strings.Builder) {
	head := make([]string, len(t.head))
	for i, name := range t.head {
		head[i] = strings.ToUpper(name)
	}
	rows := append([][]string{head}, t.rows...)
	widths := make([]int, len(head))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(plain(cell)))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			cell = plain(cell)
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line.WriteString("   ")
			}
			if t.isWords(i) {
				line.WriteString(cell + padding)
			} else {
				line.WriteString(padding + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// markdown prints a sheet as GitHub shows it.
func (s sheet) markdown() string {
	var b strings.Builder
	b.WriteString("### " + escaped(s.title) + "\n")
	block := func(lines []string) {
		for i, line := range lines {
			if i == 0 {
				b.WriteString("\n")
			}
			b.WriteString("- " + escaped(line) + "\n")
		}
	}
	block(s.lines)
	for _, p := range s.parts {
		b.WriteString("\n#### " + escaped(p.title) + "\n")
		block(p.lines)
		for _, t := range p.tables {
			b.WriteString("\n")
			t.markdown(&b)
		}
		block(p.after)
	}
	return b.String()
}

func (t table) markdown(b *strings.Builder) {
	line := func(cells []string) {
		b.WriteString("|")
		for _, cell := range cells {
			b.WriteString(" " + escaped(cell) + " |")
		}
		b.WriteString("\n")
	}
	line(t.head)
	b.WriteString("|")
	for i := range t.head {
		if t.isWords(i) {
			b.WriteString(" --- |")
		} else {
			b.WriteString(" ---: |")
		}
	}
	b.WriteString("\n")
	for _, row := range t.rows {
		line(row)
	}
}

// plain is s on one line, with nothing in it that a terminal would obey.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

var markdownEscapes = strings.NewReplacer(
	`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "<", "&lt;", "[", `\[`, "]", `\]`, "~", `\~`)

// escaped is s as Markdown shows it unchanged.
func escaped(s string) string { return markdownEscapes.Replace(plain(s)) }
