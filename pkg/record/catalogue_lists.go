package record

import (
	"maps"
	"slices"
	"sync"
)

// ChangeKinds are the kinds of changes that are followed, in the order in which they
// are shown.
var ChangeKinds = []ChangeKind{EndpointAdd, EndpointRemove, EndpointHealth, RouteChange, PolicyChange, ServiceChange}

// UsageFigures are the figures of a Usage.
var UsageFigures = []FigureOf[Usage]{
	{Figure: Figure{Path: "cores.mean", Unit: UnitCores, Label: "cores, mean", Counts: "phase", Better: BetterLower}, Of: func(u *Usage) *float64 { return orZero(u.Cores).Mean }},
	{Figure: Figure{Path: "cores.peak", Unit: UnitCores, Label: "cores, peak", Counts: "second", Better: BetterLower}, Of: func(u *Usage) *float64 { return orZero(u.Cores).Peak }},
	{Figure: Figure{Path: "cores.peak100ms", Unit: UnitCores, Label: "cores, peak of 100 ms", Counts: "100 ms", Better: BetterLower}, Of: func(u *Usage) *float64 { return orZero(u.Cores).Peak100ms }},
	{Figure: Figure{Path: "cpuSeconds", Unit: UnitSeconds, Label: "CPU time", Counts: "phase", Better: BetterLower}, Of: func(u *Usage) *float64 { return u.CPUSeconds }},
	{Figure: Figure{Path: "referenceCPUSeconds", Unit: UnitSeconds, Label: "CPU time, reference", Counts: "phase", Better: BetterLower}, Of: func(u *Usage) *float64 { return u.ReferenceCPUSeconds }},
	{Figure: Figure{Path: "referenceCores", Unit: UnitCores, Label: "cores, reference, mean", Counts: "phase", Better: BetterLower, NotCompared: true}, Of: func(u *Usage) *float64 { return u.ReferenceCores }},
	{Figure: Figure{Path: "memoryBytes.mean", Unit: UnitBytes, Label: "memory, mean", Counts: "second", Better: BetterLower}, Of: func(u *Usage) *float64 { return orZero(u.MemoryBytes).Mean }},
	{Figure: Figure{Path: "memoryBytes.peak", Unit: UnitBytes, Label: "memory, peak", Counts: "second", Better: BetterLower}, Of: func(u *Usage) *float64 { return orZero(u.MemoryBytes).Peak }},
	{Figure: Figure{Path: "memoryBytes.end", Unit: UnitBytes, Label: "memory, end", Counts: "phase", Better: BetterLower}, Of: func(u *Usage) *float64 { return orZero(u.MemoryBytes).End }},
	{Figure: Figure{Path: "workingSetBytes.mean", Unit: UnitBytes, Label: "working set, mean", Counts: "second", Better: BetterLower}, Of: func(u *Usage) *float64 { return orZero(u.WorkingSetBytes).Mean }},
	{Figure: Figure{Path: "workingSetBytes.peak", Unit: UnitBytes, Label: "working set, peak", Counts: "second", Better: BetterLower}, Of: func(u *Usage) *float64 { return orZero(u.WorkingSetBytes).Peak }},
	{Figure: Figure{Path: "workingSetBytes.end", Unit: UnitBytes, Label: "working set, end", Counts: "phase", Better: BetterLower}, Of: func(u *Usage) *float64 { return orZero(u.WorkingSetBytes).End }},
	{Figure: Figure{Path: "heapBytes.mean", Unit: UnitBytes, Label: "live heap, mean", Counts: "second", Better: BetterLower}, Of: func(u *Usage) *float64 { return orZero(u.HeapBytes).Mean }},
	{Figure: Figure{Path: "heapBytes.end", Unit: UnitBytes, Label: "live heap, end", Counts: "phase", Better: BetterLower}, Of: func(u *Usage) *float64 { return orZero(u.HeapBytes).End }},
	{Figure: Figure{Path: "heapBytes.collected", Unit: UnitBytes, Label: "live heap, after GC", Counts: "phase", Better: BetterLower}, Of: func(u *Usage) *float64 { return orZero(u.HeapBytes).Collected }},
	{Figure: Figure{Path: "saturation", Unit: UnitShare, Label: "saturation", Counts: "phase", Better: BetterLower}, Of: func(u *Usage) *float64 { return u.Saturation }},
	{Figure: Figure{Path: "waitedSeconds", Unit: UnitSeconds, Label: "waited for processors", Counts: "phase", Better: BetterLower, NotCompared: true}, Of: func(u *Usage) *float64 { return u.WaitedSeconds }},
	{Figure: Figure{Path: "restarts", Unit: UnitCount, Label: "restarts", Counts: "restart", Better: BetterLower}, Of: func(u *Usage) *float64 { return whole(u.Restarts) }},
}

// LatencyFigures are the figures of a Latency. Runs are compared by the median, the
// 99th percentile and what was lost: the maximum is one observation.
var LatencyFigures = []FigureOf[Latency]{
	{Figure: Figure{Path: "count", Unit: UnitCount, Label: "count", Better: BetterNeither, NotCompared: true}, Of: func(l *Latency) *float64 { return whole(&l.Count) }},
	{Figure: Figure{Path: "min", Unit: UnitSeconds, Label: "min", Better: BetterLower, NotCompared: true}, Of: func(l *Latency) *float64 { return l.Min }},
	{Figure: Figure{Path: "mean", Unit: UnitSeconds, Label: "mean", Better: BetterLower, NotCompared: true}, Of: func(l *Latency) *float64 { return l.Mean }},
	quantile("p50", func(l *Latency) *float64 { return l.P50 }, true),
	quantile("p90", func(l *Latency) *float64 { return l.P90 }, false),
	quantile("p99", func(l *Latency) *float64 { return l.P99 }, true),
	quantile("p999", func(l *Latency) *float64 { return l.P999 }, false),
	{Figure: Figure{Path: "max", Unit: UnitSeconds, Label: "max", Better: BetterLower, NotCompared: true}, Of: func(l *Latency) *float64 { return l.Max }},
	{Figure: Figure{Path: "lost", Unit: UnitCount, Label: "lost", Better: BetterLower}, Of: func(l *Latency) *float64 { return whole(&l.Lost) }},
}

