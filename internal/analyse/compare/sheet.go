package compare

import (
	"strings"

	"scaler.mesh/scaler/internal/output"
)

// sheet is the printed result before it is rendered. Its texts come from records and the
// command line and may contain anything; the renderers escape them.
type sheet struct {
	title string
	lines []string
	parts []part
}

// part is a section of a sheet: lines, tables, and lines after them.
type part struct {
	title  string
	lines  []string
	tables []output.Table
	after  []string
}

// text prints a sheet as aligned columns.
func (s sheet) text() string {
	var b strings.Builder
	b.WriteString(output.Plain(s.title) + "\n")
	block := func(lines []string) {
		for i, line := range lines {
			if i == 0 {
				b.WriteString("\n")
			}
			b.WriteString(output.Plain(line) + "\n")
		}
	}
	block(s.lines)
	for _, p := range s.parts {
		b.WriteString("\n" + strings.ToUpper(output.Plain(p.title)) + "\n")
		for _, line := range p.lines {
			b.WriteString(output.Plain(line) + "\n")
		}
		for _, t := range p.tables {
			b.WriteString("\n")
			b.WriteString(t.Text())
		}
		block(p.after)
	}
	return b.String()
}

// markdown prints a sheet as GitHub shows it.
func (s sheet) markdown() string {
	var b strings.Builder
	b.WriteString("### " + output.Escaped(s.title) + "\n")
	block := func(lines []string) {
		for i, line := range lines {
			if i == 0 {
				b.WriteString("\n")
			}
			b.WriteString("- " + output.Escaped(line) + "\n")
		}
	}
	block(s.lines)
	for _, p := range s.parts {
		b.WriteString("\n#### " + output.Escaped(p.title) + "\n")
		block(p.lines)
		for _, t := range p.tables {
			b.WriteString("\n")
			b.WriteString(t.Markdown())
		}
		block(p.after)
	}
	return b.String()
}
