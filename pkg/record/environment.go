package record

import (
	"time"

	"scaler.mesh/scaler/pkg/scenario"
)

// Environment describes the machine and the programs of a run; "" and 0 mean not known.
type Environment struct {
	CPUs        int    `json:"cpus,omitempty"` // that scaler and all it started may use
	MemoryBytes int64  `json:"memoryBytes,omitempty"`
	Kernel      string `json:"kernel,omitempty"`
	Kubernetes  string `json:"kubernetes,omitempty"`
	Kwok        string `json:"kwok,omitempty"`
	// PodStatus says when fake pods write their status. It is StatusOfEachStep; "" in records of earlier commits, whose pods wrote it
	// twice until they were Ready.
	PodStatus string `json:"podStatus,omitempty"`
	Scaler    string `json:"scaler,omitempty"`
	// Processor is the machine's processor and its speed; nil where the run used an
	// existing cluster.
	Processor    *Processor         `json:"processor,omitempty"`
	ControlPlane ControlPlaneSource `json:"controlPlane,omitzero"`
	Knobs        scenario.Settings  `json:"knobs,omitzero"`
	// Priority states which programs had precedence when they competed for processors; nil
	// where all were equal.
	Priority *Priority `json:"priority,omitempty"`
	// Dilation states how time was slowed down; nil where it was not.
	Dilation *Dilation `json:"dilation,omitempty"`
	// Cluster has the settings of the cluster's programs, by program as in Run.Cluster.
	Cluster map[string]ClusterProgram `json:"cluster,omitempty"`
	// Programs are the programs that scaler started, by the names of `scaler components list`.
	// The revision is appended to the name of the control plane that an upgrade leads to, as in
	// istiod-1-31-0. nil in records of versions that did not write it.
	Programs map[string]Program `json:"programs,omitempty"`
	// Existing is the cluster that the run used; nil where it started its own.
	Existing *ExistingCluster `json:"existing,omitempty"`
}

// StatusOfEachStep is the value of Environment.PodStatus for pods that write their status whenever a container starts, ends or passes a
// probe, as a kubelet does.
const StatusOfEachStep = "each step of the containers"

// ExistingCluster is a cluster, with its control plane, that was there before the run and that
// the run did not change.
type ExistingCluster struct {
	Context string `json:"context"` // of the kubeconfig
	Server  string `json:"server"`  // URL of its API server
	Run     string `json:"run"`     // value of the label scaler.mesh/run of all that the run made there
	Access  Access `json:"access"`  // how the control plane was reached
	Address string `json:"address,omitempty"`
	// Usage is the source of the cores and memory of the control plane; "" = they are not known.
	Usage        UsageSource `json:"usage,omitempty"`
	Pods         []string    `json:"pods,omitempty"`        // of the control plane, at the start
	PodAddresses string      `json:"podAddresses"`          // range of the addresses of the simulated pods
	DaemonSets   []string    `json:"daemonSets,omitempty"`  // of the cluster whose pods come onto the run's fake nodes
	AbortIf      string      `json:"abortIf,omitempty"`     // conditions that would have ended the run, as in apiserver-p99>1s,pending-pods>20
	RefuseIf     string      `json:"refuseIf,omitempty"`    // conditions that did not hold before the run, or it would not have started
	WorkerImage  string      `json:"workerImage,omitempty"` // of the workers that ran the simulated sidecars in the cluster; "" = they ran in scaler's own processes
	Workers      []WorkerPod `json:"workers,omitempty"`     // these, at the start
	KwokImage    string      `json:"kwokImage,omitempty"`   // of KWOK's controller, which ran in the cluster; "" = it ran on scaler's machine
}

// WorkerPod is a pod that ran simulated sidecars.
type WorkerPod struct {
	Name string `json:"name"` // in instrument.workers
	Pod  string `json:"pod"`
	Node string `json:"node"`
}

// Access is the way in which a run reaches the control plane of an existing cluster.
type Access string

// The ways to reach one.
const (
	AccessAddress     Access = "address"     // at an address that was given
	AccessService     Access = "service"     // at its Service, by workers in the cluster
	AccessPortForward Access = "portForward" // through the API server and the kubelet, whose time is part of all latencies
)

// UsageSource is the source of the cores and memory of a control plane.
type UsageSource string

// UsageOfOwnMetrics are process_cpu_seconds_total, in steps of 10 ms, and
// process_resident_memory_bytes of its own metrics, read over the network about once a second
// and at the edges of phases. They include what it does for the cluster's own workloads.
const UsageOfOwnMetrics UsageSource = "ownMetrics"

// Program identifies a program that scaler started, and its source.
type Program struct {
	Source string `json:"source"`          // given (--bin-dir, --envoy, --proxy or PATH), image, build or pip
	Image  string `json:"image,omitempty"` // container image that it was taken from, as REPOSITORY:TAG@DIGEST
	Digest string `json:"digest"`          // first 12 digits of the SHA-256 of its file
}

// Priority states which programs have precedence when they compete for processors, as levels
// in the unit of the mechanism.
type Priority struct {
	// Mechanism is cpu.shares (control groups, version 1) or cpu.weight (version 2),
	// where more runs first and time is shared in proportion, or nice, where less
	// does.
	Mechanism    string `json:"mechanism"`
	ControlPlane int    `json:"controlPlane"`
	Instrument   int    `json:"instrument"` // scaler and what it started of its own
	Cluster      int    `json:"cluster"`
	Note         string `json:"note,omitempty"` // why it is not a better mechanism
}

