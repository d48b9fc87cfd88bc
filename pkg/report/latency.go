package report

import (
	"scaler.mesh/scaler/pkg/output"
	"scaler.mesh/scaler/pkg/record"
)

// certificateRows are the distributions of certificates after each pod's first.
func certificateRows(c *record.Certificates) []latencyRow {
	if c == nil {
		return nil
	}
	rows := []latencyRow{{"certificate: renewals", "certificates.renewals", false, c.Renewals}}
	if c.Storm != nil {
		rows = append(rows, latencyRow{"certificate: storm", "certificates.storm.latency", false, c.Storm.Latency})
	}
	return rows
}

func (r *runReport) latencies() output.Table { return r.latencyTable(true) }

// explained has the share of the push latency that the control plane's own push
// metrics account for.
func (r *runReport) explained() output.Table {
	t := output.Table{Head: []string{"own metrics", "stages of a push, mean", "followed pushes, mean", "share"}}
	if e := r.run.Latencies.Explained; e != nil {
		mark := func(name string) string { return r.mark("latencies.explained."+name, "latencies.explained") }
		t.Add(orAbsent(r.run.Environment.ControlPlane.Name)+r.mark("latencies.explained", "latencies"),
			seconds(&e.OwnSeconds)+mark("ownSeconds"), seconds(&e.PushSeconds)+mark("pushSeconds"), percent(&e.Share)+mark("share"))
	}
	return t
}

// latencyTable shows the distributions that were measured and, if missing, also
// those that every rollout should have.
func (r *runReport) latencyTable(missing bool) output.Table {
	t := output.Table{Head: []string{"latency" + r.mark("latencies", ""), "count", "lost", "p50", "p90", "p99", "max"}}
	for _, row := range append(latencyRows(&r.run.Latencies), certificateRows(r.run.Certificates)...) {
		l := row.value
		if l == nil {
			if row.always && missing {
				t.Add(row.name+r.mark(row.path, "latencies"), absent, absent, absent, absent, absent, absent)
			}
			continue
		}
		figure := func(v *float64, name string) string {
			return quantile(l, v) + r.mark(row.path+"."+name, row.path)
		}
		t.Add(row.name+r.mark(row.path, "latencies"), count(&l.Count),
			count(&l.Lost)+r.mark(row.path+".lost", row.path),
			figure(l.P50, "p50"), figure(l.P90, "p90"), figure(l.P99, "p99"), seconds(l.Max)+r.mark(row.path+".max", row.path))
	}
	return t
}

// quantile prints a quantile. One that falls among the lost is only known to be
// greater than all that came, and prints as that bound.
func quantile(l *record.Latency, v *float64) string {
	switch {
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
