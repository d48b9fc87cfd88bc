package report

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/analyse/capacity"
	"scaler.mesh/scaler/internal/analyse/compare"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// brief is the short form of a report: the sentences of the page for one size and mode, or a
// row for each of several; what limits the figures; and commands for the next steps.
type brief struct {
	title     string
	sentences [][]marked // in paragraphs
	table     table      // before the sentences, where rows say more
	warnings  warnings
	next      output.Table
}

// briefOf makes the answer of sorted runs.
func briefOf(runs []record.Run) brief {
	if len(runs) == 0 {
		return brief{title: "no runs"}
	}
	runs = withUniqueNames(runs)
	a := brief{title: measured(runs, nil)}
	for i := range runs {
		a.warnings.add(&runs[i])
	}
	rows := glanceRows(runs)
	if len(rows) > 1 {
		a.table = glanceTable(rows, &a.warnings)
		a.sentences = planeAnswers(runs, &a.warnings)
		if slices.ContainsFunc(rows, func(r glanced) bool { return len(r.runs) > 1 }) {
			a.sentences = append(a.sentences, plain("Each figure is the mean of its runs; ± is how far the one that differs most is from it."))
		}
	} else {
		a.sentences = answers(runs, &a.warnings)
		if len(runs) == 1 && runs[0].Status == record.StatusCompleted {
			last := len(a.sentences) - 1
			a.sentences[last] = append(a.sentences[last], plain(oneRun(&runs[0]))...)
		}
	}
	for _, t := range a.warnings.thresholdSentences(runs) {
		a.sentences = append(a.sentences, []marked{t})
	}
	a.next = nextSteps(runs)
	return a
}

// oneRun states that the spread is not known, and the real time of a run that was slowed down.
func oneRun(r *record.Run) string {
	text := "It is one run: how much runs differ is not known (--repeats)."
	if k := r.Slowdown(); k > 1 && r.Finished != nil {
		text += fmt.Sprintf(" Its times are modelled: all of it took %s of real time, slowed down %g times.", seconds(new(r.Finished.Sub(r.Started).Seconds())), k)
	}
	return text
}

// text prints an answer in lines of at most this width.
func (b brief) text(width int) string {
	a := output.NewAnswer(b.title, width)
	if len(b.table.Rows) > 0 {
		a.Block(b.table.printed().Lines()...)
	}
	var paragraphs []string
	for _, sentences := range b.sentences {
		var texts []string
		for _, s := range sentences {
			texts = append(texts, s.String())
		}
		paragraphs = append(paragraphs, strings.Join(texts, " "))
	}
	a.Paragraphs(paragraphs...)
	next := b.next.Lines() // a command is not broken
	a.Block(b.limits(width, a.Room()-len(next)-min(1, len(next))-1)...)
	for len(next) > 2 && len(next) >= a.Room() { // the records come first
		next = next[:len(next)-1]
	}
	a.Block(next...)
	return a.String()
}

// limits states in words what limits the figures of the answer: what the most limiting mean, as far
// as there is room, and the titles of the others, with how much if there is room for that.
func (b brief) limits(width, room int) []string {
	var marked marks
	for _, s := range slices.Concat(b.sentences...) {
		marked = append(marked, s.marks...)
	}
	marked = append(marked, b.table.marks...)
	var names, titles []string // titles have extents
	var meanings [][]string
	others := 0
	for i, r := range b.warnings.reasons {
		if !slices.Contains(marked, i+1) {
			others++
			continue
		}
		e := explained(r)
		title := fmt.Sprintf("[%d] %s", i+1, e.title)
		names = append(names, title)
		if extent := e.extentOf(b.warnings.of(r)); extent != "" {
			title += " (" + extent + ")"
		}
		titles = append(titles, title)
		meanings = append(meanings, output.Wrap(strings.TrimSuffix(title+". "+e.meaning, " "), width, "    "))
	}
	tail := func(titles []string) []string {
		text := ""
		switch {
		case len(titles) > 0 && others > 0:
			text = fmt.Sprintf("Limited by %s; other figures by %s more (-o wide).", strings.Join(titles, ", "), output.Many(others, "reason"))
		case len(titles) > 0:
			text = fmt.Sprintf("Limited by %s (-o wide).", strings.Join(titles, ", "))
		case others > 0:
			text = fmt.Sprintf("Other figures are limited by %s (-o wide).", output.Many(others, "reason"))
		}
		return output.Wrap(text, width, "")
	}
	for n := len(titles); n >= 0; n-- {
		if lines := slices.Concat(slices.Concat(meanings[:n]...), tail(titles[n:])); len(lines) <= room {
			return lines
		}
	}
	return tail(names)
}