// Dilation states how a run was slowed down, so that its machine can do in K seconds what the modelled one does in one;
// K is the scenario's (Run.Slowdown).
type Dilation struct {
	// Settings are the control plane's as it ran; those of ControlPlaneSource are as
	// they would be on the modelled machine.
	Settings map[string]string `json:"settings,omitempty"`
	Scaled   []string          `json:"scaled,omitempty"`   // what was slowed down, in words
	Unscaled []string          `json:"unscaled,omitempty"` // what is a matter of time and could not be
	// RealTime are the phases that were not slowed down, because the control plane is at rest in them. Their
	// figures are as measured.
	RealTime []PhaseName `json:"realTime,omitempty"`
	// AtRest are the control plane's mean cores, measured in real time, in the quietest part of baseline and of steady, which are at rest: a third, a
	// half or all of the phase, so that a part has 10 s and K s at least. A garbage collection of a large heap is so left out.
	AtRest map[PhaseName]float64 `json:"atRest,omitempty"`
	// LimiterWaitSeconds is the time, on this machine, for which a new stream waits for the control
	// plane's limiter before it is refused. Dilation cannot change it. 0 = there is no such wait.
	LimiterWaitSeconds float64 `json:"limiterWaitSeconds,omitempty"`
	// Auto says how the factor was chosen; nil where it was given.
	Auto *DilationChoice `json:"auto,omitempty"`
}

// DilationChoice says how a factor was chosen: the least one with which what the rollout is expected to need stays below
// Limit of this machine's processor time. Of several runs it is that of the one that needs the largest machine. Where changes after the
// rollout decide, Cores and Limit are theirs. Cores and processor times are of the reference processor.
type DilationChoice struct {
	Limit               float64 `json:"limit"`
	Processors          int     `json:"processors"`          // of this machine
	Speed               float64 `json:"speed,omitempty"`     // of each, in reference processors, right before; 0 = not measured, and taken as 1
	Cores               float64 `json:"cores"`               // of all programs together, on average, on the modelled machine
	Seconds             float64 `json:"seconds"`             // over which pods come, there
	ControlPlaneSeconds float64 `json:"controlPlaneSeconds"` // processor time for the rollout
	InstrumentSeconds   float64 `json:"instrumentSeconds"`
	ClusterSeconds      float64 `json:"clusterSeconds"`
	// RoundSeconds is the expected processor time of one push to all sidecars, where the factor is larger than Cores asks for, so that pods go
	// on to come meanwhile; 0 = Cores decides.
	RoundSeconds float64 `json:"roundSeconds,omitempty"`
	// Restart says that the run was started before with a smaller factor; nil = it was not.
	Restart *DilationRestart `json:"restart,omitempty"`
}

// DilationRestart says why a run was ended and started again with twice its factor: a program waited too long for processors.
type DilationRestart struct {
	At        time.Time `json:"at"`        // when it was ended
	Factor    float64   `json:"factor"`    // that was too small
	Component string    `json:"component"` // that waited
	Phase     PhaseName `json:"phase"`
	Share     float64   `json:"share"` // of the phase for which it waited
	Bound     float64   `json:"bound"` // of the share
}

// ClusterProgram has the settings of a program of the cluster.
type ClusterProgram struct {
	Settings map[string]string `json:"settings,omitempty"` // that differ from the stock ones, by the name of flag or option
	Note     string            `json:"note,omitempty"`     // what it is in this cluster, in a sentence
}

// ControlPlaneSource states which control plane was measured and how it was set.
type ControlPlaneSource struct {
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	Program string `json:"program,omitempty"` // first 12 digits of the SHA-256 of the program that scaler started
	// ProxyVersion is the one that simulated sidecars report; "" where they report none.
	ProxyVersion string `json:"proxyVersion,omitempty"`
	Replicas     int    `json:"replicas,omitempty"` // that were started at first
	GOMAXPROCS   int    `json:"gomaxprocs,omitempty"`
	// ReferenceProcessors reports that GOMAXPROCS is a number of reference processors; false = processors of this machine.
	ReferenceProcessors bool `json:"referenceProcessors,omitempty"`
	// Processors is the mean limit of the kernel for each replica in the rollout, in processors of this machine in the modelled time. They are as fast
	// as GOMAXPROCS reference processors, or all of the machine's. 0 = there was no limit.
	Processors float64 `json:"processors,omitempty"`
	// MemoryLimitBytes is the limit that it was given (GOMEMLIMIT is 90 % of
	// it), and that the kernel held it to if MemoryLimitEnforced.
	MemoryLimitBytes    int64             `json:"memoryLimitBytes,omitempty"`
	MemoryLimitEnforced bool              `json:"memoryLimitEnforced,omitempty"`
	Settings            map[string]string `json:"settings,omitempty"` // that differ from its stock ones, or matter
	Limits              *Limits           `json:"limits,omitempty"`   // that it is known to hold itself to
	// WorkingSetUnknown states why its working set was not measured; "" = it was.
	WorkingSetUnknown string `json:"workingSetUnknown,omitempty"`
}
