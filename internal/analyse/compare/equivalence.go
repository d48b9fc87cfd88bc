package compare

import (
	"fmt"
	"math"
	"strings"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/output"
)

// Equivalence states whether the runs establish that a figure is equal within a margin.
type Equivalence string

// The equivalences.
const (
	Equal     Equivalence = "equal"     // established: neither side is above the other by more than the margin
	Different Equivalence = "different" // established: one side is above the other by more than the margin
	Open      Equivalence = "undecided" // neither is established
)

// equivalence decides by two one-sided tests whether a figure is equal on both sides
// within a margin (Schuirmann, A Comparison of the Two One-Sided Tests Procedure and the
// Power Approach, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987): it is if the
// confidence interval of the ratio lies between 1/(1+margin) and 1+margin. At a confidence
// of 95 % each of the two tests is at 2.5 %. Without turns neither is established, because
// drift may hide a difference. What is the same in every run is equal if there are enough
// runs for a test.
func (f *Figure) equivalence(margin float64, interleaved bool) Equivalence {
	switch {
	case f.Verdict == OtherMeaning:
		return ""
	case f.Verdict == Same && stats.SmallestP(f.A.N, f.B.N) <= alpha:
		return Equal
	case !f.Ratio || f.Low == nil || !interleaved:
		return Open
	}
	low, high, bound := math.Log1p(*f.Low), math.Log1p(*f.High), math.Log1p(margin)
	switch {
	case -bound <= low && high <= bound:
		return Equal
	case bound < low || high < -bound:
		return Different
	}
	return Open
}

// equate sets the equivalences of all figures.
func (r *Result) equate(margin float64) {
	if margin == 0 {
		return
	}
	r.EqualWithin = &margin
	for i := range r.Groups {
		c := &r.Groups[i]
		for j := range c.Figures {
			c.Figures[j].Equivalence = c.Figures[j].equivalence(margin, c.Interleaved)
		}
	}
}

// Equivalences returns the short names of the figures of an equivalence.
func (r *Result) Equivalences(of Equivalence) []string {
	var names []string
	groups := r.groupNames()
	for i, c := range r.Groups {
		for _, f := range c.Figures {
			if f.Equivalence != of {
				continue
			}
			if len(r.Groups) > 1 {
				names = append(names, f.Name+" ("+groups[i]+")")
			} else {
				names = append(names, f.Name)
			}
		}
	}
	return names
}

// margin prints the margin, as in 10 %.
func (r *Result) margin() string { return output.Percent(*r.EqualWithin) }

// NotEqual lists what is not known to be equal, and what decides it.
func (r *Result) NotEqual() (all []string) {
	if names := r.Equivalences(Different); len(names) > 0 {
		all = append(all, fmt.Sprintf("different by more than %s: %s", r.margin(), strings.Join(names, ", ")))
	}
	if open := r.openText(); open != "" {
		all = append(all, open)
	}
	return all
}

// openText lists the figures of which it is not decided whether they are equal, and what decides it; ""
// without any.
func (r *Result) openText() string {
	names := r.Equivalences(Open)
	if len(names) == 0 {
		return ""
	}
	why := "more runs on each side decide it, or a wider margin"
	for i := range r.Groups {
		if reason := notInTurns(r.Groups[i].Order); reason != "" {
			why = reason
		}
	}
	return fmt.Sprintf("not decided whether equal within %s: %s: %s", r.margin(), strings.Join(names, ", "), why)
}

// equivalenceText counts the equivalences.
func (r *Result) equivalenceText() string {
	equal, different, open := len(r.Equivalences(Equal)), len(r.Equivalences(Different)), len(r.Equivalences(Open))
	return fmt.Sprintf("%d of %s equal within %s, %d different by more, %d undecided", equal, output.Many(equal+different+open, "figure"), r.margin(), different, open)
}

// equivalenceNote explains the equivalences.
func (r *Result) equivalenceNote() string {
	return fmt.Sprintf("\"equal\" within %s: the 95 %% interval of the ratio lies between 1/%.4g and %.4g (two one-sided tests, each at 2.5 %%); \"different\": it lies outside; "+
		"\"undecided\": neither, there is no ratio, or the runs of the sides were not interleaved. Each figure is decided by itself; that all of them are equal is established at the same level.",
		r.margin(), 1+*r.EqualWithin, 1+*r.EqualWithin)
}
