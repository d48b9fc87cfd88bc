package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/record"
)

// Warning is a warning of the records: about the same figure in a number of the compared
// runs. Text is the sentence of the first run; numbers in it differ from run to run.
type Warning struct {
	Group  string        `json:"group"`
	About  string        `json:"about"` // the path of a figure, or of what is above it
	Reason record.Reason `json:"reason,omitempty"`
	Text   string        `json:"text"`
	A      int           `json:"a"` // runs of A that have it
	B      int           `json:"b"`
}

// warnings adds the warnings of a pair's runs to the result. It returns a function that
// lists the warnings about the figure at a path.
func (r *Result) warnings(p pair) func(path string) []int {
	from := len(r.Warnings)
	at := map[string]int{}
	reach := map[int][]string{} // the paths that each is about
	take := func(runs []*record.Run, count func(*Warning) *int) {
		for _, run := range runs {
			seen := map[int]bool{}
			for _, w := range run.Warnings {
				about := withFaultNames(run, w.About)
				key := about + "\n" + w.Kind()
				i, known := at[key]
				if !known {
					i = len(r.Warnings)
					at[key] = i
					r.Warnings = append(r.Warnings, Warning{Group: p.label(), About: about, Reason: w.Reason, Text: run.Sentence(w)})
				}
				if !seen[i] {
					*count(&r.Warnings[i])++
				}
				seen[i] = true
				for _, path := range run.Reach(w) {
					reach[i] = append(reach[i], withFaultNames(run, path))
				}
			}
		}
	}
	take(p.a.used, func(d *Warning) *int { return &d.A })
	take(p.b.used, func(d *Warning) *int { return &d.B })
	to := len(r.Warnings)
	return func(path string) (marks []int) {
		for i := from; i < to; i++ {
			if slices.ContainsFunc(reach[i], func(about string) bool { return record.Within(path, about) }) {
				marks = append(marks, i+1)
			}
		}
		return marks
	}
}

// withFaultNames returns a path with faults by their names, as figures have them, instead
// of their indices.
func withFaultNames(run *record.Run, about string) string {
	for i, fault := range run.Faults {
		place := fmt.Sprintf("faults.%d", i)
		if rest, ok := strings.CutPrefix(about, place); ok && (rest == "" || rest[0] == '.') {
			return "faults." + fault.Name + "@" + string(fault.Phase) + rest
		}
	}
	return about
}

// remark adds the warnings about the comparison as a whole.
func (r *Result) remark(pairs []pair, rules rules, onlyA, onlyB []*repeats, unknown []*record.Run) {
	r.Remarks = append(r.Remarks, rules.remarks()...)
	labelsBy := map[string][]string{} // labels of the Groups by the warning about them
	var order []string
	for _, p := range pairs {
		for _, text := range p.remarks(rules) {
			if labelsBy[text] == nil {
				order = append(order, text)
			}
			labelsBy[text] = append(labelsBy[text], p.label())
		}
	}
	for _, text := range order {
		if labels := labelsBy[text]; len(labels) < len(pairs) {
			text = strings.Join(labels, "; ") + ": " + text
		}
		r.Remarks = append(r.Remarks, text)
	}
	for _, group := range onlyA {
		r.Remarks = append(r.Remarks, group.label()+": only in A, not compared")
	}
	for _, group := range onlyB {
		r.Remarks = append(r.Remarks, group.label()+": only in B, not compared")
	}
	for _, run := range unknown {
		r.Remarks = append(r.Remarks, notYet(run, "is not compared"))
	}
}

// notYet describes what follows for a run whose record does not have its properties yet.
func notYet(run *record.Run, what string) string {
	return place(run) + " " + what + ": its record does not say yet what it is of, so it was killed early or has only begun"
}

// unusedText lists runs that did not complete.
func unusedText(runs []*record.Run) string {
	var names []string
	for _, run := range runs {
		names = append(names, place(run)+" "+string(run.Status))
	}
	return strings.Join(names, ", ")
}

// remarks returns caveats about the runs of a pair.
func (p pair) remarks(rules rules) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	for _, side := range []struct {
		name string
		of   *repeats
	}{{"A", p.a}, {"B", p.b}} {
		if n := len(side.of.unused); n > 0 {
			say("%d of %d runs of %s did not complete and are not compared (%s): what they would have shown is missing from the figures",
				n, n+len(side.of.used), side.name, unusedText(side.of.unused))
		}
	}
	a, b := p.a.used, p.b.used
	if len(a) == 0 || len(b) == 0 {
		return all
	}
	if text := notInTurns(order(a, b)); text != "" {
		say("%s", text)
	}
	for _, run := range a {
		for _, other := range b {
			if run.Dir != "" && run.Dir == other.Dir {
				say("%s is on both sides", run.Dir)
			}
		}
	}
	if x, y := p.a.first.Environment.ControlPlane.Name, p.b.first.Environment.ControlPlane.Name; rules.across == nil && x != y && x != "" && y != "" {
		say("A is of control plane %s and B of %s: figures need not mean the same with both; --across-control-planes compares those that do", x, y)
	}
	// Processor time differs, too, if the machine was not equally fast in all runs.
	if differing, oneWork := record.SpeedsOf(slices.Concat(a, b)); differing != "" {
		text := "processor time and cores of these runs are not in one unit: " + differing
		if oneWork {
			text += "; referenceCPUSeconds is"
		}
		say("%s", text)
	}
	if x, y := p.a.first.Environment.Scaler, p.b.first.Environment.Scaler; x != y {
		say("scaler itself differs: %s in A, %s in B", cmp.Or(x, "none"), cmp.Or(y, "none"))
	}
	if len(rules.differs(p.a.first, p.b.first))+len(differences(rules.conditions, p.a.first, p.b.first)) == 0 {
		say("the records say the same of both control planes")
	}
	return all
}
