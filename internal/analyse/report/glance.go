package report

import (
	"fmt"
	"math"
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
	rows := glanceRows(runs)
	columns := glanceColumns(rows)
	for _, c := range columns {
		g.Head = append(g.Head, cell{Text: c.head})
	}
	g.Head = append(g.Head, cell{Text: "limits"})
	for _, of := range rows {
		row := plainCells(of.texts(columns, rangeText))
		first := of.runs[0]
		row[0].Href = "#" + runID(slices.IndexFunc(runs, func(r record.Run) bool { return r.Name == first.Name && r.Dir == first.Dir }))
		g.Rows = append(g.Rows, append(row, d.limitsCell(of.marks(d))))
	}
	return g
}

// glanceTable returns the overview as a text has it: in the columns that fit there, with spreads in percent.
func glanceTable(rows []glanced, d *warnings) table {
	t := table{Left: 1}
	var columns []glanceColumn
	for _, c := range glanceColumns(rows) {
		if c.short != "" {
			columns = append(columns, c)
			t.Head = append(t.Head, unmarked(c.short))
		}
	}
	t.Head = append(t.Head, unmarked("limits"))
	for _, of := range rows {
		row := plain(of.texts(columns, deviationText)...)
		marks := of.marks(d)
		t.Add(append(row, limitsText(marks))...)
		t.marks = append(t.marks, marks...)
	}
	return t
}

// limitsText returns the column that states what limits the figures of a row.
func limitsText(m marks) marked {
	if len(m) == 0 {
		return unmarked("none")
	}
	return unmarked(strings.TrimSpace(m.String()))
}

// glanced is a row of the overview: the completed runs of one size and setting, or a run that did not complete.
type glanced struct {
	runs []*record.Run
	name string // of the setting
}

// glanceRows returns the rows of the overview.
func glanceRows(runs []record.Run) []glanced {
	var rows []glanced
	groups := settings(runs)
	names := settingNames(groups)
	for i, of := range groups {
		for _, size := range of.sizes() {
			rows = append(rows, glanced{ofSize(of.runs, size), names[i]})
		}
	}
	for i := range runs {
		if r := &runs[i]; r.Status != record.StatusCompleted {
			rows = append(rows, glanced{[]*record.Run{r}, shortKnobs(r) + ", " + orAbsent(string(r.Status))})
		}
	}
	return rows
}

// ranged formats a figure of one run, or its mean and spread of several.
type ranged func(runs []*record.Run, f figure) string

// deviationText formats the figure of one run, or the mean of several and the largest deviation from it,
// in percent.
func deviationText(runs []*record.Run, f figure) string {
	of := spread(runs, f.value)
	if of == nil {
		return absent
	}
	text := f.print(&of.mean)
	if len(runs) < 2 || of.mean == 0 {
		return text
	}
	return fmt.Sprintf("%s ±%.0f%%", text, 100*max(of.high-of.mean, of.mean-of.low)/math.Abs(of.mean))
}

// glanceColumn is a column of the overview.
type glanceColumn struct {
	head  string
	short string // in a text; "" = a text does not have it
	text  func(g glanced, show ranged) string
}

// glanceColumns returns the columns of an overview of these rows. The column of the limits is added by its callers.
func glanceColumns(rows []glanced) []glanceColumn {
	var completed []*record.Run
	for _, row := range rows {
		if row.runs[0].Status == record.StatusCompleted {
			completed = append(completed, row.runs...)
		}
	}
	cores, name := meanCores(completed, record.PhaseRollout)
	return []glanceColumn{
		{"pods", "pods", func(g glanced, _ ranged) string { return g.size() }},
		{"mode", "mode", func(g glanced, _ ranged) string { return g.name }},
		{"rollout time", "rollout", func(g glanced, show ranged) string {
			if len(g.runs) == 1 {
				return rolloutText(g.runs[0])
			}
			return show(g.runs, rolloutTime)
		}},
		{"CPU time", "", rolloutNeed("cpuSeconds")},
		{name + ", mean", name, rolloutNeed(cores)},
		{"memory, peak", "memory peak", rolloutNeed("memoryBytes.peak")},
		{"complete configuration, p50", "", func(g glanced, show ranged) string {
			return quantileOf(g.runs, completeOf, p50, show)
		}},
		{"p99", "complete p99", func(g glanced, show ranged) string {
			return quantileOf(g.runs, completeOf, p99, show)
		}},
		{"push, p50", "", func(g glanced, show ranged) string {
			return quantileOf(g.runs, slowestPush, p50, show)
		}},
		{"lost", "lost", func(g glanced, _ ranged) string { return lostOf(g.runs) }},
	}
}