// extentOf formats the range of the most important value of warnings with a reason; "" if it has
// none.
func (e explanation) extentOf(warnings []runWarning) string {
	var values []float64
	var components []string
	for _, n := range warnings {
		if v, ok := n.warning.Values[e.value]; ok && e.extent != "" {
			values = append(values, v)
		}
		if n.warning.Component != "" {
			components = appendNew(components, n.warning.Component)
		}
	}
	if values == nil {
		return ""
	}
	text := e.rangeOf(values)
	if n := len(components); n > 0 && n <= 2 {
		text = listed(components) + ": " + text
	}
	return output.Plain(text)
}

// thresholdSentences states for each threshold of the runs' scenarios whether it is met; those that all runs
// meet share a sentence.
func (d *warnings) thresholdSentences(runs []record.Run) []marked {
	var met []string
	var open []marked
	for i := range runs {
		r := &runs[i]
		for _, t := range compare.Thresholds(r) {
			if t.Outcome == compare.Inside {
				met = appendNew(met, t.Text)
				continue
			}
			open = append(open, d.mark(r, t.Path, "").on(fmt.Sprintf("Threshold %s of %s: %s, %s.", t.Text, orAbsent(r.Name), thresholdWords[t.Outcome], t.Why)))
		}
	}
	if len(met) > 0 && len(open) == 0 {
		return plain("Thresholds met: " + listed(met) + ".")
	}
	return open
}

// nextSteps returns the commands that a reader may want next; none if the records are not on disk.
func nextSteps(runs []record.Run) (next output.Table) {
	dir := runs[0].Dir
	if len(runs) > 1 {
		dir = commonParent(runs)
	}
	if dir = shownFolder(dir); dir == "" {
		return next
	}
	next = recordSteps(dir)
	var sizes []int
	for i := range runs {
		if runs[i].Status == record.StatusCompleted {
			sizes = append(sizes, runs[i].PodCount())
		}
	}
	slices.Sort(sizes)
	switch n := len(slices.Compact(sizes)); {
	case n >= sizesNeeded && runs[0].Mesh != nil:
		next.Add("scaler plan "+dir+" --scale N", "a forecast of N copies")
	case n >= sizesNeeded:
		next.Add("scaler plan "+dir+" --pods N", "a forecast of N pods")
	case n > 0:
		ask, sizes := runs[0].Scenario, []int{100, 200, 400}
		ask.Instrument.Dilation = scenario.Dilation{} // larger meshes may need another factor
		if ask.Mesh.File != "" {
			sizes = []int{1, 2, 4}
		}
		next.Add(capacity.RolloutCommand(ask, sizes), fmt.Sprintf("%d sizes or more, for a forecast (scaler plan)", sizesNeeded))
	}
	return next
}

// recordSteps returns the commands that print all of the records in a folder.
func recordSteps(dir string) output.Table {
	next := output.Table{Left: 1}
	next.Add("scaler report "+dir+" -o wide", "the tables")
	next.Add("scaler report "+dir+" -o html >page.html", "the page, with charts")
	return next
}

// shownFolder returns a folder of records as an argument of a command; "" if there is none.
func shownFolder(dir string) string {
	if dir == "" {
		return ""
	}
	if here, err := os.Getwd(); err == nil {
		if below, err := filepath.Rel(here, dir); err == nil && filepath.IsLocal(below) {
			dir = below
		}
	}
	return output.Argument(filepath.Clean(dir))
}
