package sweep

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/analyse/compare"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// Status is how a sweep ended.
type Status string

// A sweep is interrupted from its first byte until its end is known.
const (
	Complete    Status = "complete"
	Interrupted Status = "interrupted" // by a signal, or killed without a word
	Failed      Status = "failed"      // a run failed
)

// Answer is what a sweep says.
type Answer string

// The answers of a tuning. That of a sweep of knobs is its effects.
const (
	Recommends Answer = "recommended" // a value: see Result.Recommended
	NoGain     Answer = "noGain"      // no value is significantly better without being worse by more than a margin
	NotMet     Answer = "notMet"      // no value meets the objective in every run
	Unknown    Answer = "unknown"     // too few runs for any test, the objective is undecided, or harm is not excluded
)

// Done is a run that was done.
type Done struct {
	Variant string        `json:"variant"`
	Repeat  int           `json:"repeat"`
	Status  record.Status `json:"status"`
	Seconds float64       `json:"seconds"`          // that the run took, cluster included
	Record  string        `json:"record,omitempty"` // its folder, below that of the result
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
	APIVersion  string           `json:"apiVersion"`
	Kind        string           `json:"kind"`
	Digest      string           `json:"digest"` // of all that was asked for
	Status      Status           `json:"status"`
	Answer      Answer           `json:"answer,omitempty"`
	Recommended string           `json:"recommended,omitempty"` // a variant
	Sentences   []string         `json:"sentences"`             // what the effects say; the first is the answer
	Objective   string           `json:"objective,omitempty"`
	Goal        string           `json:"goal,omitempty"` // path of the figure that is to become better
	Meets       []Meeting        `json:"meets,omitempty"`
	Margins     []Margin         `json:"margins,omitempty"` // of a tuning: how much worse figures may become with a recommended value
	Effects     *compare.Effects `json:"effects,omitempty"`
	Runs        []Done           `json:"runs"` // in the order in which they were done
	Started     time.Time        `json:"started"`
	Finished    *time.Time       `json:"finished,omitempty"` // absent while it runs and when it was killed

	what    string       // names the column of the variants
	records []record.Run // of Runs
}

// newResult is a sweep without runs.
func newResult(o Options) *Result {
	r := &Result{
		APIVersion: record.APIVersion, Kind: o.Kind, Digest: o.digest(), Status: Interrupted, Goal: o.Goal,
		Sentences: []string{}, Runs: []Done{}, Started: time.Now().UTC(), what: o.What,
	}
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

// save writes the result into its folder: all of it or nothing.
func (r *Result) save(o Options) error {
	return record.SaveResult(filepath.Join(o.Spec.Out, o.File), r)
}

// errOther says that a folder holds another sweep.
var errOther = errors.New("it holds another sweep: want an empty folder, or the flags of the one that is to be resumed")

// resume is the result in a folder, of the same sweep, with the records of its runs; a new
// one where there is none.
func resume(o Options) (*Result, error) {
	fresh := newResult(o)
	var earlier Result
	err := record.ReadResult(filepath.Join(o.Spec.Out, o.File), &earlier)
	if errors.Is(err, fs.ErrNotExist) {
		return fresh, nil
	}
	if err != nil {
		return nil, err
	}
	if earlier.Digest != fresh.Digest {
		return nil, fmt.Errorf("parsing --out %q: %w", o.Spec.Out, errOther)
	}
	fresh.Started = earlier.Started
	for _, one := range earlier.Runs {
		if one.Repeat > o.Repeats || !filepath.IsLocal(one.Record) {
			continue
		}
		runs, err := record.Read(filepath.Join(o.Spec.Out, one.Record))
		if err != nil || len(runs) != 1 {
			return nil, fmt.Errorf("resuming the sweep in %s: reading the record of a run: %w", o.Spec.Out, errors.Join(err, errMissing(len(runs))))
		}
		fresh.Runs, fresh.records = append(fresh.Runs, one), append(fresh.records, runs[0])
	}
	return fresh, nil
}

// errMissing says that a folder does not have one record.
func errMissing(n int) error {
	if n == 1 {
		return nil
	}
	return fmt.Errorf("%d records, want 1", n)
}

// Print writes the result in one of output.Formats.
func Print(w io.Writer, format string, r *Result) error {
	return output.Print(w, format, "the result", r, func(markdown bool) string {
		show := output.Table.Text
		if markdown {
			show = output.Table.Markdown
		}
		parts := []string{strings.Join(r.Sentences, "\n") + "\n"}
		if len(r.Meets) > 0 {
			t := output.Table{Head: []string{r.what, r.Objective}}
			for _, m := range r.Meets {
				text := fmt.Sprintf("met in %d of %d runs", m.Met, m.Runs)
				if m.Unknown > 0 {
					text += fmt.Sprintf(", unknown in %d", m.Unknown)
				}
				t.Add(m.Variant, text)
			}
			parts = append(parts, show(t))
		}
		if r.Effects != nil {
			if t := r.Effects.Table(r.what); len(t.Rows) > 0 {
				notes := r.Effects.Notes()
				if r.Margins != nil {
					notes = append(notes, marginsText())
				}
				parts = append(parts, show(t), strings.Join(notes, "\n")+"\n")
			}
		}
		return strings.Join(parts, "\n")
	})
}
