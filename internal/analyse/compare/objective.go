package compare

import (
	"fmt"
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Objective is a requirement for a figure of one run, as in push.p99<2s.
type Objective struct {
	Text   string  // as it was given
	Figure string  // short name, see Name
	Path   string  // of the figure in the record
	Below  bool    // it must be below Value; else above
	Value  float64 // in base units
	Unit   Unit    // of the figure
}

// wantObjective is the syntax of an objective, for errors of ParseObjective.
const wantObjective = "FIGURE<VALUE or FIGURE>VALUE, as in 'push.p99<2s' or 'rollout.cores<1.5'"

// ParseObjective parses an objective: FIGURE<VALUE, or FIGURE>VALUE. FIGURE is
// named as in ParseBound; one of the changes at a rate may be named without its "change.".
// VALUE has the units of ParseBound, and a share may be a percentage.
func ParseObjective(text string) (Objective, error) {
	fail := func(what string) (Objective, error) {
		return Objective{}, scenario.Refuse("objective", text, "%s: %s", wantObjective, what)
	}
	c, problem := parseExpression(text, "value")
	if problem != "" {
		return fail(problem)
	}
	if c.sign != "" {
		return fail(fmt.Sprintf("%q is no value", c.amount))
	}
	figure, path, ok := figureNamed(c.figure)
	if !ok {
		return fail(fmt.Sprintf("there is no figure %q: docs/reference/figures.md lists them", c.figure))
	}
	o := Objective{Text: strings.TrimSpace(text), Figure: Name(path), Path: path, Below: c.below, Value: c.value, Unit: Unit(figure.Unit)}
	scale, known := scales[c.unit]
	scaled := o.Unit == Seconds || o.Unit == Bytes
	switch {
	case known && scale.unit == o.Unit:
		o.Value *= scale.in
	case c.unit == "%" && o.Unit == Share:
		o.Value /= 100
	case c.unit == "" && !scaled:
	default:
		return fail("its unit is " + unitsOf(o.Unit))
	}
	return o, nil
}

// figureNamed returns the figure with a short name or a path.
func figureNamed(name string) (f record.Figure, path string, ok bool) {
	for _, prefix := range append([]string{"", "change."}, shortened...) {
		for _, suffix := range []string{"", ".mean"} {
			path := prefix + name + suffix
			if f, ok := record.FigureAt(path); ok {
				return f, path, true
			}
		}
	}
	return record.Figure{}, "", false
}

// Observed is the result of an objective in one run.
type Observed struct {
	Value    *float64 // nil where it is lost or not known
	Met      bool
	Lost     bool     // it is among the lost observations: larger than any that was waited for
	Withheld bool     // too few changes were made for it
	Warnings []string // warnings of the run about the figure, each with its subject
}

// Known reports whether the run decides the objective. A lost value is larger than all
// received ones, and exceeds an upper bound.
func (s Observed) Known() bool { return s.Value != nil || s.Lost }

// Of returns the result of the objective in a run.
func (o Objective) Of(r *record.Run) Observed {
	var s Observed
	for _, v := range r.Values() {
		if v.Path == o.Path {
			s.Value, s.Lost, s.Withheld = v.Value, s.Lost || v.Lost, s.Withheld || v.Withheld
		}
	}
	switch {
	case s.Withheld:
		s.Value, s.Lost = nil, false // the lost ones among few changes decide nothing
	case s.Value != nil:
		s.Met = *s.Value < o.Value
		if !o.Below {
			s.Met = *s.Value > o.Value
		}
	case s.Lost:
		s.Met = !o.Below
	}
	for _, w := range r.Warnings {
		if slices.ContainsFunc(r.Reach(w), func(path string) bool { return record.Within(o.Path, path) || record.Within(path, o.Path) }) {
			s.Warnings = append(s.Warnings, w.About+": "+r.Sentence(w))
		}
	}
	return s
}

// Judge decides the objective in a run: [Inside] if it is met, [Beyond] if it is missed, [Undecided]
// if a warning states that the figure is biased toward the result, [Unknown] if the run does not have
// the figure. why states the value, or what it lacks.
func (o Objective) Judge(r *record.Run) (outcome Outcome, why string) {
	observed := o.Of(r)
	switch {
	case observed.Withheld:
		return Unknown, fmt.Sprintf("fewer than %d changes were made", record.ChangesForP99)
	case !observed.Known():
		return Unknown, "the run did not measure it"
	case observed.Value == nil:
		why = "among what was lost"
	default:
		why = o.Print(*observed.Value)
	}
	outcome, bias := Beyond, record.TooHigh
	if observed.Met {
		outcome, bias = Inside, record.TooLow
	}
	if !o.Below {
		bias = map[record.Direction]record.Direction{record.TooHigh: record.TooLow, record.TooLow: record.TooHigh}[bias]
	}
	for _, w := range r.Warnings {
		for _, b := range r.Biases(w) {
			if record.Within(o.Path, b.Path) && (b.Direction == bias || b.Direction == record.EitherWay) {
				return Undecided, fmt.Sprintf("%s, which is %s, by the warning of %s", why, b.Direction, w.About)
			}
		}
	}
	return outcome, why
}

// Threshold is the result of a threshold of a run's scenario in that run.
type Threshold struct {
	Text    string // as it was given
	Path    string // of the figure in the record; "" if there is no such figure
	Value   string // of the figure, formatted; "" if it is not known
	Outcome Outcome
	Why     string // see [Objective.Judge]
}

// Thresholds judges a run by the thresholds of its scenario, in their order. One of a scaler that has other figures is
// [Unknown].
func Thresholds(r *record.Run) (all []Threshold) {
	for _, text := range r.Scenario.Thresholds {
		t := Threshold{Text: text, Outcome: Unknown}
		if o, err := ParseObjective(text); err != nil {
			t.Why = err.Error()
		} else {
			t.Path = o.Path
			t.Outcome, t.Why = o.Judge(r)
			if v := o.Of(r).Value; v != nil {
				t.Value = o.Print(*v)
			}
		}
		all = append(all, t)
	}
	return all
}

// Print formats a value of the figure in a unit that is easy to read.
func (o Objective) Print(v float64) string { return o.Unit.print(v) }

// PathOf returns the path of the figure with a name, as in ParseObjective; ok is false if
// there is none, or if neither direction of it is better.
func PathOf(name string) (path string, ok bool) {
	figure, path, ok := figureNamed(name)
	return path, ok && figure.Better != record.BetterNeither
}
