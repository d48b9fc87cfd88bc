package record

import "strings"

// Arrival has the rates at which pods were created and became ready.
type Arrival struct {
	// OfferedPerSecond is the planned rate: the pods after the first burst over the time
	// from the first burst to the last; absent for a burst of all, which has no
	// planned rate.
	OfferedPerSecond *float64 `json:"offeredPerSecond,omitempty"`
	// AchievedPerSecond is, for several bursts, the pods after the first burst
	// over the time from the sight of that burst's last pod to that of the very
	// last; for one, all pods over the time from the first to the last.
	AchievedPerSecond *float64 `json:"achievedPerSecond,omitempty"`
	// ReadyPerSecond is the pods after the first that became ready over the time
	// from the first to the last, and ReadyPeakPerSecond the most that did so within
	// one second: of readiness that is evenly spaced the two are alike.
	ReadyPerSecond     *float64 `json:"readyPerSecond,omitempty"`
	ReadyPeakPerSecond *float64 `json:"readyPeakPerSecond,omitempty"`
	// Steps is the number of bursts. StepsLateSeconds is the longest time from the
	// moment at which a burst was due to the response to its last request.
	Steps            *int     `json:"steps,omitempty"`
	StepsLateSeconds *float64 `json:"stepsLateSeconds,omitempty"`
}

// Pods are counts at the end of rollout, but Connected counts those whose
// sidecar was ever connected.
type Pods struct {
	Requested int  `json:"requested"`
	Created   *int `json:"created,omitempty"`
	Ready     *int `json:"ready,omitempty"`
	Connected *int `json:"connected,omitempty"`
	Complete  *int `json:"complete,omitempty"`
	Converged *int `json:"converged,omitempty"`
}

// Usage is the processor time and memory of a program, or of a group of programs, over one phase.
type Usage struct {
	Cores      *Level   `json:"cores,omitempty"`      // mean: CPU seconds over the phase's length; peak: over 1 s
	CPUSeconds *float64 `json:"cpuSeconds,omitempty"` // difference of the counters read at the phase's edges, restarts included
	// ReferenceCPUSeconds and ReferenceCores are CPUSeconds and the mean of Cores in units of the
	// reference processor, at full speed; absent where the machine's speed is not known. See Run.Normalize.
	ReferenceCPUSeconds *float64 `json:"referenceCPUSeconds,omitempty"`
	ReferenceCores      *float64 `json:"referenceCores,omitempty"`
	MemoryBytes         *Level   `json:"memoryBytes,omitempty"` // resident: mean, peak, end
	// WorkingSetBytes is memory as a control group counts it: mean, peak, end. It is of the
	// control plane alone, and absent where ControlPlaneSource.WorkingSetUnknown says why.
	WorkingSetBytes *Level   `json:"workingSetBytes,omitempty"`
	HeapBytes       *Level   `json:"heapBytes,omitempty"`  // live heap: mean, end
	Saturation      *float64 `json:"saturation,omitempty"` // at most this share of the phase, 0 to 1, had a runnable thread waiting for a processor
	Restarts        *int     `json:"restarts,omitempty"`
	// WaitedSeconds is the time for which threads were runnable and waited for a processor,
	// the sum over all threads.
	WaitedSeconds *float64 `json:"waitedSeconds,omitempty"`
}

// Level is a quantity over one phase.
type Level struct {
	Mean *float64 `json:"mean,omitempty"`
	Peak *float64 `json:"peak,omitempty"`
	End  *float64 `json:"end,omitempty"`
	// Peak100ms is of the cores of a control plane: the greatest mean over 100 ms.
	Peak100ms *float64 `json:"peak100ms,omitempty"`
	// Collected is set for live heaps only: the heap after two garbage collections that scaler
	// requested at once after the phase; absent where a program cannot be asked for them.
	Collected *float64 `json:"collected,omitempty"`
}

// Sidecars has the usage of the proxies themselves.
type Sidecars struct {
	Real *RealSidecars `json:"real,omitempty"`
}

// RealSidecars are the run's real proxies. The figures of a phase are the sums
// over all of them, agents included.
type RealSidecars struct {
	Count int `json:"count"`
	ByPhase[*Usage]
	// Envoy is the version of the Envoy that ran, and Source where it came from: as
	// scaler components list says.
	Envoy  string `json:"envoy,omitempty"`
	Source string `json:"source,omitempty"`
	// Starts are the latencies of their starts in the rollout, which those of the
	// run do not hold.
	Starts *Latencies `json:"starts,omitempty"`
	// Each lists all real proxies in the order of their starts.
	Each []RealSidecar `json:"each,omitempty"`
}

