package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// freeLines is the room that figures leave for what limits them.
const freeLines = 4

// listedInAnswer limits what a sentence lists.
const listedInAnswer = 3

// answer prints what was compared, every bound, the figures that differ and those that are asked for
// first, and what limits them.
func (r *Result) answer(width int) string {
	a := output.NewAnswer(r.headline(), width)
	var remarks []string
	for _, text := range r.Remarks {
		remarks = append(remarks, "Note: "+ended(text))
	}
	undecided := r.openText()
	if undecided != "" {
		undecided = "It is " + ended(undecided)
	}
	a.Paragraphs(append([]string{r.subject(), undecided}, remarks...)...)
	a.Block(r.boundLines(width, a.Room()-freeLines)...)
	rows, decisive := r.answerRows()
	t := output.Table{Head: []string{"figure", "a", "b", "difference", "95% interval", ""}}
	names := r.groupNames()
	if len(names) > 1 {
		t.Head, t.Left = slices.Insert(t.Head, 1, "runs"), 1
	}
	if r.EqualWithin != nil {
		t.Head = append(t.Head, "within "+r.margin())
	}
	var marks []int
	for _, row := range rows {
		f := row.figure
		cells := []string{f.Name + f.marks(), f.A.meanText(f.Unit), f.B.meanText(f.Unit), f.differenceText(), f.intervalText(), string(f.Verdict)}
		if len(names) > 1 {
			cells = slices.Insert(cells, 1, names[row.group])
		}
		if r.EqualWithin != nil {
			cells = append(cells, string(f.Equivalence))
		}
		t.Add(cells...)
		marks = append(marks, f.Warnings...)
	}
	a.Rows(t, decisive, freeLines)
	slices.Sort(marks)
	marks = slices.Compact(marks)
	var warnings []string
	for _, n := range marks {
		warnings = append(warnings, fmt.Sprintf("[%d] %s: %s", n, r.Warnings[n-1].About, ended(r.Warnings[n-1].Text)))
	}
	a.Fit(warnings, func(left int) string {
		text := ""
		if slices.ContainsFunc(rows, func(row answerRow) bool { return row.figure.Verdict == CannotTell }) {
			text = "\"~\" is no significant difference. "
		}
		text += "-o wide has every figure, its range over the runs and its test"
		if left += len(r.Warnings) - len(marks); left > 0 {
			text += fmt.Sprintf(", and %s", output.Many(left, "more warning"))
		}
		return text + "."
	})
	return a.String()
}

// subject states which runs were compared, and in what they differ.
func (r *Result) subject() string {
	var what, of []string
	add := func(all []string, text string) []string {
		if slices.Contains(all, text) {
			return all
		}
		return append(all, text)
	}
	for _, c := range r.Groups {
		of = add(of, fmt.Sprintf("%s (%d of A, %d of B)", c.Label, len(c.A.Used), len(c.B.Used)))
		for _, d := range c.Differs {
			what = add(what, fmt.Sprintf("%s is %s in A and %s in B", d.What, d.A, d.B))
		}
	}
	text := fmt.Sprintf("A is %s, B is %s. Runs of %s.", r.A, r.B, listed(of, ", and of "))
	if what != nil {
		text += fmt.Sprintf(" What is compared: %s.", listed(what, "; "))
	}
	for i, c := range r.Groups {
		for _, d := range c.Forced {
			text += fmt.Sprintf(" NOT COMPARABLE: %s is %s in A and %s in B", d.What, d.A, d.B)
			if len(r.Groups) > 1 {
				text += ", of " + r.groupNames()[i]
			}
			text += "."
		}
	}
	return text
}

// listed joins the first few texts, and states how many more there are.
func listed(texts []string, between string) string {
	if n := len(texts) - listedInAnswer; n > 0 {
		return strings.Join(texts[:listedInAnswer], between) + fmt.Sprintf("%s%d more", between, n)
	}
	return strings.Join(texts, between)
}

// boundLines lists the bounds: first those that decide the exit code, all of them; then those that are kept, as
// far as there is room.
func (r *Result) boundLines(width, room int) []string {
	var open, kept []string
	names := r.groupNames()
	for _, j := range r.Bounds {
		text := j.Bound
		if at := slices.IndexFunc(r.Groups, func(c Group) bool { return c.Label == j.Group }); len(names) > 1 && at >= 0 {
			text += " (" + names[at] + ")"
		}
		lines := output.Wrap(fmt.Sprintf("%s: %s, %s", text, j.Outcome, j.Why), width, "    ")
		if j.Outcome == Inside {
			kept = append(kept, lines...)
		} else {
			open = append(open, lines...)
		}
	}
	if n := r.kept(); len(open)+len(kept) > room && len(kept) > 1 {
		kept = []string{fmt.Sprintf("%s kept.", output.Many(n, "bound"))}
	}
	return append(open, kept...)
}