// quantile is one that may lie among what was lost.
func quantile(name string, of func(*Latency) *float64, compared bool) FigureOf[Latency] {
	return FigureOf[Latency]{
		Figure: Figure{Path: name, Unit: UnitSeconds, Label: name, Better: BetterLower, NotCompared: !compared},
		Of:     of, lost: func(l *Latency) bool { return l.Lost > 0 && !l.Unknown() },
	}
}

// All are the distributions that Latencies may have, in the order in which they are
// shown, with those of this one.
func (l *Latencies) All() []Distribution {
	all := []Distribution{
		{"podAdmission", "pod admission", "pod", PhaseRollout, l.PodAdmission, false},
		{"podReady", "pod ready", "pod", PhaseRollout, l.PodReady, false},
		{"podReadyWithoutKwok", "pod ready, without KWOK", "pod", PhaseRollout, l.PodReadyWithoutKwok, false},
		{"certificate", "certificate", "pod", PhaseRollout, l.Certificate, false},
		{"key", "key", "certificate", PhaseRollout, l.Key, false},
		{"token", "token", "token", PhaseRollout, l.Token, false},
		{"clientWait", "client wait", "token", PhaseRollout, l.ClientWait, false},
		{"connect", "connect", "attempt", PhaseRollout, l.Connect, false},
		{"connectTotal", "connect, total", "sidecar", PhaseRollout, l.ConnectTotal, false},
		{"reconnect", "reconnect", "stream", "", l.Reconnect, false},
		{"firstConfiguration", "first configuration", "sidecar", PhaseRollout, l.FirstConfiguration, false},
		{"completeConfiguration", "complete configuration", "sidecar", PhaseRollout, l.CompleteConfiguration, false},
	}
	for _, kind := range ChangeKinds {
		all = append(all, Distribution{"rolloutPush." + string(kind), "rollout push: " + string(kind), "sidecar of each change", PhaseRollout, l.RolloutPush[kind], false})
	}
	for _, kind := range ChangeKinds {
		all = append(all, Distribution{"push." + string(kind), "push: " + string(kind), "sidecar of each change", PhaseProbe, l.Push[kind], l.WithholdsP99(kind)})
	}
	for _, kind := range ChangeKinds { // of routes and policies there is none
		all = append(all, Distribution{"pushFromWrite." + string(kind), "push from write: " + string(kind), "sidecar of each change", PhaseProbe, l.PushFromWrite[kind], l.WithholdsP99(kind)})
	}
	for _, kind := range ChangeKinds {
		path := "propagation." + string(kind)
		all = append(all,
			Distribution{path + ".first", "first: " + string(kind), "change", PhaseProbe, l.Propagation[kind].First, l.WithholdsP99(kind)},
			Distribution{path + ".last", "last: " + string(kind), "change", PhaseProbe, l.Propagation[kind].Last, l.WithholdsP99(kind)})
	}
	return append(all,
		Distribution{"changeWrite", "change's write", "change", PhaseProbe, l.ChangeWrite, false},
		Distribution{"clusterPart", "cluster's part", "change", PhaseProbe, l.ClusterPart, false})
}

// latencies are the figures of Latencies, those that fixed names of that phase.
func latencies(fixed PhaseName) node[Latencies] { return distributions(fixed, (*Latencies).All) }

// distributions are the figures of a T's distributions, those that fixed names of that
// phase.
func distributions[T any](fixed PhaseName, all func(*T) []Distribution) node[T] {
	parts := leaves(LatencyFigures)
	spot := func(d Distribution) place {
		p := place{path: d.Path, label: d.Label + ", ", counts: d.Counts, phase: d.Phase, list: latencyList}
		if fixed != "" {
			p.phase = fixed
		}
		return p
	}
	var n node[T]
	for _, d := range all(new(T)) {
		for _, part := range parts {
			n.figures = append(n.figures, spot(d).of(part.figures[0]))
		}
	}
	n.values = func(want, path string, t *T, add func(Value)) {
		for _, d := range all(t) {
			at := join(path, d.Path)
			if d.Latency == nil || !leads(want, at) {
				continue
			}
			here := spot(d)
			for _, part := range parts {
				part.values(want, at, d.Latency, func(v Value) {
					v.Figure = here.of(v.Figure)
					add(v)
				})
				if f := part.figures[0]; d.WithheldP99 && (f.Path == "p99" || f.Path == "p999") && leads(want, join(at, f.Path)) {
					add(Value{Figure: here.of(f), Path: join(at, f.Path), Withheld: true})
				}
			}
		}
	}
	return n
}

// distribution puts the figures of a latency at a place.
func distribution[T any](p place, of func(*T) *Latency) node[T] {
	p.list = latencyList
	return at(p, of, leaves(LatencyFigures))
}

