package record

// prometheusFigures are those of a PrometheusUsage in addition to a Usage's.
var prometheusFigures = []FigureOf[PrometheusUsage]{
	{Figure: Figure{
		Path: "cpuSecondsLow", Unit: UnitSeconds, Label: "CPU time, at least", Counts: "phase", Better: BetterLower,
		Definition: "The least that processor time was in the phase, by the samples.",
	}, Of: func(u *PrometheusUsage) *float64 { return u.CPUSecondsLow }},
	{Figure: Figure{
		Path: "cpuSecondsHigh", Unit: UnitSeconds, Label: "CPU time, at most", Counts: "phase", Better: BetterLower,
		Definition: "The most that processor time was in the phase, by the samples.",
	}, Of: func(u *PrometheusUsage) *float64 { return u.CPUSecondsHigh }},
	{Figure: Figure{
		Path: "samples", Unit: UnitCount, Label: "samples", Counts: "sample", Better: BetterNeither,
		Definition: "Samples of processor time that lie in the phase, added over pods.",
	}, Of: func(u *PrometheusUsage) *float64 { return whole(&u.Samples) }},
}

// prometheusSourceFigures are those of a PrometheusSource itself.
var prometheusSourceFigures = []FigureOf[PrometheusSource]{
	{Figure: Figure{
		Path: "intervalSeconds", Unit: UnitSeconds, Label: "interval", Counts: "run", Better: BetterNeither,
		Definition: "Median time between two samples of processor time of a pod.",
	}, Of: func(s *PrometheusSource) *float64 { return &s.IntervalSeconds }},
	{Figure: Figure{
		Path: "longestGapSeconds", Unit: UnitSeconds, Label: "longest gap", Counts: "run", Better: BetterNeither,
		Definition: "Longest time between two samples of processor time of a pod.",
	}, Of: func(s *PrometheusSource) *float64 { return &s.LongestGapSeconds }},
	{Figure: Figure{
		Path: "olderSeconds", Unit: UnitSeconds, Label: "before timestamp", Counts: "run", Better: BetterNeither,
		Definition: "How long before its timestamp the moment of a value may be.",
	}, Of: func(s *PrometheusSource) *float64 { return &s.OlderSeconds }},
	{Figure: Figure{
		Path: "newerSeconds", Unit: UnitSeconds, Label: "after timestamp", Counts: "run", Better: BetterNeither,
		Definition: "How long after its timestamp the moment of a value may be.",
	}, Of: func(s *PrometheusSource) *float64 { return &s.NewerSeconds }},
}

// prometheusComparedFigures are those of a PrometheusCompared.
var prometheusComparedFigures = []FigureOf[PrometheusCompared]{
	{Figure: Figure{
		Path: "seconds", Unit: UnitSeconds, Label: "time compared", Counts: "run", Better: BetterNeither,
		Definition: "Time from the first sample of the pod in the run's phases to the last.",
	}, Of: func(c *PrometheusCompared) *float64 { return &c.Seconds }},
	{Figure: Figure{
		Path: "cpuSeconds", Unit: UnitSeconds, Label: "CPU time by the samples", Counts: "run", Better: BetterLower,
		Definition: "Processor time in that time, by the samples.",
	}, Of: func(c *PrometheusCompared) *float64 { return &c.CPUSeconds }},
	{Figure: Figure{
		Path: "ownCPUSecondsLow", Unit: UnitSeconds, Label: "CPU time by scaler, at least", Counts: "run", Better: BetterLower,
		Definition: "The least that processor time was in that time, by the program's own metrics as scaler read them.",
	}, Of: func(c *PrometheusCompared) *float64 { return &c.OwnCPUSecondsLow }},
	{Figure: Figure{
		Path: "ownCPUSecondsHigh", Unit: UnitSeconds, Label: "CPU time by scaler, at most", Counts: "run", Better: BetterLower,
		Definition: "The most that processor time was in that time, by the program's own metrics as scaler read them.",
	}, Of: func(c *PrometheusCompared) *float64 { return &c.OwnCPUSecondsHigh }},
	{Figure: Figure{
		Path: "memoryBytes", Unit: UnitBytes, Label: "memory by the samples", Counts: "run", Better: BetterLower,
		Definition: "Mean of the samples of resident memory in that time.",
	}, Of: func(c *PrometheusCompared) *float64 { return c.MemoryBytes }},
	{Figure: Figure{
		Path: "ownMemoryBytesLow", Unit: UnitBytes, Label: "memory by scaler, low", Counts: "run", Better: BetterLower,
		Definition: "Mean of the lower of mean and last resident memory around the moments of these samples, by the program's own metrics as scaler read them. It may have been less.",
	}, Of: func(c *PrometheusCompared) *float64 { return c.OwnMemoryBytesLow }},
	{Figure: Figure{
		Path: "ownMemoryBytesHigh", Unit: UnitBytes, Label: "memory by scaler, at most", Counts: "run", Better: BetterLower,
		Definition: "Mean of the greatest resident memory around the moments of these samples, by the program's own metrics as scaler read them.",
	}, Of: func(c *PrometheusCompared) *float64 { return c.OwnMemoryBytesHigh }},
}

// clusterPrometheus are the figures of ClusterPrometheus.
func clusterPrometheus(usage []node[Usage]) []node[ClusterPrometheus] {
	one := append(leaves(prometheusFigures), at(place{list: usageList}, func(u *PrometheusUsage) *Usage { return &u.Usage }, usage))
	source := append(leaves(prometheusSourceFigures),
		each(place{path: "controlPlane.PHASE", label: "control plane: "}, "PHASE", func(s *PrometheusSource) []named[PrometheusUsage] { return phased(&s.ControlPlane) }, one),
		each(place{path: "each.PROGRAM", label: "PROGRAM: "}, "PROGRAM", func(s *PrometheusSource) []named[PrometheusPod] { return pointed(s.Each) }, []node[PrometheusPod]{
			each(place{path: "usage.PHASE"}, "PHASE", func(p *PrometheusPod) []named[PrometheusUsage] { return phased(&p.Usage) }, one),
			at(place{path: "compared"}, func(p *PrometheusPod) *PrometheusCompared { return p.Compared }, leaves(prometheusComparedFigures)),
		}))
	return []node[ClusterPrometheus]{
		at(place{path: "ownMetrics", label: "own metrics by the cluster's Prometheus, "}, func(c *ClusterPrometheus) *PrometheusSource { return c.OwnMetrics }, source),
		at(place{path: "cadvisor", label: "cAdvisor by the cluster's Prometheus, "}, func(c *ClusterPrometheus) *PrometheusSource { return c.Cadvisor }, source),
	}
}
