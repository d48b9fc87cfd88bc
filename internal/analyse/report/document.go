package report

import (
	"strings"

	"scaler.mesh/scaler/internal/output"
)

// document is a report before it is rendered: a title, facts, tables, and the reasons
// that the tables' marks refer to. Its texts come from records and are not trusted; the
// renderers escape them.
type document struct {
	title  string
	facts  facts
	tables []table
	notes  []string // below the tables
	limits []limited
}

const (
	limitsTitle = "What limits these figures"
	limitsWidth = 120 // of the lines below it
)

// fact holds for all the tables.
type fact struct {
	name  string
	value marked
}

// facts are the facts at the head of a document, in display order.
type facts []fact

// add adds a fact that nothing limits, unless its text is empty.
func (f *facts) add(name, text string) {
	if text != "" {
		*f = append(*f, fact{name, unmarked(text)})
	}
}

// add adds the tables that have rows.
func (d *document) add(tables ...table) {
	for _, t := range tables {
		if len(t.Rows) > 0 {
			d.tables = append(d.tables, t)
		}
	}
}

// as prints a document for reading, for Markdown or as text.
func (d document) as(markdown bool) string {
	if markdown {
		return d.markdown()
	}
	return d.text()
}

// text prints a document as aligned columns.
func (d document) text() string {
	var b strings.Builder
	b.WriteString(output.Plain(d.title) + "\n")
	if len(d.facts) > 0 {
		facts := output.Table{Left: 1}
		for _, f := range d.facts {
			facts.Add(f.name, f.value.String())
		}
		b.WriteString("\n")
		b.WriteString(facts.Text())
	}
	for _, t := range d.tables {
		if t.Title != "" {
			b.WriteString("\n" + output.Plain(t.Title) + "\n")
		}
		b.WriteString("\n")
		b.WriteString(t.printed().Text())
	}
	for i, n := range d.notes {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString(output.Plain(n) + "\n")
	}
	if len(d.limits) > 0 {
		b.WriteString("\n" + limitsTitle + "\n")
	}
	for i, l := range d.limits {
		b.WriteString("\n" + strings.Join(output.Wrap(l.text(i+1), limitsWidth, "    "), "\n") + "\n")
		for _, line := range l.lines() {
			b.WriteString("    " + strings.Join(output.Wrap(line, limitsWidth-4, "      "), "\n") + "\n")
		}
	}
	return b.String()
}

// markdown prints a document as GitHub shows it.
func (d document) markdown() string {
	var b strings.Builder
	b.WriteString("### " + output.Escaped(d.title) + "\n")
	if len(d.facts) > 0 {
		b.WriteString("\n")
	}
	for _, f := range d.facts {
		b.WriteString("- " + output.Escaped(f.name) + ": " + output.Escaped(f.value.String()) + "\n")
	}
	for _, t := range d.tables {
		if t.Title != "" {
			b.WriteString("\n**" + output.Escaped(t.Title) + "**\n")
		}
		b.WriteString("\n")
		b.WriteString(t.printed().Markdown())
	}
	for i, n := range d.notes {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString("- " + output.Escaped(n) + "\n")
	}
	if len(d.limits) > 0 {
		b.WriteString("\n**" + limitsTitle + "**\n\n")
	}
	for i, l := range d.limits {
		b.WriteString("- " + output.Escaped(l.text(i+1)) + "\n")
		for _, line := range l.lines() {
			b.WriteString("  - " + output.Escaped(line) + "\n")
		}
	}
	return b.String()
}
