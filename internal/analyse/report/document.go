package report

import "scaler.mesh/scaler/internal/output"

// document is a report before it is written: a title, facts, tables, and the reasons
// that the tables' marks refer to.
type document struct {
	title  string
	facts  facts
	tables []table
	notes  []string // below the tables
	limits []limited
}

const limitsTitle = "What limits these figures"

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

// write writes a document for a terminal or as Markdown.
func (d document) write(to *output.Document) {
	to.Title(d.title)
	var facts [][2]string
	for _, f := range d.facts {
		facts = append(facts, [2]string{f.name, f.value.String()})
	}
	to.Facts(facts)
	for _, t := range d.tables {
		if t.Title != "" {
			to.Section(t.Title)
		}
		to.Table(t.printed())
	}
	to.List(d.notes...)
	if len(d.limits) == 0 {
		return
	}
	to.Section(limitsTitle)
	var limits []output.Item
	for i, l := range d.limits {
		limits = append(limits, output.Item{Text: l.text(i + 1), Lines: l.lines()})
	}
	to.Items(limits...)
}