// RealSidecar is one real proxy.
type RealSidecar struct {
	Pod     string           `json:"pod"` // "namespace/name"
	Service string           `json:"service"`
	Crashes int              `json:"crashes"`         // ends that nobody asked for; it was started again
	Proxy   ByPhase[*Usage]  `json:"proxy,omitzero"`  // Envoy alone
	Agent   *ByPhase[*Usage] `json:"agent,omitempty"` // nil where there is none
	// Node is the real node of its pod, and Container the usage of its container, agent included, as cAdvisor reports it.
	// A proxy on a real node has neither Proxy nor Agent.
	Node      string                    `json:"node,omitempty"`
	Container *ByPhase[*ContainerUsage] `json:"container,omitempty"`
}

// Latencies are the distributions of a run, each the whole run's, in seconds.
type Latencies struct {
	PodAdmission          *Latency `json:"podAdmission,omitempty"`          // create of the pod, or of what makes it, sent to pod seen
	PodReady              *Latency `json:"podReady,omitempty"`              // pod first seen to Ready seen
	PodReadyWithoutKwok   *Latency `json:"podReadyWithoutKwok,omitempty"`   // the same without the time that KWOK's Stages took
	Certificate           *Latency `json:"certificate,omitempty"`           // CSR sent to chain received and verified
	Key                   *Latency `json:"key,omitempty"`                   // making, or taking from the pool, of a certificate's key
	Token                 *Latency `json:"token,omitempty"`                 // TokenRequest sent to token received
	ClientWait            *Latency `json:"clientWait,omitempty"`            // token wanted to TokenRequest sent: scaler's own waiting
	Connect               *Latency `json:"connect,omitempty"`               // dial to TLS and HTTP/2 settings done
	ConnectTotal          *Latency `json:"connectTotal,omitempty"`          // first attempt to the attempt that succeeded
	Reconnect             *Latency `json:"reconnect,omitempty"`             // stream lost to every type answered on another
	FirstConfiguration    *Latency `json:"firstConfiguration,omitempty"`    // first request sent to first response
	CompleteConfiguration *Latency `json:"completeConfiguration,omitempty"` // first request sent to last resource expected at that moment received and acknowledged

	RolloutPush map[ChangeKind]*Latency    `json:"rolloutPush,omitempty"` // during rollout: endpoint change seen to a sidecar that held the service before having it, or a later state
	ChangeWrite *Latency                   `json:"changeWrite,omitempty"` // write of a followed route or policy: sent to answered
	Push        map[ChangeKind]*Latency    `json:"push,omitempty"`        // change made to a sidecar's having it; see ChangesForP99
	Propagation map[ChangeKind]Propagation `json:"propagation,omitempty"` // change made to the first, and the last, sidecar's having it
	Explained   *Explained                 `json:"explained,omitempty"`   // what the control plane's own metrics say of the pushes
	ClusterPart *Latency                   `json:"clusterPart,omitempty"` // write that causes an endpoint change returned to the change seen

	// PushFromWrite are the pushes of endpoints from the return of the write that causes
	// the change: with the cluster's part, and without scaler's own watch.
	PushFromWrite map[ChangeKind]*Latency `json:"pushFromWrite,omitempty"`
	// PushIntervals state how exactly the changes determine the quantiles of Push.
	PushIntervals map[ChangeKind]*PushIntervals `json:"pushIntervals,omitempty"`
}

// ChangeKind is a kind of change that is followed to the sidecars.
type ChangeKind string

// The kinds of changes.
const (
	EndpointAdd    ChangeKind = "endpointAdd"
	EndpointRemove ChangeKind = "endpointRemove"
	EndpointHealth ChangeKind = "endpointHealth"
	RouteChange    ChangeKind = "route"
	PolicyChange   ChangeKind = "policy"
	ServiceChange  ChangeKind = "service" // of proxies of nodes
)

// ChangesForP99 is the least number of changes of a kind for a 99th percentile,
// or a higher one, of their pushes and propagation. All sidecars receive a change at
// about the same time, so that few changes do not determine the slowest ones, however many
// sidecars saw them. Below it the quantile is absent.
const ChangesForP99 = 100

