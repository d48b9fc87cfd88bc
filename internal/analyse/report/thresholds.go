package report

import (
	"scaler.mesh/scaler/internal/analyse/compare"
	"scaler.mesh/scaler/pkg/record"
)

// thresholds returns a table of the thresholds of runs' scenarios, with a row for each in each run.
func (d *warnings) thresholds(runs ...*record.Run) table {
	t := table{Head: plain("threshold", "run", "value", "result"), Left: 4}
	for _, run := range runs {
		for _, judged := range compare.Thresholds(run) {
			value, result := unmarked(absent), thresholdWords[judged.Outcome]
			if judged.Value != "" {
				value = d.mark(run, judged.Path, "").on(judged.Value)
			}
			if judged.Why != judged.Value {
				result += ": " + judged.Why
			}
			t.Add(unmarked(judged.Text), unmarked(orAbsent(run.Name)), value, unmarked(result))
		}
	}
	return t
}

// thresholdGrid returns the table of the thresholds of all runs at the head of a page, with the color of each result; nil if there are none.
func (d *warnings) thresholdGrid(runs []record.Run) []grid {
	var outcomes []compare.Outcome
	for i := range runs {
		for _, judged := range compare.Thresholds(&runs[i]) {
			outcomes = append(outcomes, judged.Outcome)
		}
	}
	grids := d.grids(d.thresholds(pointers(runs)...))
	for _, g := range grids {
		for i, row := range append([][]cell{g.Head}, g.Rows...) {
			result := row[3]
			if i > 0 {
				result.Class = thresholdClasses[outcomes[i-1]]
			}
			row[1], row[3] = result, row[1] // which a narrow page shows without scrolling, in place of the run
		}
	}
	return grids
}

// thresholdClasses are the classes of results in the style of a page.
var thresholdClasses = map[compare.Outcome]string{compare.Inside: "met", compare.Beyond: "missed", compare.Undecided: "open", compare.Unknown: "open"}

// thresholdWords are the outcomes of a threshold as a table has them.
var thresholdWords = map[compare.Outcome]string{
	compare.Inside: "met", compare.Beyond: "missed", compare.Undecided: "undecided", compare.Unknown: "unknown",
}