// PodFigures are the counts of Pods.
var PodFigures = []FigureOf[Pods]{
	{Figure: Figure{Path: "requested", Unit: UnitCount, Label: "requested", Counts: "pod", Better: BetterNeither, NotCompared: true}, Of: func(p *Pods) *float64 { return whole(&p.Requested) }},
	{Figure: Figure{Path: "created", Unit: UnitCount, Label: "created", Counts: "pod", Better: BetterHigher, NotCompared: true}, Of: func(p *Pods) *float64 { return whole(p.Created) }},
	{Figure: Figure{Path: "ready", Unit: UnitCount, Label: "ready", Counts: "pod", Better: BetterHigher, NotCompared: true}, Of: func(p *Pods) *float64 { return whole(p.Ready) }},
	{Figure: Figure{Path: "connected", Unit: UnitCount, Label: "connected", Counts: "sidecar", Better: BetterHigher, NotCompared: true}, Of: func(p *Pods) *float64 { return whole(p.Connected) }},
	{Figure: Figure{Path: "complete", Unit: UnitCount, Label: "complete", Counts: "sidecar", Better: BetterHigher, NotCompared: true}, Of: func(p *Pods) *float64 { return whole(p.Complete) }},
	{Figure: Figure{Path: "converged", Unit: UnitCount, Label: "converged", Counts: "sidecar", Better: BetterHigher, NotCompared: true}, Of: func(p *Pods) *float64 { return whole(p.Converged) }},
}

// ArrivalFigures are those of Arrival.
var ArrivalFigures = []FigureOf[Arrival]{
	{Figure: Figure{Path: "offeredPerSecond", Unit: UnitPerSecond, Label: "offered", Counts: "pod", Better: BetterNeither, NotCompared: true}, Of: func(a *Arrival) *float64 { return a.OfferedPerSecond }},
	{Figure: Figure{Path: "achievedPerSecond", Unit: UnitPerSecond, Label: "achieved", Counts: "pod", Better: BetterHigher}, Of: func(a *Arrival) *float64 { return a.AchievedPerSecond }},
	{Figure: Figure{Path: "readyPerSecond", Unit: UnitPerSecond, Label: "ready", Counts: "pod", Better: BetterNeither, NotCompared: true}, Of: func(a *Arrival) *float64 { return a.ReadyPerSecond }},
	{Figure: Figure{Path: "readyPeakPerSecond", Unit: UnitPerSecond, Label: "ready, peak", Counts: "second", Better: BetterNeither, NotCompared: true}, Of: func(a *Arrival) *float64 { return a.ReadyPeakPerSecond }},
	{Figure: Figure{Path: "steps", Unit: UnitCount, Label: "bursts", Counts: "burst", Better: BetterNeither, NotCompared: true}, Of: func(a *Arrival) *float64 { return whole(a.Steps) }},
	{Figure: Figure{Path: "stepsLateSeconds", Unit: UnitSeconds, Label: "bursts late, most", Counts: "burst", Better: BetterLower, NotCompared: true}, Of: func(a *Arrival) *float64 { return a.StepsLateSeconds }},
}

// StreamFigures are the figures of XDS that are not by type.
var StreamFigures = []FigureOf[XDS]{
	{Figure: Figure{Path: "acks", Unit: UnitCount, Label: "acks", Counts: "response", Better: BetterNeither}, Of: func(x *XDS) *float64 { return whole(x.Acks) }},
	{Figure: Figure{Path: "nacks", Unit: UnitCount, Label: "nacks", Counts: "response", Better: BetterLower}, Of: func(x *XDS) *float64 { return whole(x.Nacks) }},
	{Figure: Figure{Path: "attempts", Unit: UnitCount, Label: "attempts", Counts: "attempt to connect", Better: BetterLower}, Of: func(x *XDS) *float64 { return whole(x.Attempts) }},
	{Figure: Figure{Path: "refusals", Unit: UnitCount, Label: "refusals", Counts: "stream", Better: BetterLower}, Of: func(x *XDS) *float64 { return whole(x.Refusals) }},
	{Figure: Figure{Path: "reconnects", Unit: UnitCount, Label: "reconnects", Counts: "stream", Better: BetterLower}, Of: func(x *XDS) *float64 { return whole(x.Reconnects) }},
	{Figure: Figure{Path: "wastedResponses", Unit: UnitCount, Label: "wasted", Counts: "response", Better: BetterLower}, Of: func(x *XDS) *float64 { return whole(x.WastedResponses) }},
	{Figure: Figure{Path: "configurationBytes.mean", Unit: UnitBytes, Label: "configuration mean", Counts: "sidecar", Better: BetterLower}, Of: func(x *XDS) *float64 { return orZero(x.ConfigurationBytes).Mean }},
	{Figure: Figure{Path: "configurationBytes.max", Unit: UnitBytes, Label: "max", Counts: "sidecar", Better: BetterLower}, Of: func(x *XDS) *float64 { return orZero(x.ConfigurationBytes).Max }},
}

// PerSidecarFigures are what a sidecar received in the rollout.
var PerSidecarFigures = []FigureOf[XDS]{
	{Figure: Figure{Path: "perSidecar.responses", Unit: UnitCount, Label: "responses per sidecar", Counts: "sidecar", Better: BetterLower, Phase: PhaseRollout}, Of: func(x *XDS) *float64 { return orZero(x.PerSidecar).Responses }},
	{Figure: Figure{Path: "perSidecar.bytes", Unit: UnitBytes, Label: "bytes per sidecar", Counts: "sidecar", Better: BetterLower, Phase: PhaseRollout}, Of: func(x *XDS) *float64 { return orZero(x.PerSidecar).Bytes }},
}

