package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"scaler.mesh/scaler/pkg/record"
)

// replicaColumns are the figures shown for each replica of a control plane.
var replicaColumns = []usageFigureColumn{
	{"cores rollout", record.PhaseRollout, "cores.mean"},
	{"peak rollout", record.PhaseRollout, "cores.peak"},
	{"CPU time rollout", record.PhaseRollout, "cpuSeconds"},
	{"memory peak rollout", record.PhaseRollout, "memoryBytes.peak"},
	{"cores steady", record.PhaseSteady, "cores.mean"},
	{"memory peak steady", record.PhaseSteady, "memoryBytes.peak"},
	{"restarts rollout", record.PhaseRollout, "restarts"},
}

// replicas shows the usage and the streams of each replica.
func (r *runReport) replicas() table {
	t := table{Head: []marked{r.mark("replicas", "").on("replica")}}
	t.Head = append(t.Head, heads(replicaColumns)...)
	t.Head = append(t.Head, plain("streams rollout", "streams steady", "own count")...)
	each := orEmpty(r.run.Replicas).Each
	for _, name := range slices.Sorted(maps.Keys(each)) {
		one := each[name]
		cells := plain(name)
		for _, c := range replicaColumns {
			// A warning about the figure of all replicas together also applies to each.
			within := "controlPlane." + string(c.phase)
			cells = append(cells, r.mark(within+"."+c.path, within).on(usageText(usage(&one.Usage, c.phase), c.path)))
		}
		own := absent
		if n := one.OwnStreams.Steady; n != nil {
			own = fmt.Sprintf("%.0f", *n)
		}
		t.Add(append(cells, plain(count(one.Streams.Rollout), count(one.Streams.Steady), own)...)...)
	}
	return t
}

// balance shows how evenly streams were spread over the replicas, at the ends of phases
// and after faults.
func (r *runReport) balance() table {
	t := table{Head: plain("streams to replicas", "before", "at the end", "most", "expected", "probability"), Left: 1}
	all := r.run.Replicas
	if all == nil {
		return t
	}
	row := func(at string, before, after string, b *record.Balance) {
		if b == nil {
			t.Add(plain(at, before, after, absent, absent, absent)...)
			return
		}
		t.Add(plain(at, before, after, strconv.Itoa(b.Most), fmt.Sprintf("%.1f", b.Expected), fmt.Sprintf("%.2g", b.Probability))...)
	}
	for _, p := range phasesShown {
		b := *all.Balance.At(p.name)
		if b == nil {
			continue
		}
		var streams []string
		for _, name := range slices.Sorted(maps.Keys(all.Each)) {
			if n := *all.Each[name].Streams.At(p.name); n != nil {
				streams = append(streams, strconv.Itoa(*n))
			}
		}
		row(string(p.name), absent, strings.Join(streams, " "), b)
	}
	for _, f := range r.run.Faults {
		if len(f.Replicas) == 0 {
			continue
		}
		var before, after []string
		for _, name := range slices.Sorted(maps.Keys(f.Replicas)) {
			one := f.Replicas[name]
			before = append(before, strconv.Itoa(one.Before))
			after = append(after, strconv.Itoa(one.After))
		}
		row(f.Name+", "+string(f.Phase), strings.Join(before, " "), strings.Join(after, " "), f.Balance)
	}
	return t
}
