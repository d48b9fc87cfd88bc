package record

// ContainerUsage is the usage of a container on a real node over one phase, as the cAdvisor of its kubelet reports it.
// Peak cores are not known.
type ContainerUsage struct {
	Usage
	// CPUSecondsLow and CPUSecondsHigh enclose what cpuSeconds was in truth: cAdvisor reads a container every 10 to
	// 20 s, not at the edges of phases, between which processor time is taken as even.
	CPUSecondsLow  *float64 `json:"cpuSecondsLow,omitempty"`
	CPUSecondsHigh *float64 `json:"cpuSecondsHigh,omitempty"`
	Readings       int      `json:"readings"` // of cAdvisor that lie in the phase
}
