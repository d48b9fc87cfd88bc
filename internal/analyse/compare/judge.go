package compare

import (
	"fmt"
	"math"
	"slices"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// Outcome is the result of testing a bound in a Group.
type Outcome string

// The outcomes. The first three are results of the test; Unknown is for a figure that
// could not be tested.
const (
	Inside    Outcome = "inside"    // established: the difference is smaller than the bound
	Beyond    Outcome = "beyond"    // established: the difference is larger than the bound
	Undecided Outcome = "undecided" // neither is established, or the runs of the sides were not interleaved; see Judged.RunsToDecide
	Unknown   Outcome = "unknown"   // not measured, lost, too few changes, or B has more runs that did not complete
)

// Judged is the result of a bound in one Group.
type Judged struct {
	Bound      string   `json:"bound"`
	Group      string   `json:"group"`
	Figure     string   `json:"figure"`
	Outcome    Outcome  `json:"outcome"`
	Why        string   `json:"why"`
	Difference *float64 `json:"difference,omitempty"` // in what the bound is in: a share, or base units
	// P is the probability of runs at least this far on their side of the bound if the
	// true difference were the bound itself: one-sided, and multiplied by the number of
	// bounds tested (Bonferroni). Absent if nothing was tested.
	P *float64 `json:"p,omitempty"`
	// RunsToDecide is the number of runs on each side that decide the bound with a
	// probability of 80 %, if difference and spread are those of these runs. It is set
	// only if the outcome is Undecided, and absent if it would be more than a thousand,
	// as it is for a difference about equal to the bound, or if the runs of the sides were not interleaved.
	RunsToDecide *int `json:"runsToDecide,omitempty"`
}

// Fails reports whether the bound was missed, or could not be tested.
func (j Judged) Fails() bool { return j.Outcome == Beyond || j.Outcome == Unknown }

// Fails reports whether any bound was missed, or could not be tested, or any figure is
// different by more than Options.EqualWithin.
func (r *Result) Fails() bool {
	return slices.ContainsFunc(r.Bounds, Judged.Fails) || len(r.Equivalences(Different)) > 0
}

// Undecided reports whether other runs are needed to decide any bound or equivalence.
func (r *Result) Undecided() bool {
	return slices.ContainsFunc(r.Bounds, func(j Judged) bool { return j.Outcome == Undecided }) || len(r.Equivalences(Open)) > 0
}

const (
	power    = 0.8  // of RunsToDecide
	mostRuns = 1000 // that are counted
)

// leastRuns returns the number of runs that a test needs on each side; see TooFew.
func leastRuns() int {
	n := 2
	for stats.SmallestP(n, n) > alpha {
		n++
	}
	return n
}

// judge tests every bound in every Group. The level of each test is alpha over the number
// of tests (Bonferroni): in at most one of twenty comparisons any bound that B keeps is
// reported as beyond, or any that it misses as inside.
func judge(groups []Group, bounds []Bound) []Judged {
	var all []Judged
	tested := map[int]excess{}
	for _, b := range bounds {
		for _, group := range groups {
			j := Judged{Bound: b.Text, Group: group.Label, Figure: b.Figure}
			at := slices.IndexFunc(group.Figures, func(f Figure) bool { return f.Name == b.Figure })
			switch {
			case group.worse():
				j.Outcome, j.Why = Unknown, fmt.Sprintf("%d of %d runs of B did not complete, of A %d of %d",
					len(group.B.Unused), len(group.B.Unused)+len(group.B.Used), len(group.A.Unused), len(group.A.Unused)+len(group.A.Used))
			case at < 0:
				j.Outcome, j.Why = Unknown, "not measured"
			case !b.look(&group.Figures[at], &j):
			case !group.Interleaved:
				j.Outcome = Undecided
				j.Why += ": " + notInTurns(group.Order)
			default:
				tested[len(all)] = b.excess(&group.Figures[at])
			}
			all = append(all, j)
		}
	}
	for i, e := range tested {
		e.judge(&all[i], alpha/float64(len(tested)))
	}
	return all
}

// worse reports whether more of B's runs than of A's did not complete: then B's completed
// runs are a biased selection of the better ones.
func (c Group) worse() bool {
	return len(c.B.Unused)*(len(c.A.Unused)+len(c.A.Used)) > len(c.A.Unused)*(len(c.B.Unused)+len(c.B.Used))
}

// look returns the verdict on a figure that needs no test, and whether there is one.
func (b Bound) look(f *Figure, j *Judged) (tested bool) {
	switch f.Verdict {
	case Unmeasured:
		j.Outcome, j.Why = Unknown, fmt.Sprintf("measured in %d runs of A and %d of B", f.A.N, f.B.N)
		return false
	case TooFewChanges:
		j.Outcome, j.Why = Unknown, fmt.Sprintf("below %d changes in %d runs of A and %d of B: run with --probes %d", record.ChangesForP99, f.A.Few, f.B.Few, record.ChangesForP99)
		return false
	case WithLoss:
		j.Outcome, j.Why = Unknown, fmt.Sprintf("among what was lost in %d runs of A and %d of B", f.A.Lost, f.B.Lost)
		return false
	}
	change := *f.B.Mean - *f.A.Mean
	if b.Percent && change != 0 {
		change /= *f.A.Mean
	}
	if !math.IsInf(change, 0) { // above nothing there is no share
		j.Difference = new(change)
	}
	j.Why = f.changeText()
	if stats.SmallestP(f.A.N, f.B.N) > alpha {
		j.Outcome, j.RunsToDecide = Undecided, new(leastRuns())
		j.Why += fmt.Sprintf(": %d against %d runs can establish nothing; %d on each side are the least", f.A.N, f.B.N, leastRuns())
		return false
	}
	if f.Verdict == Same {
		j.Outcome = Inside
		return false
	}
	return true
}

// excess holds two samples whose means differ by the amount that the true difference is
// beyond a bound: second less first. Below 0 it is inside.
type excess struct {
	first, second []float64
	resolution    float64
	never         bool // no value of B's could be beyond the bound
}

// excess returns the samples for the test of a bound: logarithms for a relative bound if
// all values are above zero, because figures vary in proportion to their size; otherwise,
// and for a bound in base units, the values themselves.
func (b Bound) excess(f *Figure) excess {
	factor, shift := 1.0, 0.0
	switch {
	case b.Percent && b.Below:
		factor -= b.Change
	case b.Percent:
		factor += b.Change
	case b.Below:
		shift = -b.Change
	default:
		shift = b.Change
	}
	logs := b.Percent && f.Ratio
	e := excess{resolution: f.Unit.resolution(), never: logs && factor <= 0}
	for _, v := range f.A.values { // moved to the bound
		e.first = append(e.first, v*factor+shift)
	}
	e.second = slices.Clone(f.B.values)
	switch {
	case e.never:
		return e
	case logs:
		e.resolution = f.resolution()
		for _, values := range [][]float64{e.first, e.second} {
			for i, v := range values {
				values[i] = math.Log(v)
			}
		}
	case f.Ratio:
		e.resolution = max(e.resolution, relative**f.A.Mean)
	}
	if b.Below {
		e.first, e.second = e.second, e.first
	}
	return e
}

// judge decides a bound at a level.
func (e excess) judge(j *Judged, level float64) {
	if e.never {
		j.Outcome = Inside
		return
	}
	d, err := stats.Welch(e.first, e.second, e.resolution, confidence)
	if err != nil { // look had enough runs
		j.Outcome = Undecided
		return
	}
	oneSided := d.P / 2
	j.P = new(min(1, oneSided*alpha/level))
	switch {
	case oneSided > level:
		j.Outcome = Undecided
		n, ok := stats.RunsNeeded(e.first, e.second, e.resolution, level, power, mostRuns)
		if !ok {
			j.Why += fmt.Sprintf(": more than %d runs on each side would be needed to decide, if difference and spread are as in these", mostRuns)
			return
		}
		n = max(n, leastRuns(), min(len(e.first), len(e.second))+1)
		j.RunsToDecide = &n
		j.Why += fmt.Sprintf(": about %s on each side would decide, if difference and spread are as in these", output.Many(n, "run"))
	case d.Value > 0:
		j.Outcome = Beyond
	default:
		j.Outcome = Inside
	}
}
