package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// Variant is a set of runs that differ in one thing from those that they are compared
// with.
type Variant struct {
	Name string
	Runs []record.Run
}

// Effects compares several variants with the same base runs. All their figures are one
// family of tests.
type Effects struct {
	Base     string   `json:"base"` // what the runs are called that all are compared with
	Alpha    float64  `json:"alpha"`
	Tests    int      `json:"tests"` // figures tested, of all variants: the family that Holm's correction is for
	Variants []Effect `json:"variants"`
}

// Effect compares one variant with the base. In its figures A is the base, and B the
// variant.
type Effect struct {
	Name     string      `json:"name"`
	Base     Side        `json:"base"`
	Runs     Side        `json:"runs"`
	Differs  []Differing `json:"differs,omitempty"` // in which the runs differ from the base, by their records
	Figures  []Figure    `json:"figures"`
	Remarks  []string    `json:"remarks,omitempty"`
	Warnings []Warning   `json:"warnings,omitempty"` // of the records; figures name them by their place here, from 1
}

// CompareVariants compares each variant with the base, by the figures at these paths of
// the record or below them; none means all. The variants are not compared with each
// other.
//
// The error reports that the runs of the base, or of a variant, are not repeats of each
// other. A variant without runs has no figures.
func CompareVariants(base Variant, variants []Variant, figures []string) (*Effects, error) {
	e := &Effects{Base: base.Name, Alpha: alpha}
	var all [][]Figure
	for _, v := range variants {
		effect := Effect{Name: v.Name, Base: Side{Used: []string{}}, Runs: Side{Used: []string{}}, Figures: []Figure{}}
		if len(base.Runs) > 0 && len(v.Runs) > 0 {
			r, err := Compare(base.Runs, v.Runs, Options{A: base.Name, B: v.Name, Force: true})
			if err != nil {
				return nil, fmt.Errorf("comparing %s with %s: %w", v.Name, base.Name, err)
			}
			if len(r.Groups) != 1 {
				return nil, fmt.Errorf("comparing %s with %s: the runs of one of them differ in more than chance: want those of one machine and one scaler", v.Name, base.Name)
			}
			c := r.Groups[0]
			effect.Base, effect.Runs, effect.Figures, effect.Remarks, effect.Warnings = c.A, c.B, below(c.Figures, figures), r.Remarks, r.Warnings
			effect.Differs = append(c.Forced, c.Differs...)
		}
		e.Variants, all = append(e.Variants, effect), append(all, effect.Figures)
	}
	e.Tests = test(all...)
	return e, nil
}

// below returns the figures at paths, or below them.
func below(all []Figure, paths []string) []Figure {
	return slices.DeleteFunc(slices.Clone(all), func(f Figure) bool {
		return len(paths) > 0 && !slices.ContainsFunc(paths, func(path string) bool { return record.Within(f.Path, path) })
	})
}

// Figure returns the figure at a path; nil if the runs did not measure it.
func (e *Effect) Figure(path string) *Figure {
	at := slices.IndexFunc(e.Figures, func(f Figure) bool { return f.Path == path })
	if at < 0 {
		return nil
	}
	return &e.Figures[at]
}

// Better reports whether a figure is significantly better than in the base, or
// significantly worse. A quantile that is lost in more runs than of the base is worse,
// too.
func (f *Figure) Better() (better, worse bool) {
	known, _ := record.FigureAt(f.Path)
	switch {
	case f.Verdict == WithLoss:
		return false, f.B.Lost > f.A.Lost
	case f.Verdict != Higher && f.Verdict != Lower || known.Better == record.BetterNeither:
		return false, false
	}
	better = (f.Verdict == Lower) == (known.Better == record.BetterLower)
	return better, !better
}

// Change describes a figure's difference, with its interval if there is one, as in
// push.p50 -40.1% (-44.0% to -36.2%).
func (f *Figure) Change() string {
	switch {
	case f.Verdict == WithLoss:
		return f.Name + " lost"
	case f.Low == nil:
		return f.Name + " " + f.differenceText()
	}
	return fmt.Sprintf("%s %s (%s)", f.Name, f.differenceText(), f.intervalText())
}

