package report

import (
	"fmt"
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/output"
	"scaler.mesh/scaler/pkg/record"
)

// headlines say in a sentence what a mesh needs: for each setting of the knobs, and
// of all else in which runs differ, that of the largest size that completed; and
// which runs did not, for the largest size that was tried may be among them.
func headlines(runs []record.Run, d *doubts) []string {
	var lines []string
	for _, g := range settings(runs) {
		sizes := g.sizes()
		largest := sizes[len(sizes)-1]
		var of []*record.Run
		for _, r := range g.runs {
			if r.Spec.Pods == largest {
				of = append(of, r)
			}
		}
		lines = append(lines, headline(of, d))
	}
	if len(lines) > 0 {
		return append(lines, incomplete(runs)...)
	}
	for i := range runs {
		line := fmt.Sprintf("%s did not complete: %s", orAbsent(runs[i].Name), orAbsent(string(runs[i].Status)))
		if runs[i].Reason != "" {
			line += ", " + runs[i].Reason
		}
		lines = append(lines, line+".")
	}
	return lines
}

// incomplete says in a sentence which runs did not complete; of none, nothing.
func incomplete(runs []record.Run) []string {
	var names []string
	for i := range runs {
		if runs[i].Status != record.StatusCompleted {
			about := orAbsent(string(runs[i].Status))
			if pods := runs[i].Spec.Pods; pods > 0 { // else it ended before that was written
				about = output.Many(pods, "pod") + ", " + about
			}
			names = append(names, fmt.Sprintf("%s (%s)", orAbsent(runs[i].Name), about))
		}
	}
	if names == nil {
		return nil
	}
	return []string{fmt.Sprintf("%d of %s did not complete and are in none of these figures: %s.", len(names), output.Many(len(runs), "run"), strings.Join(names, ", "))}
}

// settings are completed runs that differ in nothing but size and repeat.
func settings(runs []record.Run) []alike {
	around := surroundings(differingAxes(runs))
	return group(runs, func(r *record.Run) string { return around(r) + knobsText(r.Environment.Knobs, "") })
}

// differingAxes are those in which runs differ.
func differingAxes(runs []record.Run) []axis {
	var differing []axis
	for _, a := range axes {
		if _, same := common(runs, a); !same {
			differing = append(differing, a)
		}
	}
	return differing
}

func headline(runs []*record.Run, d *doubts) string {
	r := runs[0]
	figure := func(path string, value func(*record.Run) *float64, print func(*float64) string) string {
		return rangeText(runs, value, print) + d.markAll(runs, path)
	}
	control := orAbsent(r.Environment.ControlPlane.Name)
	bound := ""
	if slices.ContainsFunc(runs, waited) {
		bound = "at least "
	}
	heap := liveHeap(runs)
	text := fmt.Sprintf("%s needed %s cores of %s on average while rolling out, %s%s at its peak (%s CPU-seconds", output.Many(r.Spec.Pods, "pod"),
		figure("controlPlane.rollout.cores.mean", usageFigure(record.PhaseRollout, func(u *record.Usage) *float64 { return orEmpty(u.Cores).Mean }), number), control,
		bound, figure("controlPlane.rollout.cores.peak", usageFigure(record.PhaseRollout, func(u *record.Usage) *float64 { return orEmpty(u.Cores).Peak }), number),
		figure("controlPlane.rollout.cpuSeconds", usageFigure(record.PhaseRollout, func(u *record.Usage) *float64 { return u.CPUSeconds }), number))
	text += fmt.Sprintf("; converged after %s), and %s afterwards; its memory peaked at %s and was %s afterwards, %s of it live heap%s",
		figure("phases.rollout", (*record.Run).RolloutSeconds, seconds),
		figure("controlPlane.steady.cores.mean", usageFigure(record.PhaseSteady, func(u *record.Usage) *float64 { return orEmpty(u.Cores).Mean }), number),
		figure("controlPlane.rollout.memoryBytes.peak", usageFigure(record.PhaseRollout, func(u *record.Usage) *float64 { return orEmpty(u.MemoryBytes).Peak }), bytes),
		figure("controlPlane.steady.memoryBytes.mean", usageFigure(record.PhaseSteady, func(u *record.Usage) *float64 { return orEmpty(u.MemoryBytes).Mean }), bytes),
		figure(heap.path, heap.value, bytes), heap.after)
	text += fmt.Sprintf(". Knobs: %s", knobsText(r.Environment.Knobs, r.Spec.Mode))
	if len(runs) > 1 {
		text += fmt.Sprintf("; mean of %d runs, and from where to where they lay", len(runs))
	}
	return text + "."
}

// heapFigure is where a record says how much of its memory the control plane needed.
type heapFigure struct {
	path  string
	value func(*record.Run) *float64
	after string // what that is after, in words
}

// liveHeap is what collections left that were asked for after steady, where every run
// has that: what the last one of its own found may be of the rollout.
func liveHeap(runs []*record.Run) heapFigure {
	collected := usageFigure(record.PhaseSteady, func(u *record.Usage) *float64 { return orEmpty(u.HeapBytes).Collected })
	if !slices.ContainsFunc(runs, func(r *record.Run) bool { return collected(r) == nil }) {
		return heapFigure{"controlPlane.steady.heapBytes.collected", collected, " after a garbage collection"}
	}
	return heapFigure{"controlPlane.steady.heapBytes.mean", usageFigure(record.PhaseSteady, func(u *record.Usage) *float64 { return orEmpty(u.HeapBytes).Mean }), ""}
}

// waited says whether the control plane waited for processors for much of the
// rollout: its peak is a lower bound then.
func waited(r *record.Run) bool {
	share := usage(r.ControlPlane, record.PhaseRollout).Saturation
	return share != nil && *share > record.Saturated
}

// rangeText prints what runs have: one as it is, several as their mean and where
// they lay.
func rangeText(runs []*record.Run, value func(*record.Run) *float64, print func(*float64) string) string {
	of := spread(runs, value)
	if of == nil {
		return absent
	}
	mean, low, high := print(&of.mean), print(&of.low), print(&of.high)
	if low == high {
		return mean
	}
	return fmt.Sprintf("%s (%s to %s)", mean, low, high)
}

// values are where the figures of several runs lay.
type values struct{ mean, low, high float64 }

// spread is nil when none of runs has the figure.
func spread(runs []*record.Run, value func(*record.Run) *float64) *values {
	var of *values
	n := 0.0
	for _, r := range runs {
		v := value(r)
		if v == nil {
			continue
		}
		if of == nil {
			of = &values{low: *v, high: *v}
		}
		n++
		of.mean += *v
		of.low, of.high = min(of.low, *v), max(of.high, *v)
	}
	if of != nil {
		of.mean /= n
	}
	return of
}

// short names a setting of the knobs as shortly as it can be told.
func short(r *record.Run) string {
	if r.Spec.Mode != "" {
		return r.Spec.Mode
	}
	k := r.Environment.Knobs
	return strings.Join([]string{orAbsent(k.MTLS), orAbsent(k.Scope), orAbsent(k.Authz)}, "/")
}
