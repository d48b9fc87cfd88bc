package record

// ClusterPrometheus is what the pods of the control plane used by a Prometheus that the cluster had already. It is there
// in addition to what scaler measured itself.
type ClusterPrometheus struct {
	// OwnMetrics are the programs' own (process_cpu_seconds_total, process_resident_memory_bytes), and Cadvisor those of their
	// containers (container_cpu_usage_seconds_total, container_memory_rss, container_memory_working_set_bytes).
	OwnMetrics *PrometheusSource `json:"ownMetrics,omitempty"`
	Cadvisor   *PrometheusSource `json:"cadvisor,omitempty"`
}

// PrometheusSource is what one kind of metrics says.
type PrometheusSource struct {
	IntervalSeconds   float64 `json:"intervalSeconds"`   // median time between two samples
	LongestGapSeconds float64 `json:"longestGapSeconds"` // the longest time between two samples
	// A value is of a moment from OlderSeconds before its timestamp to NewerSeconds after it, by scaler's clock.
	OlderSeconds float64 `json:"olderSeconds"`
	NewerSeconds float64 `json:"newerSeconds"`
	// ControlPlane is of all pods together.
	ControlPlane ByPhase[*PrometheusUsage] `json:"controlPlane,omitzero"`
	// Each are the pods, by name, those that came and went included.
	Each map[string]*PrometheusPod `json:"each,omitempty"`
}

// PrometheusPod is one pod of the control plane.
type PrometheusPod struct {
	Usage    ByPhase[*PrometheusUsage] `json:"usage,omitzero"`
	Compared *PrometheusCompared       `json:"compared,omitempty"` // nil where there are not two samples in the phases, or scaler did not read it
}

// PrometheusUsage is what a pod used over one phase. Its peak cores are not known.
type PrometheusUsage struct {
	Usage
	// CPUSecondsLow and CPUSecondsHigh enclose what cpuSeconds was in truth: samples are not of the edges of phases,
	// between which processor time is taken as even.
	CPUSecondsLow  *float64 `json:"cpuSecondsLow,omitempty"`
	CPUSecondsHigh *float64 `json:"cpuSecondsHigh,omitempty"`
	Samples        int      `json:"samples"` // of processor time that lie in the phase
}

// PrometheusCompared compares the samples of a pod with what scaler read of its own metrics, from the first sample in the
// run's phases to the last. What scaler read has limits because the moment that a sample is of is not known exactly.
type PrometheusCompared struct {
	Seconds           float64 `json:"seconds"`    // from the one sample to the other
	CPUSeconds        float64 `json:"cpuSeconds"` // by the samples
	OwnCPUSecondsLow  float64 `json:"ownCPUSecondsLow"`
	OwnCPUSecondsHigh float64 `json:"ownCPUSecondsHigh"`
	// MemoryBytes is the mean of the samples of the program's own resident memory; nil of cAdvisor, which counts
	// other memory. OwnMemoryBytesLow, the lower of mean and last value around the samples, is no limit.
	MemoryBytes        *float64 `json:"memoryBytes,omitempty"`
	OwnMemoryBytesLow  *float64 `json:"ownMemoryBytesLow,omitempty"`
	OwnMemoryBytesHigh *float64 `json:"ownMemoryBytesHigh,omitempty"`
}

// PrometheusAccess is a Prometheus of an existing cluster that was asked, or that was to be asked.
type PrometheusAccess struct {
	Address  string `json:"address"`            // URL, or service:NAMESPACE/NAME:PORT through the API server; detect where none was found
	Detected bool   `json:"detected,omitempty"` // it was found, not named
	Version  string `json:"version,omitempty"`
	Error    string `json:"error,omitempty"` // why it was not asked; "" = it was
}