// RateFigures are the figures of Rates.
var RateFigures = []FigureOf[Rates]{
	{Figure: Figure{
		Path: "responsesPerSecond", Unit: UnitPerSecond, Label: "responses/s", Counts: "phase", Better: BetterNeither,
		Definition: "Responses that all sidecars together received in the phase, over its length. What a worker in another process received may be counted up to a second late.",
	}, Of: func(r *Rates) *float64 { return r.ResponsesPerSecond }},
	{Figure: Figure{
		Path: "bytesPerSecond", Unit: UnitBytesPerSecond, Label: "bytes/s", Counts: "phase", Better: BetterNeither,
		Definition: "The size of those responses as messages, before compression and without the frames of HTTP/2 and TLS, over the phase's length.",
	}, Of: func(r *Rates) *float64 { return r.BytesPerSecond }},
}

// counts are the figures of XDS.
func counts() []node[XDS] {
	responses := []FigureOf[int64]{{Figure: Figure{Unit: UnitCount, Counts: "response", Better: BetterLower}, Of: whole[int64]}}
	bytes := []FigureOf[int64]{{Figure: Figure{Unit: UnitBytes, Counts: "response", Better: BetterLower}, Of: whole[int64]}}
	held := []FigureOf[float64]{{Figure: Figure{Unit: UnitBytes, Counts: "sidecar", Better: BetterLower}, Of: self}}
	resources := []FigureOf[float64]{{Figure: Figure{Unit: UnitCount, Counts: "sidecar", Better: BetterLower}, Of: self}}
	all := []node[XDS]{
		each(place{path: "responses.TYPE", label: "responses: TYPE"}, "TYPE", func(x *XDS) []named[int64] { return entries(x.Responses) }, leaves(responses)),
		each(place{path: "bytes.TYPE", label: "bytes: TYPE"}, "TYPE", func(x *XDS) []named[int64] { return entries(x.Bytes) }, leaves(bytes)),
	}
	return append(append(append(all, leaves(PerSidecarFigures)...), leaves(StreamFigures)...),
		each(place{path: "configurationBytes.byType.TYPE", label: "configuration mean: TYPE"}, "TYPE", func(x *XDS) []named[float64] { return entries(orZero(x.ConfigurationBytes).ByType) }, leaves(held)),
		each(place{path: "configurationResources.TYPE", label: "resources held, mean: TYPE"}, "TYPE", func(x *XDS) []named[float64] { return entries(x.ConfigurationResources) }, leaves(resources)),
		each(place{path: "rates.PHASE", label: "received: "}, "PHASE", func(x *XDS) []named[Rates] { return phased(x.Rates) }, leaves(RateFigures)))
}

func self(v *float64) *float64 { return v }

// CertificateFigures are the counts of Certificates.
var CertificateFigures = []FigureOf[Certificates]{
	{Figure: Figure{Path: "issued", Unit: UnitCount, Label: "issued", Counts: "certificate", Better: BetterNeither}, Of: func(c *Certificates) *float64 { return whole(c.Issued) }},
	{Figure: Figure{Path: "failed", Unit: UnitCount, Label: "failed", Counts: "pod", Better: BetterLower}, Of: func(c *Certificates) *float64 { return whole(c.Failed) }},
	{Figure: Figure{Path: "attempts", Unit: UnitCount, Label: "attempts", Counts: "CSR", Better: BetterLower}, Of: func(c *Certificates) *float64 { return whole(c.Attempts) }},
	{Figure: Figure{Path: "failedAttempts", Unit: UnitCount, Label: "failed attempts", Counts: "CSR", Better: BetterLower, Definition: "Certificate signing requests that were sent and brought no certificate: refused, lost, or answered with one that is not valid. `attempts` minus `issued`, where certificates come in answer to requests."}, Of: func(c *Certificates) *float64 { return whole(c.FailedAttempts) }},
	{Figure: Figure{Path: "perSecond", Unit: UnitPerSecond, Label: "per second", Counts: "certificate", Better: BetterHigher, Phase: PhaseRollout}, Of: func(c *Certificates) *float64 { return c.PerSecond }},
}

// stormFigures are those of a CertificateStorm that come after its latency.
var stormFigures = []FigureOf[CertificateStorm]{
	{Figure: Figure{Path: "failures", Unit: UnitCount, Label: "failures", Counts: "CSR", Better: BetterLower}, Of: func(s *CertificateStorm) *float64 { return whole(&s.Failures) }},
	{Figure: Figure{Path: "seconds", Unit: UnitSeconds, Label: "length", Counts: "storm", Better: BetterLower}, Of: func(s *CertificateStorm) *float64 { return s.Seconds }},
	{Figure: Figure{Path: "perSecond", Unit: UnitPerSecond, Label: "per second", Counts: "certificate", Better: BetterHigher}, Of: func(s *CertificateStorm) *float64 { return s.PerSecond }},
}

// certificates are the figures of Certificates.
func certificates() []node[Certificates] {
	storm := append([]node[CertificateStorm]{
		distribution(place{path: "latency", counts: "certificate"}, func(s *CertificateStorm) *Latency { return s.Latency }),
	}, leaves(stormFigures)...)
	return append(leaves(CertificateFigures),
		distribution(place{path: "renewals", label: "renewals, ", counts: "certificate"}, func(c *Certificates) *Latency { return c.Renewals }),
		at(place{path: "storm", label: "storm, ", phase: PhaseStorm}, func(c *Certificates) *CertificateStorm { return c.Storm }, storm))
}

