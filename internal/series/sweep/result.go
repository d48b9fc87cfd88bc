package sweep

import (
	"fmt"
	"io"
	"path/filepath"

	"scaler.mesh/scaler/internal/analyse/compare"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/series"
	"scaler.mesh/scaler/pkg/record"
)

// Answer is the outcome of a tuning. A sweep of knobs has none: its effects are.
type Answer string

// The answers.
const (
	Recommends Answer = "recommended" // a value: see Result.Recommended
	NoGain     Answer = "noGain"      // no value is significantly better without being worse by more than a margin
	NotMet     Answer = "notMet"      // no value meets the objective in every run
	Unknown    Answer = "unknown"     // too few runs for any test, the objective is undecided, or harm is not excluded
)

// Done is a run that was done.
type Done struct {
	Variant string `json:"variant"`
	Repeat  int    `json:"repeat"`
	series.Done
}

// Meeting is in how many runs of the base or of a variant the objective was met.
type Meeting struct {
	Variant string `json:"variant"`
	Runs    int    `json:"runs"`
	Met     int    `json:"met"`
	Unknown int    `json:"unknown,omitempty"` // runs that do not decide it
}

// always reports that it was met in every run.
func (m Meeting) always() bool { return m.Runs > 0 && m.Met == m.Runs }

// Result is a sweep, as far as it came. It is the content of Options.File.
type Result struct {
	series.Head
	Answer      Answer           `json:"answer,omitempty"`
	Recommended string           `json:"recommended,omitempty"` // a variant
	Sentences   []string         `json:"sentences"`             // what the effects say; the first is the answer
	Objective   string           `json:"objective,omitempty"`
	Goal        string           `json:"goal,omitempty"` // path of the figure that is to become better
	Meets       []Meeting        `json:"meets,omitempty"`
	Margins     []Margin         `json:"margins,omitempty"` // of a tuning: how much worse figures may become with a recommended value
	Effects     *compare.Effects `json:"effects,omitempty"`
	Runs        []Done           `json:"runs"` // in the order in which they were done

	what    string       // names the column of the variants
	records []record.Run // of Runs
}

// newResult is a sweep without runs. One with another head is not resumed; more repeats of the same are no other
// sweep.
func newResult(o Options) *Result {
	var asked []string
	for _, one := range o.specs() {
		asked = append(asked, one.name, one.spec.Asked())
	}
	r := &Result{Head: series.NewHead(o.Kind, asked...), Goal: o.Goal, Sentences: []string{}, Runs: []Done{}, what: o.What}
	if o.Objective != nil {
		r.Objective = o.Objective.Text
	}
	return r
}

// done reports whether a run is done already.
func (r *Result) done(variant string, repeat int) bool {
	for _, one := range r.Runs {
		if one.Variant == variant && one.Repeat == repeat {
			return true
		}
	}
	return false
}

// resume takes over the runs of an earlier result of the same sweep, with their records.
func (r *Result) resume(o Options, earlier *Result) error {
	for _, one := range earlier.Runs {
		if one.Repeat > o.Repeats || !filepath.IsLocal(one.Record) {
			continue
		}
		runs, err := record.Read(filepath.Join(o.Spec.Out, one.Record))
		if err == nil && len(runs) != 1 {
			err = fmt.Errorf("%d records, want 1", len(runs))
		}
		if err != nil {
			return fmt.Errorf("resuming the sweep in %s: reading the record of a run: %w", o.Spec.Out, err)
		}
		r.Runs, r.records = append(r.Runs, one), append(r.records, runs[0])
	}
	return nil
}

// Print writes the result in one of output.Formats.
func Print(w io.Writer, format string, r *Result) error {
	return output.Print(w, format, "the result", r, func(d *output.Document) {
		d.Paragraph(r.Sentences...)
		if len(r.Meets) > 0 {
			t := output.Table{Head: []string{r.what, r.Objective}}
			for _, m := range r.Meets {
				text := fmt.Sprintf("met in %d of %d runs", m.Met, m.Runs)
				if m.Unknown > 0 {
					text += fmt.Sprintf(", unknown in %d", m.Unknown)
				}
				t.Add(m.Variant, text)
			}
			d.Table(t)
		}
		if r.Effects == nil {
			return
		}
		if t := r.Effects.Table(r.what); len(t.Rows) > 0 {
			notes := r.Effects.Notes()
			if r.Margins != nil {
				notes = append(notes, marginsText())
			}
			d.Table(t)
			d.Paragraph(notes...)
		}
	})
}
