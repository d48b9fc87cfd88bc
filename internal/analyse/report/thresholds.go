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

// thresholdWords are the outcomes of a threshold as a table has them.
var thresholdWords = map[compare.Outcome]string{
	compare.Inside: "met", compare.Beyond: "missed", compare.Undecided: "undecided", compare.Unknown: "unknown",
}