// ChurnFigures are those of Churn that are not latencies.
var ChurnFigures = []FigureOf[Churn]{
	{Figure: Figure{Path: "offeredPerSecond", Unit: UnitPerSecond, Label: "offered/s", Counts: "pod", Better: BetterNeither, NotCompared: true}, Of: func(c *Churn) *float64 { return c.OfferedPerSecond }},
	{Figure: Figure{Path: "achievedPerSecond", Unit: UnitPerSecond, Label: "achieved/s", Counts: "pod", Better: BetterHigher}, Of: func(c *Churn) *float64 { return c.AchievedPerSecond }},
	{Figure: Figure{Path: "replaced", Unit: UnitCount, Label: "replaced", Counts: "pod", Better: BetterNeither}, Of: func(c *Churn) *float64 { return whole(c.Replaced) }},
	{Figure: Figure{Path: "seconds", Unit: UnitSeconds, Label: "converged after", Counts: "phase", Better: BetterLower}, Of: func(c *Churn) *float64 { return c.Seconds }},
	{Figure: Figure{Path: "attempts", Unit: UnitCount, Label: "attempts", Counts: "attempt to connect", Better: BetterLower}, Of: func(c *Churn) *float64 { return whole(c.Attempts) }},
	{Figure: Figure{Path: "refusals", Unit: UnitCount, Label: "refusals", Counts: "stream", Better: BetterLower}, Of: func(c *Churn) *float64 { return whole(c.Refusals) }},
}

// faultBytes is what sidecars received during a Fault, of one type.
var faultBytes = []FigureOf[int64]{{Figure: Figure{Unit: UnitBytes, Counts: "response", Better: BetterLower}, Of: whole[int64]}}

// FaultFigures are those of a Fault that are neither latencies nor usage.
var FaultFigures = []FigureOf[Fault]{
	{Figure: Figure{Path: "lastedSeconds", Unit: UnitSeconds, Label: "lasted", Counts: "fault", Better: BetterNeither}, Of: func(f *Fault) *float64 { return f.LastedSeconds }},
	{Figure: Figure{Path: "seconds", Unit: UnitSeconds, Label: "converged after", Counts: "fault", Better: BetterLower}, Of: func(f *Fault) *float64 { return f.Seconds }},
	{Figure: Figure{Path: "reconnected", Unit: UnitCount, Label: "reconnected", Counts: "sidecar", Better: BetterNeither}, Of: func(f *Fault) *float64 { return whole(f.Reconnected) }},
	{Figure: Figure{Path: "replaced", Unit: UnitCount, Label: "replaced", Counts: "pod", Better: BetterNeither}, Of: func(f *Fault) *float64 { return whole(f.Replaced) }},
	{Figure: Figure{Path: "attempts", Unit: UnitCount, Label: "attempts", Counts: "attempt to connect", Better: BetterLower}, Of: func(f *Fault) *float64 { return whole(f.Attempts) }},
	{Figure: Figure{Path: "refusals", Unit: UnitCount, Label: "refusals", Counts: "stream", Better: BetterLower}, Of: func(f *Fault) *float64 { return whole(f.Refusals) }},
}

// UpgradeRoomFigures are those of an UpgradeRoom.
var UpgradeRoomFigures = []FigureOf[UpgradeRoom]{
	{Figure: Figure{Path: "cores", Unit: UnitCores, Label: "cores more than before", Counts: "run", Better: BetterLower, Definition: "What both control planes used together in their greatest second of all stages, less the mean of the old one in steady."}, Of: func(r *UpgradeRoom) *float64 { return r.Cores }},
	{Figure: Figure{Path: "memoryBytes", Unit: UnitBytes, Label: "memory more than before", Counts: "run", Better: BetterLower, Definition: "The greatest resident memory of both control planes together at one moment of all stages, less the peak of the old one in steady."}, Of: func(r *UpgradeRoom) *float64 { return r.MemoryBytes }},
	{Figure: Figure{Path: "pods", Unit: UnitCount, Label: "pods more than before", Counts: "run", Better: BetterLower, Definition: "The most pods that were there at once in all stages, less those of the mesh: what the rolling updates create before they delete."}, Of: func(r *UpgradeRoom) *float64 { return whole(r.Pods) }},
}

// UpgradeStageFigures are those of an UpgradeStage that are neither latencies nor of one
// control plane.
var UpgradeStageFigures = []FigureOf[UpgradeStage]{
	{Figure: Figure{Path: "pods", Unit: UnitCount, Label: "pods moved", Counts: "pod", Better: BetterNeither, NotCompared: true, Definition: "Pods of the workloads that the stage moves to the other control plane."}, Of: func(s *UpgradeStage) *float64 { return whole(s.Pods) }},
	{Figure: Figure{Path: "replaced", Unit: UnitCount, Label: "replaced", Counts: "pod", Better: BetterNeither, Definition: "Pods created in the stage in place of others."}, Of: func(s *UpgradeStage) *float64 { return whole(s.Replaced) }},
	{Figure: Figure{Path: "peakCores", Unit: UnitCores, Label: "both control planes, cores, peak", Counts: "second", Better: BetterLower, Definition: "Cores of both control planes together in the second of the stage in which they used the most."}, Of: func(s *UpgradeStage) *float64 { return s.PeakCores }},
	{Figure: Figure{Path: "peakMemoryBytes", Unit: UnitBytes, Label: "both control planes, memory, peak", Counts: "second", Better: BetterLower, Definition: "The greatest resident memory of both control planes together at one moment of the stage."}, Of: func(s *UpgradeStage) *float64 { return s.PeakMemoryBytes }},
	{Figure: Figure{Path: "peakPods", Unit: UnitCount, Label: "pods, peak", Counts: "second", Better: BetterLower, Definition: "The most pods that were there at once, read each second."}, Of: func(s *UpgradeStage) *float64 { return whole(s.PeakPods) }},
}

