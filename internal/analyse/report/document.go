package report

import (
	"strings"

	"scaler.mesh/scaler/internal/output"
)

// document is a report before it is rendered: a title, facts, tables, and the warnings
// that the tables' marks refer to. Its texts come from records and are not trusted; the
// renderers escape them.
type document struct {
	title    string
	facts    []fact
	tables   []table
	warnings []string
}

// fact holds for all the tables.
type fact struct {
	name  string
	value marked
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
		b.WriteString("\n")
		b.WriteString(t.printed().Text())
	}
	if len(d.warnings) > 0 {
		b.WriteString("\nWARNINGS\n")
		for _, w := range d.warnings {
			b.WriteString(output.Plain(w) + "\n")
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
		b.WriteString("\n")
		b.WriteString(t.printed().Markdown())
	}
	if len(d.warnings) > 0 {
		b.WriteString("\n**Warnings**\n\n")
		for _, w := range d.warnings {
			b.WriteString("- " + output.Escaped(w) + "\n")
		}
	}
	return b.String()
}
