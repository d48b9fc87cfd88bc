package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"scaler.mesh/scaler/docs"
	"scaler.mesh/scaler/pkg/output"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/report/chart"
)

//go:embed page.tmpl
var pageSource string

//go:embed page.css
var pageStyle string

var pageMarkup = template.Must(template.New("page").Parse(pageSource))

// page is an HTML report before it is markup.
type page struct {
	Title     string
	Headlines [][]piece
	Style     template.CSS
	Sections  []section
	// Definitions is docs/reference/definitions.md.
	Definitions template.HTML
}

// section is a part of a page.
type section struct {
	ID, Title string
	Closed    bool   // it is opened by those who want it
	Defined   string // the heading of the definitions that explains it; "" = none
	Facts     []told
	Warnings  []warned
	Charts    []template.HTML
	Tables    []grid
	Parts     []section
}

// told is a fact.
type told struct {
	Name  string
	Value []piece
}

// warned is one warning.
type warned struct {
	Number      int
	About, Text string
}

// grid is a table whose cells are cut into text and marks.
type grid struct {
	Name string
	Left int
	Head [][]piece
	Rows [][][]piece
}

// piece is text, or the mark of a warning when Number is not 0.
type piece struct {
	Text   string
	Number int
}

// HTML writes runs as one page that carries everything with it. Beside the records
// it reads the runs' time lines, distributions and events; what of these cannot be
// read is shown as absent, with the reason.
func HTML(w io.Writer, runs []record.Run) error {
	runs = apartByName(sorted(runs))
	var d doubts
	for i := range runs {
		d.number(&runs[i])
	}
	definitions, err := definitionsHTML(docs.Definitions)
	if err != nil {
		return fmt.Errorf("writing runs as HTML: %w", err)
	}
	p := page{Title: output.Many(len(runs), "run"), Style: template.CSS(pageStyle), Definitions: definitions}
	if len(runs) == 1 {
		p.Title = runDocument(&runs[0]).title
	}
	for _, line := range headlines(runs, &d) {
		p.Headlines = append(p.Headlines, d.pieces(output.Plain(line)))
	}
	draw := &drawer{}
	if len(runs) > 1 {
		p.Sections = append(p.Sections, overview(runs, &d, draw))
	}
	for i := range runs {
		r := &runReport{run: &runs[i], doubts: d}
		s := r.section(fmt.Sprintf("run-%d", i+1), draw)
		s.Closed = len(runs) > 1
		p.Sections = append(p.Sections, s)
	}
	if draw.err != nil {
		return fmt.Errorf("writing runs as HTML: %w", draw.err)
	}
	if err := pageMarkup.Execute(w, p); err != nil {
		return fmt.Errorf("writing runs as HTML: %w", err)
	}
	return nil
}

// drawer draws charts; the first error stays with it.
type drawer struct{ err error }

func (d *drawer) draw(c interface{ HTML() (template.HTML, error) }) template.HTML {
	drawn, err := c.HTML()
	if d.err == nil {
		d.err = err
	}
	return drawn
}

var markPattern = regexp.MustCompile(` \[([0-9]+(?:,[0-9]+)*)\]`)

// pieces cuts text at its marks. What only looks like one, of a warning that there
// is not, stays text.
func (d *doubts) pieces(text string) []piece {
	var cut []piece
	from := 0
	for _, m := range markPattern.FindAllStringSubmatchIndex(text, -1) {
		var marks []piece
		for number := range strings.SplitSeq(text[m[2]:m[3]], ",") {
			n, err := strconv.Atoi(number)
			if err != nil || n < 1 || n > len(d.numbered) {
				marks = nil
				break
			}
			marks = append(marks, piece{Number: n})
		}
		if marks == nil {
			continue
		}
		if from < m[0] {
			cut = append(cut, piece{Text: text[from:m[0]]})
		}
		cut, from = append(cut, marks...), m[1]
	}
	if from < len(text) {
		cut = append(cut, piece{Text: text[from:]})
	}
	return cut
}

// links are the warnings that marks name, each once, in order.
func (d *doubts) links(marks string) []chart.Link {
	numbers := map[int]bool{}
	for _, p := range d.pieces(marks) {
		numbers[p.Number] = true
	}
	var links []chart.Link
	for _, n := range slices.Sorted(maps.Keys(numbers)) {
		links = append(links, chart.Link{Href: fmt.Sprintf("#warning-%d", n), Text: fmt.Sprintf("[%d]", n), Label: fmt.Sprintf("warning %d", n)})
	}
	return links
}

// facts are facts with their marks.
func (d *doubts) facts(facts []fact) []told {
	var cut []told
	for _, f := range facts {
		cut = append(cut, told{f.name, d.pieces(output.Plain(f.value))})
	}
	return cut
}

// grids are tables of a document, without those that have no rows.
func (d *doubts) grids(tables ...output.Table) []grid {
	var grids []grid
	for _, t := range tables {
		if len(t.Rows) == 0 {
			continue
		}
		g := grid{Left: t.Left, Name: markPattern.ReplaceAllString(output.Plain(t.Head[0]), "")}
		for _, cell := range t.Head {
			g.Head = append(g.Head, d.pieces(output.Plain(cell)))
		}
		for _, row := range t.Rows {
			var cells [][]piece
			for _, cell := range row {
				cells = append(cells, d.pieces(output.Plain(cell)))
			}
			g.Rows = append(g.Rows, cells)
		}
		grids = append(grids, g)
	}
	return grids
}