func completeOf(r *record.Run) *record.Latency { return r.Latencies.CompleteConfiguration }

func certificateOf(r *record.Run) *record.Latency { return r.Latencies.Certificate }

func p50(l *record.Latency) *float64 { return l.P50 }

func p99(l *record.Latency) *float64 { return l.P99 }

func rolloutNeed(path string) func(glanced, ranged) string {
	f := need(record.PhaseRollout, path)
	return func(g glanced, show ranged) string { return show(g.runs, f) }
}

// RunRow returns the head and the row of a run in a table that grows as the runs of a series end: its name there, how it ended,
// and its figures as the answer about all of them has them. Rows are aligned with each other.
func RunRow(name string, r *record.Run) (head, row string) {
	const first = "%-28s  %-11s"
	var w warnings
	w.add(r)
	g := glanced{runs: []*record.Run{r}}
	head, row = fmt.Sprintf(first, "run", "status"), fmt.Sprintf(first, output.Plain(name), orAbsent(output.Plain(string(r.Status))))
	for _, c := range glanceColumns([]glanced{g}) {
		if c.short == "" || c.head == "pods" || c.head == "mode" { // these are in the name
			continue
		}
		width := max(len(c.short), 7)
		head, row = head+fmt.Sprintf("  %*s", width, c.short), row+fmt.Sprintf("  %*s", width, c.text(g, rangeText))
	}
	limits := "none"
	if n := len(g.marks(&w)); n > 0 {
		limits = output.Many(n, "reason")
	}
	return head + "  limits", row + "  " + limits
}

// texts returns the figures of a row.
func (g glanced) texts(columns []glanceColumn, show ranged) []string {
	var texts []string
	for _, c := range columns {
		texts = append(texts, c.text(g, show))
	}
	return texts
}

// size returns the number of pods, and of runs where there are several.
func (g glanced) size() string {
	size := count(new(g.runs[0].PodCount()))
	if g.runs[0].PodCount() == 0 {
		size = absent
	}
	if len(g.runs) > 1 {
		size += " × " + output.Many(len(g.runs), "run")
	}
	return size
}

// marks returns the marks of the figures of a row.
func (g glanced) marks(d *warnings) marks {
	paths := slices.Clone(glancePaths)
	for _, kind := range changeKinds {
		for _, figure := range []string{"p50", "lost"} {
			paths = append(paths, "latencies.push."+string(kind)+"."+figure)
		}
	}
	return d.markAll(g.runs, paths...)
}

// glancePaths are the figures of a row of the overview table.
var glancePaths = []string{
	"phases.rollout", "controlPlane.rollout.cpuSeconds", "controlPlane.rollout.cores.mean", "controlPlane.rollout.referenceCores", "controlPlane.rollout.memoryBytes.peak",
	"latencies.completeConfiguration.p50", "latencies.completeConfiguration.p99", "latencies.completeConfiguration.lost", "latencies.certificate.lost",
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

// quantileOf formats a quantile of several runs: the mean and the spread, or the number of
// runs in which it is lost.
func quantileOf(runs []*record.Run, which func(*record.Run) *record.Latency, of func(*record.Latency) *float64, show ranged) string {
	if len(runs) == 1 {
		l := which(runs[0])
		return quantile(l, of(orEmpty(l)))
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
	return show(runs, figure{value: func(r *record.Run) *float64 { return of(orEmpty(which(r))) }, print: seconds})
}

// lostOf formats the number of observations that runs lost altogether.
func lostOf(runs []*record.Run) string {
	var latencies []*record.Latency
	for _, r := range runs {
		latencies = append(latencies, certificateOf(r), completeOf(r))
		for _, kind := range changeKinds {
			latencies = append(latencies, r.Latencies.Push[kind])
		}
	}
	return lostText(latencies...)
}

// lostText formats the number of observations that latencies lost altogether.
func lostText(latencies ...*record.Latency) string {
	var lost *int64
	for _, l := range latencies {
		if l == nil {
			continue
		}
		if lost == nil {
			lost = new(int64)
		}
		*lost += l.Lost
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
	return ofProxies(strings.TrimSpace(note), pointers(runs)...)
}
