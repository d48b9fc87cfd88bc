package report

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// document is a report before it takes a form: a title, facts, tables, and the
// warnings that the tables' marks refer to. Texts in it come from records, and
// so from anywhere; the forms make them harmless.
type document struct {
	title    string
	facts    []fact
	tables   []table
	warnings []string
}

// fact is one line of what holds for all the tables.
type fact struct{ name, value string }

// table has a head for each column. The first column and left more are words;
// the others are figures and align right.
type table struct {
	head []string
	left int
	rows [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// text prints a document as aligned columns.
func (d document) text() string {
	var b strings.Builder
	b.WriteString(plain(d.title) + "\n")
	if len(d.facts) > 0 {
		facts := table{left: 1}
		for _, f := range d.facts {
			facts.add(f.name, f.value)
		}
		b.WriteString("\n")
		facts.text(&b)
	}
	for _, t := range d.tables {
		b.WriteString("\n")
		t.text(&b)
	}
	if len(d.warnings) > 0 {
		b.WriteString("\nWARNINGS\n")
		for _, w := range d.warnings {
			b.WriteString(plain(w) + "\n")
		}
	}
	return b.String()
}

// gap is what stands between two columns of text.
const gap = "   "

func (t table) text(b *strings.Builder) {
	rows := t.rows
	if t.head != nil {
		head := make([]string, len(t.head))
		for i, name := range t.head {
			head[i] = strings.ToUpper(name)
		}
		rows = append([][]string{head}, rows...)
	}
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(plain(cell)))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			cell = plain(cell)
			padding := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				line.WriteString(gap)
			}
			if i <= t.left {
				line.WriteString(cell + padding)
			} else {
				line.WriteString(padding + cell)
			}
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// markdown prints a document as GitHub shows it.
func (d document) markdown() string {
	var b strings.Builder
	b.WriteString("### " + escaped(d.title) + "\n")
	if len(d.facts) > 0 {
		b.WriteString("\n")
	}
	for _, f := range d.facts {
		b.WriteString("- " + escaped(f.name) + ": " + escaped(f.value) + "\n")
	}
	for _, t := range d.tables {
		b.WriteString("\n")
		t.markdown(&b)
	}
	if len(d.warnings) > 0 {
		b.WriteString("\n**Warnings**\n\n")
		for _, w := range d.warnings {
			b.WriteString("- " + escaped(w) + "\n")
		}
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
		if i <= t.left {
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
	`\`, `\\`, "|", `\|`, "`", "\\`", "*", `\*`, "_", `\_`, "<", "&lt;", "[", `\[`, "]", `\]`)

// escaped is s as Markdown shows it unchanged.
func escaped(s string) string { return markdownEscapes.Replace(plain(s)) }
