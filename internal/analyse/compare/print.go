package compare

import (
	"fmt"
	"io"
	"strings"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/output"
)

// Printable is a value that Print prints: a *Result or a *PublishedComparison.
type Printable interface {
	answer(width int) string
	write(d *output.Document)
}

// Print writes a comparison in one of output.Formats; as a table its answer.
func Print(w io.Writer, format string, p Printable) error {
	return output.PrintAnswer(w, format, "a comparison", p, p.answer, p.write)
}

// write writes the comparison in reading order: first the differences, then the figures
// without a significant difference, then those that were not tested.
func (r *Result) write(d *output.Document) {
	d.Title(r.headline())
	d.List(append([]string{"A is " + r.A, "B is " + r.B}, r.Remarks...)...)
	if len(r.Bounds) > 0 {
		d.Section("Bounds")
		d.Table(r.boundsTable())
	}
	margin := ""
	if r.EqualWithin != nil {
		margin = r.margin()
	}
	for i := range r.Groups {
		r.Groups[i].write(d, margin)
	}
	if len(r.Warnings) > 0 {
		d.Section("Warnings")
		var all []string
		for i, w := range r.Warnings {
			where := ""
			if len(r.Groups) > 1 {
				where = w.Group + ", "
			}
			all = append(all, fmt.Sprintf("[%d] %s%s, in %s of A and %d of B: %s", i+1, where, w.About, output.Many(w.A, "run"), w.B, w.Text))
		}
		d.List(all...)
	}
	d.Section("How to read it")
	notes := []string{
		fmt.Sprintf("A figure of a run is one value. A and B are means over the runs (of what is above zero, the geometric mean), and between what the runs lie. "+
			"The interval is a figure's own, at 95 %%. p is Welch's, on logarithms of what is above zero, corrected by Holm's method for the %d figures tested: a difference is established at %v.", r.Tests, r.Alpha),
		`"~" no significant difference, which does not say that there is none: the interval says how large it may be. ` +
			`NOT TESTED: no difference would be significant, however large: ranks of 3 against 3 are at their extreme in one of ten comparisons of like with like.`,
	}
	if r.EqualWithin != nil {
		notes = append(notes, r.equivalenceNote())
	}
	d.List(notes...)
}

// headline states what came of it.
func (r *Result) headline() string {
	differ, tooFew := 0, true
	for _, c := range r.Groups {
		tooFew = tooFew && stats.SmallestP(len(c.A.Used), len(c.B.Used)) > alpha
		for _, f := range c.Figures {
			if f.Verdict == Higher || f.Verdict == Lower {
				differ++
			}
		}
	}
	switch {
	case r.EqualWithin != nil && !tooFew:
		return "B against A: " + r.equivalenceText()
	case tooFew:
		return fmt.Sprintf("NOT TESTED: too few repeats of B and A for any test; %d on each side are the least", leastRuns())
	case r.Tests == 0:
		return "B against A: nothing that could be tested"
	case differ == 0:
		return fmt.Sprintf("B against A: none of %s differs significantly", output.Many(r.Tests, "figure"))
	default:
		return fmt.Sprintf("B against A: %d of %s differ significantly", differ, output.Many(r.Tests, "figure"))
	}
}

func (r *Result) boundsTable() output.Table {
	t := output.Table{Head: []string{"bound", "runs", "outcome", "why", "p"}, Left: 3}
	for _, j := range r.Bounds {
		t.Add(j.Bound, j.Group, string(j.Outcome), j.Why, pText(j.P))
	}
	return t
}

// write writes a group as a section; margin is that of equivalences, "" = there are none.
func (c *Group) write(d *output.Document, margin string) {
	d.Section(c.Label)
	about := []string{fmt.Sprintf("runs compared: %d of A, %d of B", len(c.A.Used), len(c.B.Used))}
	if c.Modes != nil {
		about = append(about, c.Modes.A.line("A"), c.Modes.B.line("B"))
	}
	for _, o := range c.Differs {
		about = append(about, fmt.Sprintf("compared: %s %s in A, %s in B", o.What, o.A, o.B))
	}
	for _, o := range c.Forced {
		about = append(about, fmt.Sprintf("NOT COMPARABLE: %s %s in A, %s in B", o.What, o.A, o.B))
	}
	d.List(about...)
	columns := []string{"a", "b", "difference", "95% interval", "p", ""}
	if margin != "" {
		columns = append(columns, "within "+margin)
	}
	differ := output.Table{Head: append([]string{"differs"}, columns...)}
	alike := output.Table{Head: append([]string{"no significant difference"}, columns...)}
	untested := output.Table{Head: append([]string{"not tested: too few repeats"}, columns...)}
	other := output.Table{Head: []string{"other meaning, not compared", "a", "b"}}
	var same, onlyA, onlyB, lost, few []string
	for i := range c.Figures {
		f := &c.Figures[i]
		switch f.Verdict {
		case Same:
			same = append(same, f.Name+f.marks()+" "+f.Unit.print(*f.A.Mean))
		case Unmeasured:
			if f.B.N == 0 {
				onlyA = append(onlyA, f.Name)
			} else {
				onlyB = append(onlyB, f.Name)
			}
		case WithLoss:
			lost = append(lost, fmt.Sprintf("%s%s %s, %s", f.Name, f.marks(), f.A.text(f.Unit), f.B.text(f.Unit)))
		case TooFewChanges:
			few = append(few, f.Name)
		case OtherMeaning:
			other.Add(f.Name+f.marks(), f.A.text(f.Unit), f.B.text(f.Unit))
		case TooFew:
			untested.Add(f.row(len(c.A.Used), len(c.B.Used))...)
		case Higher, Lower:
			differ.Add(f.row(len(c.A.Used), len(c.B.Used))...)
		default:
			alike.Add(f.row(len(c.A.Used), len(c.B.Used))...)
		}
	}
	for _, t := range []output.Table{differ, alike, untested, other} {
		if len(t.Rows) > 0 {
			d.Table(t)
		}
	}
	var after []string
	for _, m := range c.Meanings {
		after = append(after, fmt.Sprintf("%s in A: %s; in B: %s", m.Path, m.A, m.B))
	}
	for _, list := range []struct {
		what  string
		names []string
	}{
		{"the same in every run", same}, {"among what was lost in some run, so not tested", lost},
		{string(TooFewChanges), few},
		{"measured by A alone", onlyA}, {"measured by B alone", onlyB},
	} {
		if len(list.names) > 0 {
			after = append(after, list.what+": "+strings.Join(list.names, "; "))
		}
	}
	d.List(after...)
}

// row shows a figure of runsA and runsB runs; if not all of them have it, it adds the
// number that do.
func (f *Figure) row(runsA, runsB int) []string {
	verdict := string(f.Verdict)
	if f.A.N != runsA || f.B.N != runsB {
		verdict += fmt.Sprintf(" (in %d and %d runs)", f.A.N, f.B.N)
	}
	row := []string{f.Name + f.marks(), f.A.text(f.Unit), f.B.text(f.Unit), f.differenceText(), f.intervalText(), pText(f.Holm), verdict}
	if f.Equivalence != "" {
		row = append(row, string(f.Equivalence))
	}
	return row
}

// marks returns the numbers of the warnings that touch a figure.
func (f *Figure) marks() string {
	if len(f.Warnings) == 0 {
		return ""
	}
	return " " + strings.ReplaceAll(fmt.Sprint(f.Warnings), " ", ",")
}
