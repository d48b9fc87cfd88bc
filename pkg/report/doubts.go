package report

import (
	"fmt"
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/record"
)

// doubts numbers the warnings of the runs in a report and marks the figures
// they are about.
type doubts struct {
	numbered []doubt
}

type doubt struct {
	run   *record.Run
	text  record.Warning
	reach []string // the paths that it is about
}

// touches says whether the figure at path is doubted.
func (d doubt) touches(path string) bool {
	return slices.ContainsFunc(d.reach, func(about string) bool { return record.Within(path, about) })
}

// number takes in a run's warnings, in their order.
func (d *doubts) number(run *record.Run) {
	for _, w := range run.Warnings {
		d.numbered = append(d.numbered, doubt{run, w, run.Reach(w)})
	}
}

// mark returns the numbers of the warnings that touch the figure at path, as
// in " [1,3]", or "". Marks stand as high as they can: a figure shown under a
// heading whose own path is within leaves to it the warnings that cover all
// of within.
func (d *doubts) mark(run *record.Run, path, within string) string {
	return d.marks(func(n doubt) bool {
		return n.run == run && n.touches(path) && !n.touches(within)
	})
}

// markAll marks what is made of the figure at path of several runs: a doubt
// about one of them is a doubt about that too.
func (d *doubts) markAll(runs []*record.Run, path string) string {
	return d.marks(func(n doubt) bool {
		return slices.Contains(runs, n.run) && n.touches(path)
	})
}

// marks are the numbers of the warnings that touch.
func (d *doubts) marks(touches func(doubt) bool) string {
	var numbers []string
	for i, n := range d.numbered {
		if touches(n) {
			numbers = append(numbers, fmt.Sprint(i+1))
		}
	}
	if numbers == nil {
		return ""
	}
	return " [" + strings.Join(numbers, ",") + "]"
}

// lines are the warnings as they are printed; withRun names their runs.
func (d *doubts) lines(withRun bool) []string {
	var lines []string
	for i, n := range d.numbered {
		about := orAbsent(n.text.About)
		if withRun {
			about = n.run.Name + ", " + about
		}
		lines = append(lines, fmt.Sprintf("[%d] %s: %s", i+1, about, n.text.Sentence()))
	}
	return lines
}