// UpgradeSideFigures are those of an UpgradeSide that are neither pushes nor usage.
var UpgradeSideFigures = []FigureOf[UpgradeSide]{
	{Figure: Figure{Path: "responses", Unit: UnitCount, Label: "responses", Counts: "response", Better: BetterLower, Definition: "Responses that the sidecars received in the stage that are connected to this control plane."}, Of: func(s *UpgradeSide) *float64 { return whole(s.Responses) }},
	{Figure: Figure{Path: "stale", Unit: UnitCount, Label: "stale endpoints, mean", Counts: "stage", Better: BetterLower, Definition: "The mean number of stale endpoints at a moment, over all sidecars of this control plane. An endpoint is stale in a sidecar from when the API server lists it as terminating, or no more, as seen by scaler, until the sidecar has received configuration without it: a request may go to a pod that is gone. The times for which they were stale are the distribution `push.endpointRemove` of the same control plane."}, Of: func(s *UpgradeSide) *float64 { return s.Stale }},
}

// BalanceFigures are those of a Balance.
var BalanceFigures = []FigureOf[Balance]{
	{Figure: Figure{
		Path: "replicas", Unit: UnitCount, Label: "replicas that serve", Counts: "replica", Better: BetterNeither, NotCompared: true,
		Definition: "Replicas that serve at the end of the phase, or when the mesh has converged again after the fault.",
	}, Of: func(b *Balance) *float64 { return whole(&b.Replicas) }},
	{Figure: Figure{
		Path: "streams", Unit: UnitCount, Label: "streams", Counts: "stream", Better: BetterNeither, NotCompared: true,
		Definition: "Streams of simulated sidecars to these replicas that are open and answered at that moment.",
	}, Of: func(b *Balance) *float64 { return whole(&b.Streams) }},
	{Figure: Figure{
		Path: "most", Unit: UnitCount, Label: "most", Counts: "stream", Better: BetterLower, NotCompared: true,
		Definition: "The streams of the replica that has the most of them.",
	}, Of: func(b *Balance) *float64 { return whole(&b.Most) }},
	{Figure: Figure{
		Path: "expected", Unit: UnitCount, Label: "most, expected", Counts: "stream", Better: BetterNeither, NotCompared: true,
		Definition: "The mean of the most under chance, where each of n streams goes to one of R replicas, all alike: n/R + e sqrt(n/R), e being the mean of the greatest of R independent standard normal variables.",
	}, Of: func(b *Balance) *float64 { return &b.Expected }},
	{Figure: Figure{
		Path: "probability", Unit: UnitShare, Label: "probability", Counts: "phase", Better: BetterNeither, NotCompared: true,
		Definition: "The probability with which chance makes a spread as uneven as this, or more: Pearson's chi-squared test with R-1 degrees of freedom.",
	}, Of: func(b *Balance) *float64 { return &b.Probability }},
}

// replicaFigures are the figures of a FaultReplica that are counts.
var replicaFigures = []FigureOf[FaultReplica]{
	{Figure: Figure{
		Path: "before", Unit: UnitCount, Label: "streams before", Counts: "stream", Better: BetterNeither, NotCompared: true,
		Definition: "Streams of simulated sidecars to the replica that were open and answered when the fault began.",
	}, Of: func(r *FaultReplica) *float64 { return whole(&r.Before) }},
	{Figure: Figure{
		Path: "after", Unit: UnitCount, Label: "streams after", Counts: "stream", Better: BetterNeither, NotCompared: true,
		Definition: "Those that were when the mesh had converged again.",
	}, Of: func(r *FaultReplica) *float64 { return whole(&r.After) }},
}

// replicas are the figures of Replicas.
func replicas(usage []node[Usage]) []node[Replicas] {
	ours := []FigureOf[int]{{Figure: Figure{
		Unit: UnitCount, Counts: "stream", Better: BetterNeither,
		Definition: "Streams of simulated sidecars to the replica that are open and answered at the end of the phase, by the address that was dialled.",
	}, Of: whole[int]}}
	theirs := []FigureOf[float64]{{Figure: Figure{
		Unit: UnitCount, Counts: "stream", Better: BetterNeither,
		Definition: "Streams that are connected to the replica by its own metric, of its last scrape in the phase. Those of real sidecars are among them.",
	}, Of: self}}
	return []node[Replicas]{
		each(place{path: "balance.PHASE", label: "streams to replicas: "}, "PHASE", func(r *Replicas) []named[Balance] { return phased(&r.Balance) }, leaves(BalanceFigures)),
		each(place{path: "each.PROGRAM", label: "PROGRAM: ", notCompared: true}, "PROGRAM", func(r *Replicas) []named[Replica] { return pointed(r.Each) }, []node[Replica]{
			each(place{path: "usage.PHASE", list: usageList}, "PHASE", func(r *Replica) []named[Usage] { return phased(&r.Usage) }, usage),
			each(place{path: "streams.PHASE", label: "streams"}, "PHASE", func(r *Replica) []named[int] { return phased(&r.Streams) }, leaves(ours)),
			each(place{path: "ownStreams.PHASE", label: "streams by its own count"}, "PHASE", func(r *Replica) []named[float64] { return phased(&r.OwnStreams) }, leaves(theirs)),
		}),
	}
}

// pointed are the entries of a map of pointers, in the order of their names.
func pointed[V any](m map[string]*V) []named[V] {
	var all []named[V]
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, named[V]{name, m[name]})
	}
	return all
}

