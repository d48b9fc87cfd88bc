package record

// containerFigures are those of a ContainerUsage in addition to a Usage's.
var containerFigures = []FigureOf[ContainerUsage]{
	{Figure: Figure{
		Path: "cpuSecondsLow", Unit: UnitSeconds, Label: "CPU time, at least", Counts: "phase", Better: BetterLower,
		Definition: "Processor time between the readings of cAdvisor that lie inside the phase.",
	}, Of: func(u *ContainerUsage) *float64 { return u.CPUSecondsLow }},
	{Figure: Figure{
		Path: "cpuSecondsHigh", Unit: UnitSeconds, Label: "CPU time, at most", Counts: "phase", Better: BetterLower,
		Definition: "Processor time between the readings of cAdvisor that enclose the phase.",
	}, Of: func(u *ContainerUsage) *float64 { return u.CPUSecondsHigh }},
	{Figure: Figure{
		Path: "readings", Unit: UnitCount, Label: "readings of cAdvisor", Counts: "reading", Better: BetterNeither,
		Definition: "Readings of cAdvisor that lie in the phase, added over containers.",
	}, Of: func(u *ContainerUsage) *float64 { return whole(&u.Readings) }},
}

// comparedFigures are those of a ContainerCompared.
var comparedFigures = []FigureOf[ContainerCompared]{
	{Figure: Figure{
		Path: "seconds", Unit: UnitSeconds, Label: "time compared", Counts: "run", Better: BetterNeither,
		Definition: "Time from cAdvisor's first reading of the container in the run's phases to its last.",
	}, Of: func(c *ContainerCompared) *float64 { return &c.Seconds }},
	{Figure: Figure{
		Path: "cpuSeconds", Unit: UnitSeconds, Label: "CPU time by cAdvisor", Counts: "run", Better: BetterLower,
		Definition: "Processor time of the container in that time, by cAdvisor.",
	}, Of: func(c *ContainerCompared) *float64 { return &c.CPUSeconds }},
	{Figure: Figure{
		Path: "ownCPUSeconds", Unit: UnitSeconds, Label: "CPU time by its own metrics", Counts: "run", Better: BetterLower,
		Definition: "Processor time of the program in that time, by its own metrics.",
	}, Of: func(c *ContainerCompared) *float64 { return &c.OwnCPUSeconds }},
	{Figure: Figure{
		Path: "memoryBytes", Unit: UnitBytes, Label: "memory by cAdvisor", Counts: "run", Better: BetterLower,
		Definition: "Mean resident memory of the container in that time, by cAdvisor.",
	}, Of: func(c *ContainerCompared) *float64 { return &c.MemoryBytes }},
	{Figure: Figure{
		Path: "ownMemoryBytes", Unit: UnitBytes, Label: "memory by its own metrics", Counts: "run", Better: BetterLower,
		Definition: "Mean resident memory of the program in that time, by its own metrics.",
	}, Of: func(c *ContainerCompared) *float64 { return &c.OwnMemoryBytes }},
}

// containers are the figures of Containers.
func containers(usage []node[Usage]) []node[Containers] {
	one := append(leaves(containerFigures), at(place{list: usageList}, func(u *ContainerUsage) *Usage { return &u.Usage }, usage))
	return []node[Containers]{
		each(place{path: "controlPlane.PHASE", label: "control plane by cAdvisor: "}, "PHASE", func(c *Containers) []named[ContainerUsage] { return phased(&c.ControlPlane) }, one),
		each(place{path: "each.PROGRAM", label: "PROGRAM by cAdvisor: "}, "PROGRAM", func(c *Containers) []named[Container] { return pointed(c.Each) }, []node[Container]{
			each(place{path: "usage.PHASE"}, "PHASE", func(c *Container) []named[ContainerUsage] { return phased(&c.Usage) }, one),
			at(place{path: "compared"}, func(c *Container) *ContainerCompared { return c.Compared }, leaves(comparedFigures)),
		}),
	}
}