// kept counts the bounds that B keeps.
func (r *Result) kept() (n int) {
	for _, j := range r.Bounds {
		if j.Outcome == Inside {
			n++
		}
	}
	return n
}

// answerRow is a figure of the group at a place.
type answerRow struct {
	group  int
	figure *Figure
}

// answerRows returns the figures of an answer, the most important first: those that are different by more than
// the margin, those that differ, the greatest change first, and those that readers ask for first. It
// reports how many decide the exit code.
func (r *Result) answerRows() (rows []answerRow, decisive int) {
	var different, differ, first []answerRow
	for i := range r.Groups {
		for j := range r.Groups[i].Figures {
			f := &r.Groups[i].Figures[j]
			switch {
			case f.Equivalence == Different:
				different = append(different, answerRow{i, f})
			case f.Verdict == Higher || f.Verdict == Lower:
				differ = append(differ, answerRow{i, f})
			case askedFirst(f.Path) && f.Difference != nil:
				first = append(first, answerRow{i, f})
			}
		}
	}
	for _, rows := range [][]answerRow{different, differ} {
		slices.SortStableFunc(rows, func(a, b answerRow) int { return cmp.Compare(b.figure.established(), a.figure.established()) })
	}
	return slices.Concat(different, differ, first), len(different)
}

// askedFirst reports whether an answer has the figure at a path although it does not differ.
func askedFirst(path string) bool {
	switch path {
	case "phases.rollout.seconds", "controlPlane.rollout.cores.mean", "controlPlane.rollout.memoryBytes.peak", "controlPlane.steady.memoryBytes.mean", "latencies.completeConfiguration.p99":
		return true
	}
	return slices.ContainsFunc(record.ChangeKinds, func(kind record.ChangeKind) bool { return path == "latencies.push."+string(kind)+".p50" })
}

// established returns the change that is established at least, as the logarithm of a ratio; 0 without one.
func (f *Figure) established() float64 {
	if !f.Ratio || f.Low == nil || f.High == nil || *f.Low <= -1 || *f.High <= -1 {
		return 0
	}
	low, high := math.Log1p(*f.Low), math.Log1p(*f.High)
	if low < 0 && high > 0 {
		return 0
	}
	return min(math.Abs(low), math.Abs(high))
}

// meanText formats the mean of a sample alone.
func (s *Sample) meanText(u Unit) string {
	if s.N == 0 {
		return s.text(u)
	}
	return u.print(*s.Mean)
}

// groupNames names each group by what tells it from the others.
func (r *Result) groupNames() []string {
	var pods, knobs, both, labels []string
	for _, c := range r.Groups {
		pods = append(pods, output.Many(c.Pods, "pod"))
		knobs = append(knobs, c.Knobs.Text())
		both = append(both, pods[len(pods)-1]+", "+knobs[len(knobs)-1])
		labels = append(labels, c.Label)
	}
	for _, names := range [][]string{pods, knobs, both} {
		unique := slices.Clone(names)
		slices.Sort(unique)
		if len(slices.Compact(unique)) == len(names) {
			return names
		}
	}
	return labels
}

// ended ends a text as a sentence.
func ended(text string) string { return strings.TrimSuffix(text, ".") + "." }

// answer prints the published figures that runs have, too.
func (l *PublishedComparison) answer(width int) string {
	a := output.NewAnswer("compared with "+l.Name, width)
	var texts []string
	for _, text := range append([]string{"Source: " + l.Source}, l.Setup...) {
		texts = append(texts, ended(text))
	}
	a.Paragraphs(texts...)
	t := output.Table{Head: publishedHead, Left: 3}
	for _, b := range l.Rows {
		if b.Mean != nil {
			t.Add(b.cells()...)
		}
	}
	with := len(t.Rows)
	a.Rows(t, 1, freeLines)
	a.Fit(nil, func(int) string {
		return fmt.Sprintf("Of %s, our runs have %d. -o wide has all, with what else the source states.", output.Many(len(l.Rows), "published figure"), with)
	})
	return a.String()
}
