package report

import (
	"maps"
	"slices"

	"scaler.mesh/scaler/pkg/record"
)

// containerColumns are the figures shown for each container of the control plane.
var containerColumns = []usageFigureColumn{
	{"CPU time rollout", record.PhaseRollout, "cpuSeconds"},
	{"cores steady", record.PhaseSteady, "cores.mean"},
	{"memory peak rollout", record.PhaseRollout, "memoryBytes.peak"},
	{"memory mean steady", record.PhaseSteady, "memoryBytes.mean"},
	{"working set peak rollout", record.PhaseRollout, "workingSetBytes.peak"},
}

// containers shows cAdvisor's figures of the control plane's containers, together and
// each, compared with the control plane's own metrics over the same time.
func (r *runReport) containers() table {
	c := r.run.Containers
	if c == nil {
		return table{}
	}
	t := table{Head: append([]marked{r.mark("containers", "").on("by cAdvisor")}, heads(containerColumns)...)}
	t.Head = append(t.Head, plain("CPU time, run", "own metrics", "memory, run", "own metrics")...)
	row := func(name string, usage *record.ByPhase[*record.ContainerUsage], compared *record.ContainerCompared) {
		cells := plain(name)
		for _, column := range containerColumns {
			within := "containers." + string(column.phase)
			u := &orEmpty(*usage.At(column.phase)).Usage
			cells = append(cells, r.mark(within, "containers").on(usageText(u, column.path)))
		}
		texts := []string{absent, absent, absent, absent}
		if o := compared; o != nil {
			texts = []string{seconds(&o.CPUSeconds), seconds(&o.OwnCPUSeconds), bytes(&o.MemoryBytes), bytes(&o.OwnMemoryBytes)}
		}
		t.Add(append(cells, plain(texts...)...)...)
	}
	row("all", &c.ControlPlane, nil)
	for _, pod := range slices.Sorted(maps.Keys(c.Each)) {
		row(pod, &c.Each[pod].Usage, c.Each[pod].Compared)
	}
	return t
}

// clusterPrometheus shows the figures that a Prometheus of the cluster has of the control
// plane's pods, compared with scaler's readings over the same time. Where processor time
// is not known, it shows its limits.
func (r *runReport) clusterPrometheus() table {
	c := orEmpty(r.run.ClusterPrometheus)
	t := table{Head: append([]marked{r.mark("clusterPrometheus", "").on("by the cluster's Prometheus")}, heads(containerColumns)...), Left: 1}
	t.Head = slices.Insert(append(t.Head, plain("CPU time, run", "by scaler", "memory, run", "by scaler")...), 1, unmarked("metrics, interval"))
	for i, source := range []*record.PrometheusSource{c.OwnMetrics, c.Cadvisor} {
		path := []string{"ownMetrics", "cadvisor"}[i]
		if source == nil {
			continue
		}
		above := "clusterPrometheus." + path
		row := func(pod string, usage *record.ByPhase[*record.PrometheusUsage], o *record.PrometheusCompared) {
			cells := plain(pod, path+", "+seconds(&source.IntervalSeconds))
			for _, column := range containerColumns {
				u := orEmpty(*usage.At(column.phase))
				text := usageText(&u.Usage, column.path)
				if column.path == "cpuSeconds" && u.CPUSeconds == nil && u.CPUSecondsHigh != nil {
					text = seconds(u.CPUSecondsLow) + " to " + seconds(u.CPUSecondsHigh)
				}
				cells = append(cells, r.mark(above+"."+string(column.phase), above).on(text))
			}
			texts := []string{absent, absent, absent, absent}
			if o != nil {
				texts = []string{seconds(&o.CPUSeconds), seconds(&o.OwnCPUSecondsLow) + " to " + seconds(&o.OwnCPUSecondsHigh), bytes(o.MemoryBytes), absent}
				if o.OwnMemoryBytesLow != nil {
					texts[3] = bytes(o.OwnMemoryBytesLow) + " to " + bytes(o.OwnMemoryBytesHigh)
				}
			}
			t.Add(append(cells, plain(texts...)...)...)
		}
		row("all", &source.ControlPlane, nil)
		for _, pod := range slices.Sorted(maps.Keys(source.Each)) {
			row(pod, &source.Each[pod].Usage, source.Each[pod].Compared)
		}
	}
	return t
}
