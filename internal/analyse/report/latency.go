package report

import (
	"fmt"
	"slices"
	"strconv"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/pkg/record"
)

// certificateRows returns the distributions of certificates after each pod's first.
func certificateRows(c *record.Certificates) []latencyRow {
	if c == nil {
		return nil
	}
	rows := []latencyRow{{name: "certificate: renewals", path: "certificates.renewals", value: c.Renewals}}
	if c.Storm != nil {
		rows = append(rows, latencyRow{name: "certificate: storm", path: "certificates.storm.latency", value: c.Storm.Latency})
	}
	return rows
}

// latencies shows the distributions of how pods and sidecars start and, if missing, also
// those that every rollout should have.
func (r *runReport) latencies(missing bool) table {
	return r.latencyTable("latency", missing, func(row latencyRow) bool { return !ofChanges(row) })
}

// changeLatencies shows the distributions of changes that were made and followed.
func (r *runReport) changeLatencies() table {
	return r.latencyTable("latency of changes", false, ofChanges)
}

// ofChanges reports whether a row is of changes.
func ofChanges(row latencyRow) bool {
	return slices.ContainsFunc([]string{"push", "pushFromWrite", "propagation", "clusterPart"}, func(of string) bool { return record.Within(row.path, "latencies."+of) })
}

// explained shows the share of the push latency that the control plane's own push metrics
// account for.
func (r *runReport) explained() table {
	t := table{Head: plain("own metrics", "stages of a push, mean", "followed pushes, mean", "share")}
	if e := r.run.Latencies.Explained; e != nil {
		mark := func(name string) marks { return r.mark("latencies.explained."+name, "latencies.explained") }
		t.Add(r.mark("latencies.explained", "latencies").on(orAbsent(r.run.Environment.ControlPlane.Name)),
			mark("ownSeconds").on(seconds(&e.OwnSeconds)), mark("pushSeconds").on(seconds(&e.PushSeconds)), mark("share").on(percent(&e.Share)))
	}
	return t
}

// unknown is the text for a quantile with too few changes, and for a latency whose start was
// seen after its end.
const unknown = "unknown"

// changes shows the quantiles of the pushes of each kind of change, with intervals by
// resampling changes: the observations that many sidecars make of one change are not
// independent.
func (r *runReport) changes() table {
	t := table{Head: plain("push", "changes", "p50", "95% interval", "p90", "95% interval", "p99", "95% interval")}
	for _, kind := range changeKinds {
		l, i := r.run.Latencies.Push[kind], r.run.Latencies.PushIntervals[kind]
		if l.Unknown() {
			t.Add(r.unknownPush(kind)...)
			continue
		}
		if l == nil || i == nil {
			continue
		}
		path := "latencies.push." + string(kind)
		cells := []marked{r.mark(path, "latencies").on(string(kind)), unmarked(strconv.Itoa(i.Changes))}
		for _, q := range []struct {
			name     string
			value    *float64
			share    float64
			interval *record.QuantileInterval
		}{{"p50", l.P50, 0.5, i.P50}, {"p90", l.P90, 0.9, i.P90}, {"p99", l.P99, 0.99, i.P99}} {
			text := quantile(l, q.value)
			if q.name == "p99" && r.run.Latencies.WithholdsP99(kind) {
				text = tooFewChanges(record.ChangesForP99)
			}
			cells = append(cells, r.mark(path+"."+q.name, path).on(text), unmarked(changesInterval(l, q.interval, q.share)))
		}
		t.Add(cells...)
	}
	return t
}

// unknownPush returns the row of a kind of change whose push is not known: that from the write
// instead, without intervals.
func (r *runReport) unknownPush(kind record.ChangeKind) []marked {
	fromWrite := r.run.Latencies.PushFromWrite[kind]
	text := func(of func(*record.Latency) *float64, name string) string {
		switch {
		case fromWrite == nil:
			return unknown
		case name == "p99" && r.run.Latencies.WithholdsP99(kind):
			return tooFewChanges(record.ChangesForP99)
		}
		return quantile(fromWrite, of(fromWrite))
	}
	name := string(kind)
	if fromWrite != nil {
		name += ", from the write"
	}
	changes := r.run.Latencies.Changes(kind)
	return []marked{
		r.mark("latencies.push."+string(kind), "latencies").on(name), unmarked(count(&changes)),
		unmarked(text(p50, "p50")), unmarked(unknown),
		unmarked(text(func(l *record.Latency) *float64 { return l.P90 }, "p90")), unmarked(unknown),
		unmarked(text(p99, "p99")), unmarked(unknown),
	}
}

// tooFewChanges states why a figure of changes is unknown.
func tooFewChanges(needed int) string { return fmt.Sprintf("%s, below %d changes", unknown, needed) }

// changesInterval prints an interval of a quantile of pushes.
func changesInterval(l *record.Latency, i *record.QuantileInterval, q float64) string {
	if i == nil {
		return tooFewChanges(stats.ClustersNeeded(q))
	}
	return quantile(l, i.Low) + " to " + quantile(l, i.High)
}

// latencyTable shows the distributions of a kind that were measured and, if missing, also
// those that every rollout should have.
func (r *runReport) latencyTable(title string, missing bool, kind func(latencyRow) bool) table {
	t := table{Head: append([]marked{r.mark("latencies", "").on(title)}, plain("count", "lost", "p50", "p90", "p99", "max")...)}
	for _, row := range append(latencyRows(&r.run.Latencies), certificateRows(r.run.Certificates)...) {
		if !kind(row) {
			continue
		}
		l := row.value
		if l == nil {
			if row.always && missing {
				t.Add(append([]marked{r.mark(row.path, "latencies").on(row.name)}, plain(absent, absent, absent, absent, absent, absent)...)...)
			}
			continue
		}
		figure := func(v *float64, name string) marked {
			return r.mark(row.path+"."+name, row.path).on(row.quantile(name, v))
		}
		t.Add(r.mark(row.path, "latencies").on(row.name), unmarked(count(&l.Count)),
			r.mark(row.path+".lost", row.path).on(count(&l.Lost)),
			figure(l.P50, "p50"), figure(l.P90, "p90"), figure(l.P99, "p99"), r.mark(row.path+".max", row.path).on(greatest(l)))
	}
	return t
}

// greatest prints the maximum of a latency.
func greatest(l *record.Latency) string {
	if l.Unknown() {
		return unknown
	}
	return seconds(l.Max)
}

// quantile prints a quantile of the row by its name.
func (row latencyRow) quantile(name string, v *float64) string {
	if row.withheld && (name == "p99" || name == "p999") {
		return unknown
	}
	return quantile(row.value, v)
}

// quantile formats a quantile. A lost one is only known to be greater than all received
// ones, and is printed as that bound.
func quantile(l *record.Latency, v *float64) string {
	switch {
	case l.Unknown():
		return unknown
	case v != nil:
		return seconds(v)
	case l != nil && l.Lost > 0 && l.Max != nil:
		return ">" + seconds(l.Max)
	case l != nil && l.Lost > 0:
		return "lost"
	default:
		return absent
	}
}