// InstrumentFigures are those of an Instrument, but for its lag.
var InstrumentFigures = []FigureOf[Instrument]{
	{Figure: Figure{Path: "cores", Unit: UnitCores, Label: "cores", Counts: "phase", Better: BetterLower}, Of: func(i *Instrument) *float64 { return i.Cores }},
	{Figure: Figure{Path: "memoryBytes", Unit: UnitBytes, Label: "memory, peak", Counts: "second", Better: BetterLower}, Of: func(i *Instrument) *float64 { return i.MemoryBytes }},
	{Figure: Figure{Path: "bytesPerSidecar", Unit: UnitBytes, Label: "memory per sidecar", Counts: "sidecar", Better: BetterLower}, Of: func(i *Instrument) *float64 { return i.BytesPerSidecar }},
	{Figure: Figure{Path: "openFiles", Unit: UnitCount, Label: "open files", Counts: "second", Better: BetterLower, NotCompared: true}, Of: func(i *Instrument) *float64 { return whole(i.OpenFiles) }},
	{Figure: Figure{Path: "saturation", Unit: UnitShare, Label: "saturation", Counts: "phase", Better: BetterLower, NotCompared: true}, Of: func(i *Instrument) *float64 { return i.Saturation }},
	{Figure: Figure{Path: "waitedSeconds", Unit: UnitSeconds, Label: "waited for processors", Counts: "phase", Better: BetterLower, NotCompared: true}, Of: func(i *Instrument) *float64 { return i.WaitedSeconds }},
}

// explainedFigures are those of Explained.
var explainedFigures = []FigureOf[Explained]{
	{Figure: Figure{Path: "ownSeconds", Unit: UnitSeconds, Label: "stages of a push, mean", Counts: "push", Better: BetterLower, NotCompared: true}, Of: func(e *Explained) *float64 { return &e.OwnSeconds }},
	{Figure: Figure{Path: "pushSeconds", Unit: UnitSeconds, Label: "followed pushes, mean", Counts: "sidecar of each change", Better: BetterLower, NotCompared: true}, Of: func(e *Explained) *float64 { return &e.PushSeconds }},
	{Figure: Figure{Path: "share", Unit: UnitShare, Label: "share", Counts: "phase", Better: BetterNeither, NotCompared: true}, Of: func(e *Explained) *float64 { return &e.Share }},
}

// pushIntervals are the figures of PushIntervals.
func pushIntervals() []node[PushIntervals] {
	all := leaves([]FigureOf[PushIntervals]{
		{Figure: Figure{Path: "changes", Unit: UnitCount, Label: "changes", Counts: "change", Better: BetterNeither}, Of: func(p *PushIntervals) *float64 { return whole(&p.Changes) }},
		{Figure: Figure{Path: "blocks", Unit: UnitCount, Label: "blocks", Counts: "second", Better: BetterNeither}, Of: func(p *PushIntervals) *float64 {
			if p.Blocks == 0 {
				return nil
			}
			return whole(&p.Blocks)
		}},
	})
	ends := leaves([]FigureOf[QuantileInterval]{
		{Figure: Figure{Path: "low", Unit: UnitSeconds, Label: "low", Counts: "change", Better: BetterLower}, Of: func(i *QuantileInterval) *float64 { return i.Low }},
		{Figure: Figure{Path: "high", Unit: UnitSeconds, Label: "high", Counts: "change", Better: BetterLower}, Of: func(i *QuantileInterval) *float64 { return i.High }},
	})
	return append(all,
		at(place{path: "p50", label: "p50, "}, func(p *PushIntervals) *QuantileInterval { return p.P50 }, ends),
		at(place{path: "p90", label: "p90, "}, func(p *PushIntervals) *QuantileInterval { return p.P90 }, ends),
		at(place{path: "p99", label: "p99, "}, func(p *PushIntervals) *QuantileInterval { return p.P99 }, ends))
}

// intervalsOf are a run's push intervals, by kind of change in the order of ChangeKinds.
func intervalsOf(r *Run) []named[PushIntervals] {
	var all []named[PushIntervals]
	for _, kind := range ChangeKinds {
		if p := r.Latencies.PushIntervals[kind]; p != nil {
			all = append(all, named[PushIntervals]{string(kind), p})
		}
	}
	return all
}

// rolloutFigures are of the run's phases.
var rolloutFigures = []FigureOf[Run]{
	{Figure: Figure{Path: "phases.rollout.seconds", Unit: UnitSeconds, Phase: PhaseRollout, Label: "rollout time", Counts: "run", Better: BetterLower}, Of: (*Run).RolloutSeconds},
}

