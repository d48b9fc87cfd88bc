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

// as prints a sheet as aligned columns, or as GitHub shows it.
func (s sheet) as(markdown bool) string {
	escaped, heading, partHeading, item := output.Plain, "", "", ""
	if markdown {
		escaped, heading, partHeading, item = output.Escaped, "### ", "#### ", "- "
	}
	var b strings.Builder
	list := func(before string, lines []string) {
		for i, line := range lines {
			if i == 0 {
				b.WriteString(before)
			}
			b.WriteString(item + escaped(line) + "\n")
		}
	}
	b.WriteString(heading + escaped(s.title) + "\n")
	list("\n", s.lines)
	for _, p := range s.parts {
		title, gap := strings.ToUpper(escaped(p.title)), ""
		if markdown {
			title, gap = escaped(p.title), "\n"
		}
		b.WriteString("\n" + partHeading + title + "\n")
		list(gap, p.lines)
		for _, t := range p.tables {
			text := t.Text
			if markdown {
				text = t.Markdown
			}
			b.WriteString("\n" + text())
		}
		list("\n", p.after)
	}
	return b.String()
}
