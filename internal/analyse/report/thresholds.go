package report

import (
	"scaler.mesh/scaler/internal/analyse/compare"
	"scaler.mesh/scaler/pkg/record"
)

// thresholds returns a table of the thresholds of runs' scenarios, with a row for each in each run.
func (d *doubts) thresholds(runs ...*record.Run) table {
	t := table{Head: plain("threshold", "run", "value", "result"), Left: 4}
	for _, run := range runs {
		for _, text := range run.Scenario.Thresholds {
			value := unmarked(absent)
			var result string
			o, err := compare.ParseObjective(text)
			if err != nil { // of a scaler that has other figures
				result = thresholdWords[compare.Unknown] + ": " + err.Error()
			} else {
				outcome, why := o.Judge(run)
				if v := o.Of(run).Value; v != nil {
					value = d.mark(run, o.Path, "").on(o.Print(*v))
				}
				if result = thresholdWords[outcome]; why != value.text {
					result += ": " + why
				}
			}
			t.Add(unmarked(text), unmarked(orAbsent(run.Name)), value, unmarked(result))
		}
	}
	return t
}

// thresholdWords are the outcomes of a threshold as a table has them.
var thresholdWords = map[compare.Outcome]string{
	compare.Inside: "met", compare.Beyond: "missed", compare.Undecided: "undecided", compare.Unknown: "unknown",
}
