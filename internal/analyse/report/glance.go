package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// glance returns the overview table at the head of a page: a row for each size and
// setting, and one for each run that did not complete.
func glance(runs []record.Run, d *warnings) grid {
	g := grid{Name: "The figures of each size and mode", Left: 1}
	for _, head := range []string{"pods", "mode", "rollout time", "CPU time", "cores, mean", "memory, peak", "complete configuration, p50", "p99", "push, p50", "lost", "limits"} {
		g.Head = append(g.Head, cell{Text: head})
	}
	groups := settings(runs)
	names := settingNames(groups)
	for i, of := range groups {
		for _, size := range of.sizes() {
			g.Rows = append(g.Rows, glanceRow(runs, ofSize(of.runs, size), names[i], d))
		}
	}
	for i := range runs {
		if r := &runs[i]; r.Status != record.StatusCompleted {
			g.Rows = append(g.Rows, glanceRow(runs, []*record.Run{r}, shortKnobs(r)+", "+orAbsent(string(r.Status)), d))
		}
	}
	return g
}

// glancePaths are the figures of a row of the overview table.
var glancePaths = []string{
	"phases.rollout", "controlPlane.rollout.cpuSeconds", "controlPlane.rollout.cores.mean", "controlPlane.rollout.memoryBytes.peak",
	"latencies.completeConfiguration.p50", "latencies.completeConfiguration.p99", "latencies.completeConfiguration.lost", "latencies.certificate.lost",
}

func glanceRow(all []record.Run, runs []*record.Run, name string, d *warnings) []cell {
	first := runs[0]
	size := count(new(first.PodCount()))
	if first.PodCount() == 0 {
		size = absent
	}
	if len(runs) > 1 {
		size += " × " + output.Many(len(runs), "run")
	}
	rollout := rangeText(runs, (*record.Run).RolloutSeconds, seconds)
	if len(runs) == 1 {
		rollout = rolloutText(first)
	}
	rolloutUsage := func(of func(*record.Usage) *float64, print func(*float64) string) string {
		return rangeText(runs, usageFigure(record.PhaseRollout, of), print)
	}
	configuration := func(r *record.Run) *record.Latency { return r.Latencies.CompleteConfiguration }
	texts := []string{
		size, name, rollout,
		rolloutUsage(func(u *record.Usage) *float64 { return u.CPUSeconds }, seconds),
		rolloutUsage(func(u *record.Usage) *float64 { return orEmpty(u.Cores).Mean }, number),
		rolloutUsage(func(u *record.Usage) *float64 { return orEmpty(u.MemoryBytes).Peak }, bytes),
		quantileOf(runs, configuration, func(l *record.Latency) *float64 { return l.P50 }),
		quantileOf(runs, configuration, func(l *record.Latency) *float64 { return l.P99 }),
		quantileOf(runs, slowestPush, func(l *record.Latency) *float64 { return l.P50 }),
		lostOf(runs),
	}
	row := plainCells(texts)
	row[0].Href = "#" + runID(slices.IndexFunc(all, func(r record.Run) bool { return r.Name == first.Name && r.Dir == first.Dir }))
	paths := slices.Clone(glancePaths)
	for _, kind := range changeKinds {
		for _, figure := range []string{"p50", "lost"} {
			paths = append(paths, "latencies.push."+string(kind)+"."+figure)
		}
	}
	return append(row, d.limitsCell(d.markAll(runs, paths...)))
}

func runID(index int) string { return "run-" + strconv.Itoa(index+1) }

// slowestPush returns the push latency of the kind of change that took longest at p50; a
// kind whose p50 is lost takes longer than all others. In place of a push that is not known it
// takes the one from the write, an upper bound. It does not use p99, which few
// changes do not determine.
func slowestPush(r *record.Run) *record.Latency {
	var slowest *record.Latency
	for _, kind := range changeKinds {
		l := r.Latencies.Push[kind]
		if l.Unknown() {
			l = r.Latencies.PushFromWrite[kind] // an upper bound
		}
		if l == nil || l.P50 == nil && l.Lost == 0 {
			continue
		}
		if slowest == nil || slowest.P50 != nil && (l.P50 == nil || *l.P50 > *slowest.P50) {
			slowest = l
		}
	}
	return slowest
}

// quantileOf formats a quantile of several runs: the mean and the range, or the number of
// runs in which it is lost.
func quantileOf(runs []*record.Run, which func(*record.Run) *record.Latency, of func(*record.Latency) *float64) string {
	if len(runs) == 1 {
		l := which(runs[0])
		if l == nil {
			return absent
		}
		return quantile(l, of(l))
	}
	lost := 0
	for _, r := range runs {
		if l := which(r); l != nil && l.Lost > 0 && of(l) == nil {
			lost++
		}
	}
	if lost > 0 {
		return fmt.Sprintf("lost in %d of %d", lost, len(runs))
	}
	return rangeText(runs, func(r *record.Run) *float64 { return of(orEmpty(which(r))) }, seconds)
}

// lostOf formats the number of observations that runs lost altogether.
func lostOf(runs []*record.Run) string {
	var lost *int64
	for _, r := range runs {
		latencies := []*record.Latency{r.Latencies.Certificate, r.Latencies.CompleteConfiguration}
		for _, kind := range changeKinds {
			latencies = append(latencies, r.Latencies.Push[kind])
		}
		for _, l := range latencies {
			if l == nil {
				continue
			}
			if lost == nil {
				lost = new(int64)
			}
			*lost += l.Lost
		}
	}
	return count(lost)
}

// glanceNote explains the table's columns.
func glanceNote(runs []record.Run) string {
	var controlPlane string
	for i := range runs {
		controlPlane = orAbsent(runs[i].Environment.ControlPlane.Name)
	}
	if _, same := common(runs, axes[0]); !same {
		controlPlane = "the control plane"
	}
	note := "CPU time, cores and memory are of " + controlPlane + " during the rollout. Complete configuration: from a sidecar's first request to the last resource that it needs. " +
		"Push: the slowest kind of change, from the change to the sidecar. Lost: certificates, configurations and pushes that had not come by the time limit. Limits: what limits figures of the row."
	var all []*record.Run
	for i := range runs {
		all = append(all, &runs[i])
	}
	return ofProxies(strings.TrimSpace(note), all...)
}
