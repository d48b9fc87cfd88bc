package record

// Containers is what containers on real nodes used, as the cAdvisor of their kubelets counts it. It is there in
// addition to what the programs' own metrics say.
type Containers struct {
	// ControlPlane is of the containers of the control plane together.
	ControlPlane ByPhase[*ContainerUsage] `json:"controlPlane,omitzero"`
	// Each are those of the control plane, by the name of their pod.
	Each map[string]*Container `json:"each,omitempty"`
}

// Container is one container of the control plane.
type Container struct {
	Name  string                   `json:"name"` // in its pod
	Node  string                   `json:"node"`
	Usage ByPhase[*ContainerUsage] `json:"usage,omitzero"`
	// Compared is cAdvisor's count, compared with the program's own metrics; nil where there are not two readings.
	Compared *ContainerCompared `json:"compared,omitempty"`
}

// ContainerUsage is what a container used over one phase. Its peak cores are not known.
type ContainerUsage struct {
	Usage
	// CPUSecondsLow and CPUSecondsHigh enclose what cpuSeconds was in truth: cAdvisor reads a container every 10 to
	// 20 s, not at the edges of phases, between which processor time is taken as even.
	CPUSecondsLow  *float64 `json:"cpuSecondsLow,omitempty"`
	CPUSecondsHigh *float64 `json:"cpuSecondsHigh,omitempty"`
	Readings       int      `json:"readings"` // of cAdvisor that lie in the phase
}

// ContainerCompared is what two sources say of the same container over the same time, from cAdvisor's first reading in
// the run's phases to its last.
type ContainerCompared struct {
	Seconds        float64 `json:"seconds"`        // from the one reading to the other
	CPUSeconds     float64 `json:"cpuSeconds"`     // by cAdvisor
	OwnCPUSeconds  float64 `json:"ownCPUSeconds"`  // by the program's own metrics
	MemoryBytes    float64 `json:"memoryBytes"`    // resident, mean, by cAdvisor
	OwnMemoryBytes float64 `json:"ownMemoryBytes"` // resident, mean, by the program's own metrics
}