// runFigures is the catalogue.
var runFigures = sync.OnceValue(func() []node[Run] {
	usage := leaves(UsageFigures)
	byPhase := func(path, label string, of func(*Run) *ByPhase[*Usage]) node[Run] {
		return each(place{path: path + ".PHASE", label: label, list: usageList}, "PHASE", func(r *Run) []named[Usage] { return phased(of(r)) }, usage)
	}
	real := func(r *Run) *RealSidecars { return orZero(r.Sidecars).Real }
	all := append(leaves(rolloutFigures),
		byPhase("controlPlane", "control plane: ", func(r *Run) *ByPhase[*Usage] { return r.ControlPlane }),
		at(place{path: "replicas"}, func(r *Run) *Replicas { return r.Replicas }, replicas(usage)),
		at(place{path: "latencies"}, func(r *Run) *Latencies { return &r.Latencies }, []node[Latencies]{latencies("")}),
		each(place{path: "latencies.pushIntervals.KIND", label: "push interval, KIND: ", phase: PhaseProbe, notCompared: true}, "KIND", intervalsOf, pushIntervals()),
		at(place{path: "latencies.explained", label: "explained: ", phase: PhaseProbe}, func(r *Run) *Explained { return r.Latencies.Explained }, leaves(explainedFigures)),
		at(place{path: "xds"}, func(r *Run) *XDS { return r.XDS }, counts()),
		at(place{path: "certificates", label: "certificates: "}, func(r *Run) *Certificates { return r.Certificates }, certificates()),
		byPhase("sidecars.real", "real sidecars: ", func(r *Run) *ByPhase[*Usage] {
			if real(r) == nil {
				return nil
			}
			return &real(r).ByPhase
		}),
		at(place{path: "sidecars.real.starts", label: "real sidecars: ", notCompared: true}, func(r *Run) *Latencies { return orZero(real(r)).Starts }, []node[Latencies]{latencies(PhaseRollout)}),
		at(place{path: "change", label: "change: ", phase: PhaseChange}, func(r *Run) *Change { return r.Change }, changeFigures()),
		at(place{path: "cycle", label: "cycle: ", phase: PhaseCycle}, func(r *Run) *Cycle { return r.Cycle }, cycleFigures()),
		at(place{path: "churn", label: "churn: ", phase: PhaseChurn}, func(r *Run) *Churn { return r.Churn }, append(leaves(ChurnFigures),
			at(place{path: "latencies"}, func(c *Churn) *Latencies { return &c.Latencies }, []node[Latencies]{latencies(PhaseChurn)}))),
		each(place{path: "faults.FAULT", label: "FAULT: ", phase: PhaseFault}, "FAULT", faults, append(leaves(FaultFigures),
			each(place{path: "bytes.TYPE", label: "bytes: TYPE", notCompared: true}, "TYPE", func(f *Fault) []named[int64] { return entries(f.Bytes) }, leaves(faultBytes)),
			at(place{path: "controlPlane", label: "control plane, ", list: usageList}, func(f *Fault) *Usage { return f.ControlPlane }, usage),
			at(place{path: "balance", label: "streams to replicas, "}, func(f *Fault) *Balance { return f.Balance }, leaves(BalanceFigures)),
			each(place{path: "replicas.PROGRAM", label: "PROGRAM, "}, "PROGRAM", func(f *Fault) []named[FaultReplica] { return pointed(f.Replicas) }, leaves(replicaFigures)),
			at(place{path: "latencies"}, func(f *Fault) *Latencies { return &f.Latencies }, []node[Latencies]{latencies(PhaseFault)}))),
	)
	side := func(name, label string, of func(*UpgradeStage) *UpgradeSide) node[UpgradeStage] {
		return at(place{path: name, label: label}, of, append(leaves(UpgradeSideFigures),
			at(place{path: "controlPlane", list: usageList}, func(s *UpgradeSide) *Usage { return s.ControlPlane }, usage),
			distributions("", pushesOf)))
	}
	all = append(all,
		at(place{path: "upgrade.room", label: "upgrade: "}, func(r *Run) *UpgradeRoom { return orZero(r.Upgrade).Room }, leaves(UpgradeRoomFigures)),
		each(place{path: "upgrade.stages.STAGE", label: "STAGE: "}, "STAGE", stages, append(leaves(UpgradeStageFigures),
			side("from", "old control plane, ", func(s *UpgradeStage) *UpgradeSide { return s.From }),
			side("to", "new control plane, ", func(s *UpgradeStage) *UpgradeSide { return s.To }),
			at(place{path: "latencies"}, func(s *UpgradeStage) *Latencies { return &s.Latencies }, []node[Latencies]{latencies("")}))))
	programs := each(place{path: "cluster.PROGRAM", label: "PROGRAM: "}, "PROGRAM", func(r *Run) []named[ByPhase[*Usage]] { return entries(r.Cluster) },
		[]node[ByPhase[*Usage]]{each(place{path: "PHASE", list: usageList}, "PHASE", phased[Usage], usage)})
	return append(all, programs,
		at(place{path: "pods", label: "pods: ", phase: PhaseRollout}, func(r *Run) *Pods { return r.Pods }, leaves(PodFigures)),
		at(place{path: "proxies", label: "proxies: ", phase: PhaseRollout}, func(r *Run) *Proxies { return r.Proxies }, append(leaves(ProxyFigures), proxiesHeld()...)),
		at(place{path: "proxies.waypoints", label: "waypoints: ", phase: PhaseRollout}, func(r *Run) *Waypoints { return orZero(r.Proxies).Waypoints }, append(leaves(WaypointFigures), waypointsHeld()...)),
		at(place{path: "arrival", label: "arrival: ", phase: PhaseRollout}, func(r *Run) *Arrival { return r.Arrival }, leaves(ArrivalFigures)),
		at(place{path: "instrument", label: "scaler: ", phase: PhaseRollout}, func(r *Run) *Instrument { return r.Instrument }, append(leaves(InstrumentFigures),
			distribution(place{path: "lag", label: "lag, ", counts: "timer"}, func(i *Instrument) *Latency { return i.Lag }))))
})

// faults are a run's faults by name and phase: a place in a list says nothing of one
// in another run.
func faults(r *Run) []named[Fault] {
	var all []named[Fault]
	for i := range r.Faults {
		all = append(all, named[Fault]{r.Faults[i].Name + "@" + string(r.Faults[i].Phase), &r.Faults[i]})
	}
	return all
}

// orZero stands in for what was not measured: nothing is known of it.
func orZero[T any](measured *T) *T {
	if measured == nil {
		return new(T)
	}
	return measured
}
