package report

import "scaler.mesh/scaler/pkg/record"

// cycle shows the needs of a steady mesh in which connections are closed at their maximum
// age.
func (r *runReport) cycle() table {
	t := table{Head: plain("steady mesh with reconnects", "sidecars", "age", "renewals", "cores, steady", "with reconnects", "CPU time of a cycle", "came back", "reconnect p50", "p99", "lost")}
	c := r.run.Cycle
	if c == nil {
		return t
	}
	steady := usage(r.run.ControlPlane, record.PhaseSteady)
	t.Add(r.mark("cycle", "").on("cycle"),
		unmarked(count(&c.Sidecars)), unmarked(seconds(&c.AgeSeconds)), unmarked(count(&c.Renewals)),
		r.mark("controlPlane.steady.cores.mean", "").on(number(orEmpty(steady.Cores).Mean)), r.mark("cycle.cores", "cycle").on(number(c.Cores)),
		r.mark("cycle.cpuSeconds", "cycle").on(seconds(c.CPUSeconds)), r.mark("cycle.returned", "cycle").on(count(c.Returned)),
		r.mark("cycle.reconnect.p50", "cycle").on(quantile(c.Reconnect, orEmpty(c.Reconnect).P50)),
		r.mark("cycle.reconnect.p99", "cycle").on(quantile(c.Reconnect, orEmpty(c.Reconnect).P99)),
		r.mark("cycle.reconnect.lost", "cycle").on(count(&orEmpty(c.Reconnect).Lost)))
	return t
}
