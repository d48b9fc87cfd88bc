package report

import (
	"fmt"

	"scaler.mesh/scaler/pkg/record"
)

// faultOutcomes is the number of columns of faults that show the outcome; the others show
// the cost.
const faultOutcomes = 7

// faults returns a row for each fault: its outcome and its cost.
func (r *runReport) faults() table {
	t := table{Head: plain("fault", "in", "lasted", "converged after", "reconnected", "last back", "replaced", "attempts", "refusals", "CPU time", "cores, mean", "peak"), Left: 1}
	for i, f := range r.run.Faults {
		path := fmt.Sprintf("faults.%d", i)
		usage := orEmpty(f.ControlPlane)
		t.Add(r.mark(path, "").on(f.Name), unmarked(string(f.Phase)),
			r.mark(path+".lastedSeconds", path).on(seconds(f.LastedSeconds)),
			r.mark(path+".seconds", path).on(seconds(f.Seconds)),
			r.mark(path+".reconnected", path).on(count(f.Reconnected)),
			r.mark(path+".latencies.reconnect", path).on(lastOf(f.Latencies.Reconnect)),
			r.mark(path+".replaced", path).on(count(f.Replaced)),
			r.mark(path+".attempts", path).on(count(f.Attempts)),
			r.mark(path+".refusals", path).on(count(f.Refusals)),
			r.mark(path+".controlPlane", path).on(seconds(usage.CPUSeconds)),
			unmarked(number(orEmpty(usage.Cores).Mean)), unmarked(number(orEmpty(usage.Cores).Peak)))
	}
	return t
}

// disturbances returns a sentence for each fault of a run, about its recovery.
func disturbances(run *record.Run, d *warnings) []marked {
	var all []marked
	for i, f := range run.Faults {
		text := fmt.Sprintf("After %s in %s the mesh did not converge again within the time limit.", f.Name, f.Phase)
		if f.Seconds != nil {
			text = fmt.Sprintf("After %s in %s the mesh converged again within %s.", f.Name, f.Phase, seconds(f.Seconds))
		}
		all = append(all, d.mark(run, fmt.Sprintf("faults.%d.seconds", i), "").on(text))
	}
	return all
}

// churn shows how the pods that replaced others started.
func (r *runReport) churn() table {
	t := table{Head: plain("churn", "offered/s", "achieved/s", "replaced", "converged after", "pod ready p50", "p99", "certificate p99", "complete p50", "p99", "lost")}
	c := r.run.Churn
	if c == nil {
		return t
	}
	ready, certificate, complete := orEmpty(c.Latencies.PodReady), orEmpty(c.Latencies.Certificate), orEmpty(c.Latencies.CompleteConfiguration)
	t.Add(append([]marked{
		r.mark("churn", "").on("pods replaced"),
		unmarked(number(c.OfferedPerSecond)), r.mark("churn.achievedPerSecond", "churn").on(number(c.AchievedPerSecond)),
		r.mark("churn.replaced", "churn").on(count(c.Replaced)),
		r.mark("churn.seconds", "churn").on(seconds(c.Seconds)),
	}, plain(
		quantile(ready, ready.P50), quantile(ready, ready.P99), quantile(certificate, certificate.P99),
		quantile(complete, complete.P50), quantile(complete, complete.P99), count(&complete.Lost))...)...)
	return t
}

// lastOf returns the maximum of a distribution, which is unknown if observations were
// lost.
func lastOf(l *record.Latency) string {
	if orEmpty(l).Lost > 0 {
		return quantile(l, nil)
	}
	return seconds(orEmpty(l).Max)
}