// PushIntervals are the confidence intervals, at 95 %, of the quantiles of the pushes of
// one kind of change. They are made by resampling changes: all that sidecars saw of one
// change stays together.
type PushIntervals struct {
	Changes int `json:"changes"` // that concerned a sidecar
	// Blocks is the number of groups of successive changes that were resampled; the changes
	// of one second are one block. Changes that follow each other closely are not
	// independent. 0 = each change was resampled by itself.
	Blocks int               `json:"blocks,omitempty"`
	P50    *QuantileInterval `json:"p50,omitempty"` // absent below 6 changes
	P90    *QuantileInterval `json:"p90,omitempty"` // absent below 36 changes
	P99    *QuantileInterval `json:"p99,omitempty"` // absent below 368 changes
}

// QuantileInterval is the 95 % confidence interval of a quantile, in seconds. An absent end
// lies among the lost observations.
type QuantileInterval struct {
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
}

// Changes returns the number of changes of a kind that were followed to the sidecars that
// they concern; 0 if it is not known.
func (l *Latencies) Changes(kind ChangeKind) int64 {
	if first := l.Propagation[kind].First; first != nil {
		return first.Count + first.Lost
	}
	return 0
}

// WithholdsP99 reports whether the changes of a kind were too few for a 99th percentile.
func (l *Latencies) WithholdsP99(kind ChangeKind) bool {
	changes := l.Changes(kind)
	return changes > 0 && changes < ChangesForP99
}

// Withhold takes away the quantiles of pushes and propagation that too few changes do
// not determine.
func (l *Latencies) Withhold() {
	for _, kind := range ChangeKinds {
		if l.WithholdsP99(kind) {
			withhold(l.Push[kind], l.PushFromWrite[kind], l.Propagation[kind].First, l.Propagation[kind].Last)
		}
	}
}

// withhold takes away the 99th percentile of latencies, and what is beyond it.
func withhold(latencies ...*Latency) {
	for _, l := range latencies {
		if l != nil {
			l.P99, l.P999 = nil, nil
		}
	}
}

// Propagation has the latencies of changes of a kind to the first and to the last of
// all sidecars that they concern; each change counts once.
type Propagation struct {
	First *Latency `json:"first,omitempty"`
	Last  *Latency `json:"last,omitempty"`
}

// Explained compares the control plane's own times over the probe phase with the
// pushes that were followed in it.
type Explained struct {
	OwnSeconds  float64 `json:"ownSeconds"`  // sum of the means of its own stages of a push
	PushSeconds float64 `json:"pushSeconds"` // mean of latencies.push over all kinds, each observation once
	Share       float64 `json:"share"`       // OwnSeconds / PushSeconds
}

// Latency is the summary of a distribution; the whole is in latencies/. The
// quantiles are over Count and Lost together: one that falls among the lost
// is absent, as it is only known to exceed Max. Min, Mean and Max are of
// those that came. Its fields are those of stats.Summary, in the same order.
type Latency struct {
	Unit    string   `json:"unit"` // "s"
	Count   int64    `json:"count"`
	Lost    int64    `json:"lost"`              // not there by the time limit
	Clamped int64    `json:"clamped,omitempty"` // of Count: outside 0 to 24 h, taken as that bound; see Unknown
	Unmet   int64    `json:"unmet,omitempty"`   // neither in Count nor in Lost: of sidecars that do not hold what is expected of them while the control plane is at rest; see Unknown
	Min     *float64 `json:"min,omitempty"`
	Mean    *float64 `json:"mean,omitempty"`
	P50     *float64 `json:"p50,omitempty"`
	P90     *float64 `json:"p90,omitempty"`
	P99     *float64 `json:"p99,omitempty"`
	P999    *float64 `json:"p999,omitempty"`
	Max     *float64 `json:"max,omitempty"`
}

// clampedShare is the largest share of clamped observations with which a latency is known.
// Up to this share quantiles from p1 up do not depend on them. A larger share shows that the
// start was often seen after the end, so that the other observations are too short, too, by an
// unknown time.
const clampedShare = 0.01

// clampedOnce is the number of observations from which on a single one may be clamped, though its share
// exceeds clampedShare: quantiles from p10 up do not depend on it.
const clampedOnce = 10

// Unknown reports that the latency is not known: its start was seen after its end in more
// than a few of its observations, or as many have no end, see Unmet: more than 1 of 100, but for one of ten or more.
func (l *Latency) Unknown() bool {
	return l != nil && (tooMany(l.Clamped, l.Count) || tooMany(l.Unmet, l.Count+l.Lost+l.Unmet))
}

