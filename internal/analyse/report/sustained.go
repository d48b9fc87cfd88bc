package report

import "scaler.mesh/scaler/pkg/record"

// changesMade shows the results of changes at a rate.
func (r *runReport) changesMade() table {
	t := table{Head: plain("changes at a rate", "offered/s", "achieved/s", "changes", "missed", "p50", "95% interval", "p99", "lost", "from due p99", "backlog")}
	c := r.run.Change
	if c == nil {
		return t
	}
	push, due, i := orEmpty(c.Push), orEmpty(c.FromDue), orEmpty(c.Intervals)
	p99 := func(path string, l *record.Latency) marked {
		if c.WithholdsP99() {
			return unmarked(tooFewChanges(record.ChangesForP99))
		}
		return r.mark(path, "change").on(quantile(l, l.P99))
	}
	interval := absent
	if c.Intervals != nil && i.P50 != nil {
		interval = changesInterval(push, i.P50, 0.5)
	}
	t.Add(r.mark("change", "").on(c.Kind),
		unmarked(number(c.OfferedPerSecond)), r.mark("change.achievedPerSecond", "change").on(number(c.AchievedPerSecond)),
		unmarked(count(c.Changes)), r.mark("change.missed", "change").on(count(c.Missed)),
		r.mark("change.push.p50", "change").on(quantile(push, push.P50)), unmarked(interval),
		p99("change.push.p99", push), r.mark("change.push.lost", "change").on(count(&push.Lost)), p99("change.fromDue.p99", due),
		r.mark("change.backlogSeconds", "change").on(seconds(c.BacklogSeconds)))
	return t
}

// changesCost shows the cost of each change.
func (r *runReport) changesCost() table {
	t := table{Head: plain("cost of changes", "responses per change", "bytes per change", "CPU time per change", "cores, mean", "peak", "superseded", "late p99", "write p50", "p99")}
	c := r.run.Change
	if c == nil || c.Changes == nil {
		return t
	}
	used := usage(r.run.ControlPlane, record.PhaseChange)
	var each *float64
	if used.CPUSeconds != nil && *c.Changes > 0 {
		each = new(*used.CPUSeconds / float64(*c.Changes))
	}
	t.Add(r.mark("change", "").on(c.Kind),
		r.mark("change.responsesPerChange", "change").on(number(c.ResponsesPerChange)), r.mark("change.bytesPerChange", "change").on(bytes(c.BytesPerChange)),
		r.mark("controlPlane.change.cpuSeconds", "").on(seconds(each)),
		r.mark("controlPlane.change.cores.mean", "").on(number(orEmpty(used.Cores).Mean)), r.mark("controlPlane.change.cores.peak", "").on(number(orEmpty(used.Cores).Peak)),
		unmarked(percent(c.Superseded)),
		r.mark("change.late", "change").on(quantile(c.Late, orEmpty(c.Late).P99)),
		r.mark("change.write", "change").on(quantile(c.Write, orEmpty(c.Write).P50)), r.mark("change.write", "change").on(quantile(c.Write, orEmpty(c.Write).P99)))
	return t
}
