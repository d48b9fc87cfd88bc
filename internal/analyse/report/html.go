package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"

	"scaler.mesh/scaler/internal/analyse/report/chart"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

//go:embed page.tmpl
var pageSource string

//go:embed page.css
var pageStyle string

var pageMarkup = template.Must(template.New("page").Parse(pageSource))

// page is an HTML report before it is markup.
type page struct {
	Title       string
	Made        string   // when, and on what
	Answers     [][]cell // paragraphs of sentences
	Glances     []grid
	Notes       []string // below the overview tables
	Thresholds  []grid   // of all runs; nil = there are none
	Requests    []grid   // nil = the runs do not determine any
	Requested   string   // explains them
	Style       template.CSS
	Limits      []limited
	Sections    []section
	Definitions template.HTML // docs/reference/definitions and figures.md
}

// section is a part of a page.
type section struct {
	ID, Title string
	Closed    bool   // only its title is shown until a reader opens it
	Defined   string // the heading of the definitions that explains it; "" = none
	Facts     []namedFact
	Charts    []template.HTML
	Tables    []grid
	Parts     []section
}

// HTML writes runs and latency runs as one page that needs no other file and no
// network. It reads the runs' time lines, distributions and events as well as their
// records; what cannot be read is shown as absent, with the reason.
func HTML(w io.Writer, runs []record.Run, latencies []record.LatencyRun) error {
	runs = withUniqueNames(sorted(runs))
	var d warnings
	for i := range runs {
		d.add(&runs[i])
	}
	var parts []latencyPart
	for i := range latencies {
		parts = append(parts, newLatencyPart(&latencies[i]))
		d.add(parts[i].run)
	}
	definitions, err := definitionsHTML()
	if err != nil {
		return fmt.Errorf("writing runs as HTML: %w", err)
	}
	p := page{
		Title: output.Plain(measured(runs, latencies)), Made: output.Plain(made(runs, latencies)),
		Style: template.CSS(output.PageStyle + pageStyle), Limits: d.limits(len(runs)+len(latencies) > 1), Definitions: definitions,
		Thresholds: d.thresholdGrid(runs),
	}
	p.Requests, p.Requested = requestsGrid(runs)
	for _, paragraph := range append(answers(runs, &d), planeAnswers(runs, &d)...) {
		p.Answers = append(p.Answers, d.cells(paragraph))
	}
	if len(runs) > 0 {
		p.Glances, p.Notes = append(p.Glances, glance(runs, &d)), append(p.Notes, glanceNote(runs))
		if meanings := modeMeanings(runs); meanings != "" {
			p.Notes = append(p.Notes, meanings)
		}
	}
	draw := &drawer{}
	var sections []section
	for i, part := range parts {
		part.warnings = d
		p.Answers = append(p.Answers, d.cells(part.answer()))
		p.Glances = append(p.Glances, part.glance())
		sections = append(sections, part.section(fmt.Sprintf("latency-%d", i+1), draw))
	}
	if len(parts) > 0 {
		p.Notes = append(p.Notes, latencyNote)
	}
	if len(runs) > 1 {
		p.Sections = append(p.Sections, bySize(runs, &d, draw), details(runs, &d))
	}
	for i := range runs {
		r := &runReport{run: &runs[i], warnings: d}
		s := r.section(runID(i), draw)
		s.Closed = len(runs) > 1
		p.Sections = append(p.Sections, s)
	}
	p.Sections = append(p.Sections, sections...)
	if draw.err != nil {
		return fmt.Errorf("writing runs as HTML: %w", draw.err)
	}
	if err := pageMarkup.Execute(w, p); err != nil {
		return fmt.Errorf("writing runs as HTML: %w", err)
	}
	return nil
}

// runCharts draws the charts of one run; their names begin with id.
type runCharts struct {
	*runReport
	id   string
	draw *drawer
}

// links returns links to the reasons that limit the figures at paths.
func (r *runCharts) links(paths []string) []chart.Link {
	return r.warnings.links(r.warnings.markAll([]*record.Run{r.run}, paths...))
}

// drawer draws charts and keeps the first error.
type drawer struct{ err error }

func (d *drawer) draw(c interface{ HTML() (template.HTML, error) }) template.HTML {
	drawn, err := c.HTML()
	if d.err == nil {
		d.err = err
	}
	return drawn
}