// FromTo describes a figure's difference with both values, as in rollout.memoryBytes.peak
// 300MB to 350MB (+16.7%, +15.0% to +18.4%).
func (f *Figure) FromTo() string {
	return fmt.Sprintf("%s %s to %s (%s, %s)", f.Name, f.Unit.print(*f.A.Mean), f.Unit.print(*f.B.Mean), f.differenceText(), f.intervalText())
}

// Table returns a table with a row for each figure and variant, the variants of a figure
// below its base; what is the heading of the column of variants. Numbers in brackets
// refer to the warnings in Notes.
func (e *Effects) Table(what string) output.Table {
	t := output.Table{Head: []string{"figure", what, "runs", "mean", "difference", "95% interval", "p", ""}, Left: 1}
	var paths []string
	for _, v := range e.Variants {
		for _, f := range v.Figures {
			if !slices.Contains(paths, f.Path) {
				paths = append(paths, f.Path)
			}
		}
	}
	warnings := e.warnings()
	for _, path := range paths {
		first := true
		for i := range e.Variants {
			v := &e.Variants[i]
			f := v.Figure(path)
			if f == nil {
				continue
			}
			if first {
				t.Add(f.Name, e.Base, strconv.Itoa(f.A.N), f.A.text(f.Unit), "", "", "", "")
				first = false
			}
			verdict := string(f.Verdict)
			for n, d := range warnings {
				if d.marks(v, f) {
					verdict += fmt.Sprintf(" [%d]", n+1)
				}
			}
			t.Add("", v.Name, strconv.Itoa(f.B.N), f.B.text(f.Unit), f.differenceText(), f.intervalText(), pText(f.Holm), verdict)
		}
	}
	return t
}

// shared is a warning of the runs of one or more variants, or of their base.
type shared struct {
	Warning
	variants []string
}

// marks reports whether the warning applies to a figure of a variant.
func (d shared) marks(v *Effect, f *Figure) bool {
	return slices.ContainsFunc(f.Warnings, func(n int) bool { return d.same(v.Warnings[n-1]) })
}

func (d shared) same(o Warning) bool { return d.About == o.About && d.Reason == o.Reason }

// warnings returns the warnings that touch any figure, each once.
func (e *Effects) warnings() []shared {
	var all []shared
	for i := range e.Variants {
		v := &e.Variants[i]
		for n, w := range v.Warnings {
			if !slices.ContainsFunc(v.Figures, func(f Figure) bool { return slices.Contains(f.Warnings, n+1) }) {
				continue
			}
			at := slices.IndexFunc(all, func(d shared) bool { return d.same(w) })
			if at < 0 {
				at, all = len(all), append(all, shared{Warning: w})
			}
			all[at].variants = append(all[at].variants, v.Name)
		}
	}
	return all
}

// Notes explain how to read the table, and list the warnings of the runs about its
// figures.
func (e *Effects) Notes() []string {
	notes := []string{fmt.Sprintf("Each is compared with %s. The interval is a figure's own, at 95 %%. p is Welch's, on logarithms of what is above zero, "+
		"corrected by Holm's method for all %d tests of the table: a difference is established at %v. \"~\" is no significant difference.", e.Base, e.Tests, e.Alpha)}
	for n, d := range e.warnings() {
		notes = append(notes, fmt.Sprintf("[%d] %s: %s (in runs of %s, or of %s)", n+1, d.About, d.Text, strings.Join(d.variants, ", "), e.Base))
	}
	var remarks []string
	for _, v := range e.Variants {
		for _, text := range v.Remarks {
			if !slices.Contains(remarks, text) {
				remarks = append(remarks, text)
			}
		}
	}
	for _, text := range remarks {
		notes = append(notes, "A is "+e.Base+", B what is compared with it: "+text)
	}
	return notes
}