// tooMany reports whether n of all observations of a latency can change its quantiles.
func tooMany(n, all int64) bool {
	return float64(n) > clampedShare*float64(all) && (n != 1 || all < clampedOnce)
}

// Known returns the latency, or only its counts if it is not known.
func (l Latency) Known() Latency {
	if !l.Unknown() {
		return l
	}
	return Latency{Unit: l.Unit, Count: l.Count, Lost: l.Lost, Clamped: l.Clamped, Unmet: l.Unmet}
}

// UnknownLatencies are warnings about the latencies of the run that are not known; see
// [Latency.Unknown]. Those of faults, of churn and of real sidecars are not among them.
func (r *Run) UnknownLatencies() []Warning {
	var all []Warning
	add := func(above string, of []Distribution) {
		for _, d := range of {
			if !d.Latency.Unknown() {
				continue
			}
			w := Warning{About: join(above, d.Path), Reason: ReasonStartSeenLate, Values: map[string]float64{"clamped": float64(d.Latency.Clamped), "all": float64(d.Latency.Count)}}
			if unmet := d.Latency.Unmet; !tooMany(d.Latency.Clamped, d.Latency.Count) {
				w.Reason, w.Values = ReasonUnmet, map[string]float64{"unmet": float64(unmet), "all": float64(d.Latency.Count + d.Latency.Lost + unmet)}
			}
			if kind, ok := strings.CutPrefix(d.Path, "push."); ok && above == "latencies" {
				if fromWrite := r.Latencies.PushFromWrite[ChangeKind(kind)]; fromWrite != nil && !fromWrite.Unknown() {
					w.Detail = "latencies.pushFromWrite." + kind
				}
			}
			all = append(all, w)
		}
	}
	add("latencies", r.Latencies.All())
	if r.Change != nil {
		add("change", r.Change.Distributions())
	}
	for _, stage := range r.UpgradeStages() {
		for _, side := range []struct {
			path string
			of   *UpgradeSide
		}{{"from", r.Upgrade.Stages[stage].From}, {"to", r.Upgrade.Stages[stage].To}} {
			if side.of != nil {
				add("upgrade.stages."+stage+"."+side.path, pushesOf(side.of))
			}
		}
	}
	return all
}

// XDS counts what the simulated sidecars exchanged with the control plane
// over the whole run. Types are CDS, EDS, LDS, RDS, ECDS.
type XDS struct {
	Responses          map[string]int64    `json:"responses,omitempty"` // by type
	Bytes              map[string]int64    `json:"bytes,omitempty"`     // of responses, by type
	Acks               *int64              `json:"acks,omitempty"`
	Nacks              *int64              `json:"nacks,omitempty"`
	Attempts           *int64              `json:"attempts,omitempty"`        // dials
	Refusals           *int64              `json:"refusals,omitempty"`        // streams that the control plane refused before any response
	Reconnects         *int64              `json:"reconnects,omitempty"`      // streams opened by a sidecar that had had one before
	WastedResponses    *int64              `json:"wastedResponses,omitempty"` // of which every resource was held already
	ConfigurationBytes *ConfigurationBytes `json:"configurationBytes,omitempty"`
	// ConfigurationResources is the number of resources of each type that a sidecar
	// holds when converged: the mean over the sidecars.
	ConfigurationResources map[string]float64 `json:"configurationResources,omitempty"`
	// PerSidecar is the mean of what a sidecar received in the rollout.
	PerSidecar *PerSidecar `json:"perSidecar,omitempty"`
	// Rates are the rates of responses to all sidecars together in each phase.
	Rates *ByPhase[*Rates] `json:"rates,omitempty"`
}

// PerSidecar has means over the connected simulated sidecars of what they received up to
// the end of the rollout phase.
type PerSidecar struct {
	Responses *float64 `json:"responses,omitempty"`
	Bytes     *float64 `json:"bytes,omitempty"`
}

// Rates are the rates of responses in one phase: the difference of the counters between
// the readings at its start and its end, over the time between the readings.
type Rates struct {
	ResponsesPerSecond *float64 `json:"responsesPerSecond,omitempty"`
	BytesPerSecond     *float64 `json:"bytesPerSecond,omitempty"` // of responses as messages
}

