package limits

import (
	"fmt"
	"io"
	"time"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/series"
)

// FileName is the name of a result in its folder.
const FileName = "limits.json"

// Kind is the kind of a result, as in its JSON.
const Kind = "Limit"

// A search that is complete ended in one of these ways; see also [series.Interrupted] and [series.Failed].
const (
	Found         series.Status = "found"         // the limit is in the bracket, which is as narrow as was asked for
	NotMet        series.Status = "notMet"        // the objective is not met even at the easiest value
	MetThroughout series.Status = "metThroughout" // it is met even at the hardest
	MaxRunsDone   series.Status = "maxRuns"       // as many runs were done as were allowed; the bracket is wider
	Undecided     series.Status = "undecided"     // a run did not decide the objective; see its Why
)

// Outcome is a run's answer to whether the objective is met.
type Outcome string

// The outcomes.
const (
	Met     Outcome = "met"
	Missed  Outcome = "missed"
	Unknown Outcome = "unknown"
)

// Tried is a value that was tried, by one run.
type Tried struct {
	Value   float64  `json:"value"`
	Outcome Outcome  `json:"outcome"`
	Figure  *float64 `json:"figure,omitempty"` // of the objective; absent where it is lost or not known
	Why     string   `json:"why,omitempty"`    // it is missed without a figure, or unknown
	series.Done
	Warnings []string `json:"warnings,omitempty"` // warnings of the run about the figure
}

// Result is a search, as far as it came. It is the content of FileName.
type Result struct {
	series.Head
	Find       Find    `json:"find"`
	Objective  string  `json:"objective"`
	Figure     string  `json:"figure"` // of the objective, its path in the records
	Sentence   string  `json:"sentence"`
	Bracket    Bracket `json:"bracket"`
	Unit       string  `json:"unit"` // of the values: /s, pods, B or cpus
	Min        float64 `json:"min"`
	Max        float64 `json:"max"`
	Resolution float64 `json:"resolution"`
	Runs       []Tried `json:"runs"` // in the order in which they were done

	print func(float64) string // a value of the figure
	scale Scale
}

// newResult is a search of which nothing is known yet. One with another head is not resumed.
func newResult(o Options) *Result {
	r := &Result{
		Head: series.NewHead(Kind, string(o.Find), o.Objective.Text, fmt.Sprintf("%+v", o.Scale), o.Spec.Asked()),
		Find: o.Find, Objective: o.Objective.Text, Figure: o.Objective.Path, Unit: kinds[o.Find].unit, Min: o.Scale.Min, Max: o.Scale.Max,
		Resolution: o.Scale.Resolution, print: o.Objective.Print, scale: o.Scale,
	}
	r.conclude(series.Interrupted)
	return r
}

// tries are the runs that decided the objective.
func (r *Result) tries() []Try {
	var all []Try
	for _, t := range r.Runs {
		if t.Outcome != Unknown {
			all = append(all, Try{t.Value, t.Outcome == Met})
		}
	}
	return all
}

// conclude sets how the search stands.
func (r *Result) conclude(status series.Status) {
	r.Status, r.Bracket = status, r.scale.Bracket(r.tries())
	r.Sentence = r.sentence()
}

// sentence is the result in words.
func (r *Result) sentence() string {
	best := kinds[r.Find].best
	var known string
	switch passes, fails := r.Bracket.Passes, r.Bracket.Fails; {
	case passes != nil && fails != nil:
		known = fmt.Sprintf("%s is met with %s and missed with %s", r.Objective, r.Find.Print(*passes), r.Find.Print(*fails))
	case passes != nil:
		known = fmt.Sprintf("%s is met with %s", r.Objective, r.Find.Print(*passes))
	case fails != nil:
		known = fmt.Sprintf("%s is missed with %s", r.Objective, r.Find.Print(*fails))
	default:
		known = fmt.Sprintf("nothing is known of %s", r.Objective)
	}
	switch r.Status {
	case Found:
		return fmt.Sprintf("%s: the %s is between them.", known, best)
	case NotMet:
		return fmt.Sprintf("%s is not met even with %s, the easiest value of the search.", r.Objective, r.Find.Print(*r.Bracket.Fails))
	case MetThroughout:
		return fmt.Sprintf("%s is met even with %s, the hardest value of the search: the %s is beyond it.", r.Objective, r.Find.Print(*r.Bracket.Passes), best)
	case MaxRunsDone:
		return known + ": no more runs were allowed, and the search is not done."
	case Undecided:
		return known + ": the last run did not decide it, and the search ended."
	case series.Failed:
		return known + ": the last run failed, and the search ended."
	default:
		return known + ": the search was interrupted."
	}
}

// resume takes over what an earlier search of the same question decided.
func (r *Result) resume(earlier *Result) {
	for _, t := range earlier.Runs {
		if t.Outcome != Unknown {
			r.Runs = append(r.Runs, t) // what did not decide is tried again
		}
	}
	r.conclude(series.Interrupted)
}

// Print writes the result in one of output.Formats.
func Print(w io.Writer, format string, r *Result) error {
	return output.Print(w, format, "the result", r, func(d *output.Document) {
		d.Paragraph(r.Sentence)
		t := output.Table{Head: []string{string(r.Find), "outcome", r.Objective, "took", "record", ""}}
		for _, one := range r.Runs {
			figure := "-"
			if one.Figure != nil {
				figure = r.print(*one.Figure)
			}
			t.Add(r.Find.Print(one.Value), string(one.Outcome), figure, (time.Duration(one.Seconds) * time.Second).String(), one.Record, one.Why)
		}
		d.Table(t)
		d.Paragraph(r.notes()...)
	})
}

// notes returns the warnings about the ends of the bracket, and what one run of each value means.
func (r *Result) notes() (all []string) {
	for _, end := range []*float64{r.Bracket.Passes, r.Bracket.Fails} {
		for _, one := range r.Runs {
			if end == nil || one.Value != *end {
				continue
			}
			for _, warning := range one.Warnings {
				all = append(all, fmt.Sprintf("%s: %s", r.Find.Print(one.Value), warning))
			}
		}
	}
	if r.Bracket.Passes != nil && r.Bracket.Fails != nil {
		all = append(all, "Each value was tried once: values near the limit may be met or missed by chance.")
	}
	return all
}
