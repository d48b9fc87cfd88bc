package output

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
)

func TestTable(t *testing.T) {
	for _, tt := range []struct {
		name           string
		table          Table
		text, markdown string
	}{
		{"words left, figures right", Table{Head: []string{"what", "", "cores", "verdict", ""}, Left: 1, Rows: [][]string{
			{"istiod", "steady", "0.01", "1.5 s", "~"}, {"µ", "", "12", "-", "higher"},
		}}, `
WHAT              CORES   VERDICT
istiod   steady    0.01     1.5 s   ~
µ                    12         -   higher
`, `
| what |  | cores | verdict |  |
| --- | --- | ---: | ---: | --- |
| istiod | steady | 0.01 | 1.5 s | \~ |
| µ |  | 12 | - | higher |
`},
		{"no rows", Table{Head: []string{"run", "pods"}}, `
RUN   PODS
`, `
| run | pods |
| --- | ---: |
`},
		{"harmless", Table{Head: []string{"a|b"}, Rows: [][]string{{"c\n\x1b[31m`d`"}}}, `
A|B
c  [31m` + "`d`" + `
`, `
| a\|b |
| --- |
| c  \[31m\` + "`d\\`" + ` |
`},
	} {
		if diff := cmp.Diff(tt.text, "\n"+tt.table.Text()); diff != "" {
			t.Errorf("%s, text (-want +got):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.markdown, "\n"+tt.table.Markdown()); diff != "" {
			t.Errorf("%s, Markdown (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestTableWithoutHead(t *testing.T) {
	facts := Table{Left: 1}
	facts.Add("mesh", "20 pods")
	facts.Add("burst", "")
	if got, want := facts.Text(), "mesh    20 pods\nburst\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Whatever is in its cells, a table stays a table, and the cells are shown as they are.
func FuzzTable(f *testing.F) {
	dataCell := regexp.MustCompile(`(?s)<td[^>]*>(.*?)</td>`)
	for _, cell := range []string{"", "|", `\|`, "a|b <b>`*x*`", "[x](y)\n| a |", "~~a~~", "&lt;", "&copy;", "a  b", "\x1b[2J"} {
		f.Add(cell)
	}
	f.Fuzz(func(t *testing.T, cell string) {
		table := Table{Head: []string{"a", cell}, Rows: [][]string{{cell, "b"}, {"c", cell}}}
		if lines := strings.Count(table.Text(), "\n"); lines != 3 {
			t.Errorf("%d lines of text:\n%s", lines, table.Text())
		}
		var page strings.Builder
		if err := goldmark.New(goldmark.WithExtensions(extension.Table)).Convert([]byte(table.Markdown()), &page); err != nil {
			t.Fatal(err)
		}
		if cells := strings.Count(page.String(), "<td") + strings.Count(page.String(), "<th>") + strings.Count(page.String(), "<th "); cells != 6 {
			t.Errorf("%d cells are read of:\n%s", cells, table.Markdown())
		}
		first := dataCell.FindStringSubmatch(page.String())
		if first == nil {
			t.Fatalf("no cell is read of:\n%s", table.Markdown())
		}
		if got, want := html.UnescapeString(first[1]), strings.TrimSpace(Plain(cell)); got != want {
			t.Errorf("%q is read as %q, written as:\n%s", want, got, table.Markdown())
		}
	})
}