// ConfigurationBytes is the size of the resources that a sidecar holds when
// converged, over all sidecars.
type ConfigurationBytes struct {
	Mean   *float64           `json:"mean,omitempty"`
	Max    *float64           `json:"max,omitempty"`
	ByType map[string]float64 `json:"byType,omitempty"` // mean, of each type
	Note   string             `json:"note,omitempty"`
}

// Certificates count pods' certificates over the whole run.
type Certificates struct {
	Issued   *int64 `json:"issued,omitempty"`
	Failed   *int64 `json:"failed,omitempty"`   // pods without a certificate at the end
	Attempts *int64 `json:"attempts,omitempty"` // CSRs sent
	// FailedAttempts are CSRs sent that brought no certificate: refused, lost, or not valid.
	FailedAttempts *int64   `json:"failedAttempts,omitempty"`
	PerSecond      *float64 `json:"perSecond,omitempty"` // issued over the time from the first CSR sent to the last chain received
	Note           string   `json:"note,omitempty"`

	// Renewals are the certificates that sidecars had issued in place of one that
	// grew old, CSR sent to chain received and verified; those of a storm are not
	// among them.
	Renewals *Latency `json:"renewals,omitempty"`

	Storm *CertificateStorm `json:"storm,omitempty"`
}

// CertificateStorm is the result of the phase in which all sidecars request a new
// certificate at once.
type CertificateStorm struct {
	Sidecars  int      `json:"sidecars"`
	Issued    int64    `json:"issued"`
	Attempts  int64    `json:"attempts"`            // CSRs that ended
	Failures  int64    `json:"failures"`            // of those, that brought no certificate
	Latency   *Latency `json:"latency,omitempty"`   // CSR sent to chain received and verified
	Seconds   *float64 `json:"seconds,omitempty"`   // from the signal to all to the last certificate
	PerSecond *float64 `json:"perSecond,omitempty"` // issued over seconds

	// BoundBy is the control plane's known limit that explains Seconds; nil: none does.
	BoundBy *StormBound `json:"boundBy,omitempty"`
}

// Own are the control plane's own metrics over the same windows, by the names
// that its adapter gives them, which end in the unit where there is one.
type Own struct {
	Note string `json:"note,omitempty"`
	ByPhase[map[string]float64]
}

// Instrument is scaler measured by itself, over the rollout.
type Instrument struct {
	Cores           *float64 `json:"cores,omitempty"`
	MemoryBytes     *float64 `json:"memoryBytes,omitempty"`     // peak resident
	BytesPerSidecar *float64 `json:"bytesPerSidecar,omitempty"` // resident above the idle program
	OpenFiles       *int     `json:"openFiles,omitempty"`       // peak
	Saturation      *float64 `json:"saturation,omitempty"`      // as Usage.Saturation
	WaitedSeconds   *float64 `json:"waitedSeconds,omitempty"`   // as Usage.WaitedSeconds
	Lag             *Latency `json:"lag,omitempty"`             // how late a timer fires
	// Floor is what the same figures would read with a control plane that costs
	// nothing, by their paths in the record.
	Floor map[string]float64 `json:"floor,omitempty"`
	// Workers are the processes that ran the simulated sidecars, if there were several;
	// the first is scaler itself, unless they are pods of a cluster. What they used is part of the figures above.
	Workers []InstrumentWorker `json:"workers,omitempty"`
}

// InstrumentWorker is one of several processes that ran simulated sidecars, measured
// over the rollout.
type InstrumentWorker struct {
	Name        string   `json:"name"`
	Sidecars    int      `json:"sidecars"` // that it started, until the end of the run
	Cores       *float64 `json:"cores,omitempty"`
	MemoryBytes *float64 `json:"memoryBytes,omitempty"` // peak resident
	OpenFiles   *int     `json:"openFiles,omitempty"`   // peak
	Lag         *Latency `json:"lag,omitempty"`         // how late a timer fires
	// Clock is the clock of the worker's times, compared with the clock of scaler itself.
	Clock WorkerClock `json:"clock"`
}

// WorkerClock is the clock of a worker. Times in the record and its events are those
// of scaler's own clock.
type WorkerClock struct {
	Name string `json:"name"`
	// OffsetSeconds is the difference of the two clocks, each counted from an arbitrary
	// moment of its own.
	OffsetSeconds float64 `json:"offsetSeconds"`
	// UncertaintySeconds is the largest error of a time of the worker that the uncertainty
	// of the offset causes; 0 = it is scaler's own clock.
	UncertaintySeconds float64 `json:"uncertaintySeconds"`
}
