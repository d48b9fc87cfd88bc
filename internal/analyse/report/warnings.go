package report

import (
	"cmp"
	"slices"

	"scaler.mesh/scaler/pkg/record"
)

// warnings groups the warnings of the runs in a report by reason, and marks the
// figures that they are about with the number of the reason.
type warnings struct {
	all     []runWarning
	reasons []record.Reason // of the warnings, in the order of explanations; a mark's number is from 1
}

type runWarning struct {
	run     *record.Run
	warning record.Warning
	reach   []string // the paths that it is about
}

// touches reports whether the warning is about the figure at path.
func (d runWarning) touches(path string) bool {
	return slices.ContainsFunc(d.reach, func(about string) bool { return record.Within(path, about) })
}

// add adds a run's warnings. Marks are valid when all runs have been added.
func (d *warnings) add(run *record.Run) {
	for _, w := range run.Warnings {
		d.all = append(d.all, runWarning{run, w, run.Reach(w)})
		if !slices.Contains(d.reasons, w.Reason) {
			d.reasons = append(d.reasons, w.Reason)
		}
	}
	slices.SortStableFunc(d.reasons, func(a, b record.Reason) int { return cmp.Compare(rank(a), rank(b)) })
}

// mark returns the numbers of the warnings' reasons for the figure at path. A figure
// shown under a heading whose own path is within omits the warnings that cover all of
// within: the heading has their mark.
func (d *warnings) mark(run *record.Run, path, within string) marks {
	return d.numbers(func(n runWarning) bool {
		return n.run == run && n.touches(path) && !n.touches(within)
	})
}

// markAll returns the marks of a value derived from the figures at paths of several runs:
// a warning about one of them is a warning about the result.
func (d *warnings) markAll(runs []*record.Run, paths ...string) marks {
	return d.numbers(func(n runWarning) bool {
		return slices.Contains(runs, n.run) && slices.ContainsFunc(paths, n.touches)
	})
}

// numbers returns the numbers of the reasons of the warnings for which touches is true.
func (d *warnings) numbers(touches func(runWarning) bool) marks {
	found := map[record.Reason]bool{}
	for _, n := range d.all {
		if touches(n) {
			found[n.warning.Reason] = true
		}
	}
	var numbers marks
	for i, of := range d.reasons {
		if found[of] {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

// of returns the warnings with a reason, in the order of runs.
func (d *warnings) of(r record.Reason) []runWarning {
	return slices.DeleteFunc(slices.Clone(d.all), func(n runWarning) bool { return n.warning.Reason != r })
}
