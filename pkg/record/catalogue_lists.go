package record

import (
	"cmp"
	"reflect"
	"strings"
	"sync"
)

// ChangeKinds are the kinds of changes that are followed, in the order in which they
// are shown.
var ChangeKinds = []ChangeKind{EndpointAdd, EndpointRemove, EndpointHealth, RouteChange, PolicyChange, ServiceChange}

// endpointChanges are the kinds of changes of endpoints: those that happen while a mesh is rolled out or upgraded, and those
// whose write is not the change itself.
var endpointChanges = []ChangeKind{EndpointAdd, EndpointRemove, EndpointHealth}

// UsageFigures are the figures of a Usage.
var UsageFigures = []Figure{
	{Path: "cores.mean", Unit: UnitCores, Label: "cores, mean", Counts: "phase", Better: BetterLower,
		Definition: "Mean cores: `cpuSeconds` over the length of the phase.",
		Source:     "counters of `/proc`, read at the edges of the phase"},
	{Path: "cores.peak", Unit: UnitCores, Label: "cores, peak", Counts: "second", Better: BetterLower,
		Definition: "The largest mean over any 1 s.",
		Source:     "the same counters, read every second; linear between two readings"},
	{Path: "cores.peak100ms", Unit: UnitCores, Label: "cores, peak of 100 ms", Counts: "100 ms", Better: BetterLower,
		Definition: "The largest mean over an interval of 100 ms, with time slowed down K times of K x 100 ms. The intervals follow each other between two edges: a burst that lies across two of them is seen in part. An interval is longer if scaler ran late: then it is a lower bound. Of the control plane alone.",
		Source:     "the clock of the process, read every 100 ms"},
	{Path: "cpuSeconds", Unit: UnitSeconds, Label: "CPU time", Counts: "phase", Better: BetterLower,
		Definition: "Processor time, user and system, between the edges of the phase, of all processes that were the program meanwhile.",
		Source:     "counters of `/proc`, read at the edges of the phase"},
	{Path: "referenceCPUSeconds", Unit: UnitSeconds, Label: "CPU time, reference", Counts: "phase", Better: BetterLower,
		Definition: "`cpuSeconds` times the [speed of the machine](definitions/machine.md#speed-of-the-machine) in the phase, else in the run: what a reference processor would need. Where time was slowed down K times, without [what the control plane does at rest](definitions/dilation.md#what-is-done-at-rest) in the time that this adds. Of the control plane on this machine alone; absent if the speed is not known.",
		Source:     "the same, and the measured speed"},
	{Path: "referenceCores", Unit: UnitCores, Label: "cores, reference, mean", Counts: "phase", Better: BetterLower, NotCompared: true,
		Definition: "`referenceCPUSeconds` over the length of the phase.",
		Source:     "the same, and the measured speed"},
	{Path: "memoryBytes.mean", Unit: UnitBytes, Label: "memory, mean", Counts: "second", Better: BetterLower,
		Definition: "Resident memory, weighted by time.",
		Source:     "`/proc`, read every second and at the edges"},
	{Path: "memoryBytes.peak", Unit: UnitBytes, Label: "memory, peak", Counts: "second", Better: BetterLower,
		Definition: "The largest resident memory.",
		Source:     "readings, and the kernel's high-water mark if it rose between two readings"},
	{Path: "memoryBytes.end", Unit: UnitBytes, Label: "memory, end", Counts: "phase", Better: BetterLower,
		Definition: "Resident memory at the last edge.",
		Source:     "`/proc`, read at the edge"},
	{Path: "workingSetBytes.mean", Unit: UnitBytes, Label: "working set, mean", Counts: "second", Better: BetterLower,
		Definition: "Memory as a control group counts it, weighted by time: all that the kernel charges to the program (anonymous memory, its part of the page cache, page tables and other memory of the kernel, buffers of TCP sockets) without the file pages that were not used lately. Not included: what the program held in its first milliseconds, before it was moved into the group (4 MB of istiod), and pages of its own file that were in the page cache already, which resident memory includes (110 MB of istiod). Of the control plane alone; absent if it is not in a control group of its own, and `environment.controlPlane.workingSetUnknown` states why. The kubelet's working set is the same in version 2 of control groups, and is without sockets in version 1.",
		Source:     "`memory.current` less `inactive_file` (version 2), `memory.usage_in_bytes` less `total_inactive_file` plus `memory.kmem.tcp.usage_in_bytes` (version 1), read every second and at the edges"},
	{Path: "workingSetBytes.peak", Unit: UnitBytes, Label: "working set, peak", Counts: "second", Better: BetterLower,
		Definition: "The largest reading of the working set.",
		Source:     "the same"},
	{Path: "workingSetBytes.end", Unit: UnitBytes, Label: "working set, end", Counts: "phase", Better: BetterLower,
		Definition: "The working set at the last edge.",
		Source:     "the same"},
	{Path: "heapBytes.mean", Unit: UnitBytes, Label: "live heap, mean", Counts: "second", Better: BetterLower,
		Definition: "Live heap, weighted by time: what the last garbage collection found in use. Absent if the program does not expose it, has not collected yet, or its heap is near its memory limit.",
		Source:     "the program's own metrics, scraped every second, and those of the cluster's programs every two"},
	{Path: "heapBytes.end", Unit: UnitBytes, Label: "live heap, end", Counts: "phase", Better: BetterLower,
		Definition: "Live heap at the end of the phase.",
		Source:     "the same"},
	{Path: "heapBytes.collected", Unit: UnitBytes, Label: "live heap, after GC", Counts: "phase", Better: BetterLower,
		Definition: "Live heap after two collections that scaler requested right after the phase (`steady` only). Absent if the program offers no way to request one.",
		Source:     "the same"},
	{Path: "saturation", Unit: UnitShare, Label: "saturation", Counts: "phase", Better: BetterLower,
		Definition: "Upper bound of the share of the phase in which a thread was runnable and waited for a processor; with [time dilation](definitions/dilation.md#time-dilation), without what is no delay of the same thread.",
		Source:     "the kernel's run delays (schedstat)"},
	{Path: "waitedSeconds", Unit: UnitSeconds, Label: "waited for processors, all threads", Counts: "phase", Better: BetterLower, NotCompared: true,
		Definition: "For how long threads were runnable and waited for a processor, all threads added, however short the waits.",
		Source:     "the same"},
	{Path: "restarts", Unit: UnitCount, Label: "restarts", Counts: "restart", Better: BetterLower,
		Definition: "How often a process replaced an earlier one.",
		Source:     "scaler's supervision"},
}

// LatencyFigures are the figures of a Latency. Runs are compared by the median, the
// 99th percentile and what was lost: the maximum is one observation.
var LatencyFigures = []Figure{
	{Path: "count", Unit: UnitCount, Label: "count", Better: BetterNeither, NotCompared: true,
		Definition: "Observations that arrived."},
	{Path: "min", Unit: UnitSeconds, Label: "min", Better: BetterLower, NotCompared: true,
		Definition: "The smallest of those that arrived; exact."},
	{Path: "mean", Unit: UnitSeconds, Label: "mean", Better: BetterLower, NotCompared: true,
		Definition: "The mean of those that arrived; exact."},
	quantile("p50", "Median", true),
	quantile("p90", "90th percentile", false),
	quantile("p99", "99th percentile", true),
	quantile("p999", "99.9th percentile", false),
	{Path: "max", Unit: UnitSeconds, Label: "max", Better: BetterLower, NotCompared: true,
		Definition: "The greatest of those that arrived; exact."},
	{Path: "lost", Unit: UnitCount, Label: "lost", Better: BetterLower,
		Definition: "Observations that were expected and had not arrived by the time limit. Each counts as longer than every one that arrived."},
}

// quantile returns the figure of a quantile that may lie among the lost observations.
func quantile(name, words string, compared bool) Figure {
	return Figure{Path: name, Unit: UnitSeconds, Label: name, Better: BetterLower, NotCompared: !compared, quantile: true,
		Definition: words + ": nearest rank, to three digits, over `count` and `lost` together. Absent where it lies among the lost: it is then only known to be above `max`."}
}

// Events at which several latencies begin or end.
const (
	sliceSeen     = "the change of the EndpointSlice is seen in scaler's watch"
	endpointWrite = "the write that causes the change of the endpoint returned"
	endpointHeld  = "a sidecar received bytes with that address, port and health, or without it"
	sliceReceived = "a sidecar that already held the service's endpoints received bytes with it, or with a later state of that endpoint"
	firstRequest  = "a sidecar's first request is sent"
	followed      = "Each change counts once for each sidecar that it concerns. One that a sidecar does not have 30 s after it was made is lost. A change that is seen later than a sidecar has it counts as 0, and in `clamped`."
)

// pushed returns the events between which the push of a change of a kind lies.
func pushed(kind ChangeKind) (from, to string) {
	switch kind {
	case RouteChange, PolicyChange:
		return "the API write returned", "a sidecar received bytes that contain the marker of this change"
	case ServiceChange:
		return "the API write of an annotation of a Service returned", "the proxy of a node received the Service's changed Address"
	default:
		return sliceSeen, endpointHeld
	}
}

// All returns the distributions that Latencies may have, in the order in which they are
// shown, with those of this one.
func (l *Latencies) All() []Distribution {
	all := []Distribution{
		{Path: "podAdmission", Label: "pod admission", Counts: "pod", Phase: PhaseRollout, Latency: l.PodAdmission,
			From: "the create request is sent: of the pod, or of the object whose controller creates it", To: "the pod is seen in scaler's watch",
			Note: "It includes the injection webhook and, for pods that a controller creates, the controller's own delay."},
		{Path: "podReady", Label: "pod ready", Counts: "pod", Phase: PhaseRollout, Latency: l.PodReady,
			From: "the pod is first seen", To: "it is seen Ready",
			Note: "It is what an application waits for, the start delay of the sidecar included. Where pods come in bursts or at once, most of it is the time of the run's own cluster."},
		{Path: "podReadyWithoutKwok", Label: "pod ready, without KWOK", Counts: "pod", Phase: PhaseRollout, Latency: l.PodReadyWithoutKwok,
			From: "the pod is first seen", To: "it is seen Ready",
			Note: "It omits the time in which KWOK works on the pod: from the moment it is first seen with a node to that with an address, and from the moment it is first seen with its sidecar's report to that Ready. Two of these moments that come in one change count as no time."},
		{Path: "certificate", Label: "certificate", Counts: "pod", Phase: PhaseRollout, Latency: l.Certificate,
			From: "the certificate signing request is sent", To: "the chain is received and verified",
			Note: "It is of the first certificate of each pod. The time for the key, the token and waiting in scaler is not part of it. Where the control plane delivers certificates over SDS it begins when the secret is first requested on the stream that delivers it. Pods without a certificate are lost."},
		{Path: "key", Label: "key", Counts: "certificate", Phase: PhaseRollout, Latency: l.Key,
			From: "a private key is needed", To: "it is available and the request is signed"},
		{Path: "token", Label: "token", Counts: "token", Phase: PhaseRollout, Latency: l.Token,
			From: "a pod-bound token is requested", To: "it is received"},
		{Path: "clientWait", Label: "client wait", Counts: "token", Phase: PhaseRollout, Latency: l.ClientWait,
			From: "a token request is needed", To: "it is sent", Note: "It is time that scaler's own clients waited."},
		{Path: "connect", Label: "connect", Counts: "attempt", Phase: PhaseRollout, Latency: l.Connect,
			From: "the dial of an attempt", To: "TLS and the HTTP/2 settings are done",
			Note: "Waiting for the control plane's limiter and for its token review comes after it, before the first response."},
		{Path: "connectTotal", Label: "connect, total", Counts: "sidecar", Phase: PhaseRollout, Latency: l.ConnectTotal,
			From: "the dial of the first attempt", To: "the connection of the attempt that succeeded is up"},
		{Path: "reconnect", Label: "reconnect", Counts: "stream", Latency: l.Reconnect,
			From: "a sidecar loses its stream", To: "each type of its configuration was answered on another one",
			Note: "Sidecars that had not returned at the end are lost. Reconnects of a fault are in that fault's latencies only."},
		{Path: "firstConfiguration", Label: "first configuration", Counts: "sidecar", Phase: PhaseRollout, Latency: l.FirstConfiguration,
			From: firstRequest, To: "its first response arrives"},
		{Path: "completeConfiguration", Label: "complete configuration", Counts: "sidecar", Phase: PhaseRollout, Latency: l.CompleteConfiguration,
			From: firstRequest, To: "the last resource that was expected at that moment is received and acknowledged", Note: "Certificates are not part of it."},
	}
	for _, kind := range endpointChanges {
		all = append(all, Distribution{Path: "rolloutPush." + string(kind), Label: "rollout push: " + string(kind), Counts: "sidecar of each change", Phase: PhaseRollout, Latency: l.RolloutPush[kind],
			From: sliceSeen + ", during the rollout", To: sliceReceived,
			Note: "Changes overlap and control planes merge them: a state that was superseded counts when the next state of that endpoint arrives."})
	}
	for _, kind := range ChangeKinds {
		from, to := pushed(kind)
		all = append(all, Distribution{Path: "push." + string(kind), Label: "push: " + string(kind), Counts: "sidecar of each change", Phase: PhaseProbe, Latency: l.Push[kind],
			From: from, To: to, Note: followed, WithheldP99: l.WithholdsP99(kind)})
	}
	for _, kind := range endpointChanges {
		all = append(all, Distribution{Path: "pushFromWrite." + string(kind), Label: "push from write: " + string(kind), Counts: "sidecar of each change", Phase: PhaseProbe, Latency: l.PushFromWrite[kind],
			From: endpointWrite, To: endpointHeld,
			Note: "It contains the cluster's part and does not depend on scaler's watch: an upper bound of the push.", WithheldP99: l.WithholdsP99(kind)})
	}
	for _, kind := range ChangeKinds {
		path := "propagation." + string(kind)
		from, to := pushed(kind)
		all = append(all,
			Distribution{Path: path + ".first", Label: "first: " + string(kind), Counts: "change", Phase: PhaseProbe, Latency: l.Propagation[kind].First,
				From: from, To: to, Note: "The first of all sidecars concerned counts.", WithheldP99: l.WithholdsP99(kind)},
			Distribution{Path: path + ".last", Label: "last: " + string(kind), Counts: "change", Phase: PhaseProbe, Latency: l.Propagation[kind].Last,
				From: from, To: to, Note: "The last of all sidecars concerned counts.", WithheldP99: l.WithholdsP99(kind)})
	}
	return append(all,
		Distribution{Path: "changeWrite", Label: "change's write", Counts: "change", Phase: PhaseProbe, Latency: l.ChangeWrite,
			From: "the write of a followed route or policy is sent", To: "it returned"},
		Distribution{Path: "clusterPart", Label: "cluster's part", Counts: "change", Phase: PhaseProbe, Latency: l.ClusterPart,
			From: endpointWrite, To: sliceSeen, Note: "It is the time of Kubernetes' controllers, and of the start of a sidecar where only ready endpoints are sent."})
}

// realStarts returns the distributions of the starts of real sidecars.
func realStarts(l *Latencies) []Distribution {
	const started = "the agent starts, or an Envoy without one"
	return []Distribution{
		{Path: "certificate", Label: "certificate", Counts: "pod", Phase: PhaseRollout, Latency: l.Certificate,
			From: started, To: "Envoy, by its own record, took the certificate"},
		{Path: "token", Label: "token", Counts: "token", Phase: PhaseRollout, Latency: l.Token,
			From: "a pod-bound token is requested", To: "it is received"},
		{Path: "firstConfiguration", Label: "first configuration", Counts: "sidecar", Phase: PhaseRollout, Latency: l.FirstConfiguration,
			From: started, To: "Envoy, by its own record, took the oldest of the clusters, listeners and routes that it holds"},
		{Path: "completeConfiguration", Label: "complete configuration", Counts: "sidecar", Phase: PhaseRollout, Latency: l.CompleteConfiguration,
			From: started, To: "the last bytes that Envoy was seen to have received (polled every 0.2 s) before a configuration dump that held everything"},
	}
}

// latencies returns the figures of Latencies, those that fixed names of that phase.
func latencies(fixed PhaseName) node { return distributions(fixed, (*Latencies).All) }

// distributions returns the figures of a T's distributions, those that fixed names of that
// phase.
func distributions[T any](fixed PhaseName, all func(*T) []Distribution) node {
	spot := func(d Distribution) place {
		return place{path: d.Path, label: d.Label + ", ", counts: d.Counts, phase: cmp.Or(fixed, d.Phase), from: d.From, to: d.To, note: d.Note, list: latencyList}
	}
	var n node
	for _, d := range all(new(T)) {
		for _, f := range LatencyFigures {
			f = spot(d).of(f)
			f.timed, _, _ = strings.Cut(d.Path, ".")
			n.figures = append(n.figures, f)
		}
	}
	n.values = func(want, path string, of reflect.Value, add func(Value)) {
		for _, d := range all(of.Addr().Interface().(*T)) {
			at := join(path, d.Path)
			if d.Latency == nil || !leads(want, at) {
				continue
			}
			here := spot(d)
			for _, f := range LatencyFigures {
				leaves([]Figure{f}).values(want, at, reflect.ValueOf(d.Latency).Elem(), func(v Value) {
					v.Figure = here.of(v.Figure)
					add(v)
				})
				if d.WithheldP99 && (f.Path == "p99" || f.Path == "p999") && leads(want, join(at, f.Path)) {
					add(Value{Figure: here.of(f), Path: join(at, f.Path), Withheld: true})
				}
			}
		}
	}
	return n
}

// distribution puts the figures of a latency at a place.
func distribution(p place) node {
	p.list = latencyList
	return at(p, leaves(LatencyFigures))
}

// PodFigures are the counts of Pods.
var PodFigures = []Figure{
	{Path: "requested", Unit: UnitCount, Label: "requested", Counts: "pod", Better: BetterNeither, NotCompared: true,
		Definition: "Pods that were asked for."},
	{Path: "created", Unit: UnitCount, Label: "created", Counts: "pod", Better: BetterHigher, NotCompared: true,
		Definition: "Pods that exist at the end of the rollout."},
	{Path: "ready", Unit: UnitCount, Label: "ready", Counts: "pod", Better: BetterHigher, NotCompared: true,
		Definition: "Pods that are Ready at the end of the rollout."},
	{Path: "connected", Unit: UnitCount, Label: "connected", Counts: "sidecar", Better: BetterHigher, NotCompared: true,
		Definition: "Pods whose sidecar was connected at any time; of the proxies of nodes, whose node's proxy was."},
	{Path: "complete", Unit: UnitCount, Label: "complete", Counts: "sidecar", Better: BetterHigher, NotCompared: true,
		Definition: "Pods whose sidecar is [complete](definitions/phases.md#complete-initialized-converged) at the end of the rollout; of the proxies of nodes, whose node's proxy holds the pod and its certificate."},
	{Path: "converged", Unit: UnitCount, Label: "converged", Counts: "sidecar", Better: BetterHigher, NotCompared: true,
		Definition: "Pods whose sidecar has [converged](definitions/phases.md#complete-initialized-converged) at the end of the rollout; of the proxies of nodes, whose node's proxy has and that are Ready."},
}

// ArrivalFigures are the figures of Arrival.
var ArrivalFigures = []Figure{
	{Path: "offeredPerSecond", Unit: UnitPerSecond, Label: "offered", Counts: "pod", Better: BetterNeither, NotCompared: true,
		Definition: "Planned pods per second: the pods after the first burst, over the time from the first burst to the last. Absent for a burst of `all`, which creates pods as fast as possible."},
	{Path: "achievedPerSecond", Unit: UnitPerSecond, Label: "achieved", Counts: "pod", Better: BetterHigher,
		Definition: "The same for the pods as they are seen: those after the first burst, from its last pod to the very last one. For a burst of `all`, all pods from the first to the last.",
		Source:     "scaler's watch"},
	{Path: "readyPerSecond", Unit: UnitPerSecond, Label: "ready", Counts: "pod", Better: BetterNeither, NotCompared: true,
		Definition: "The pods after the first that became ready, over the time from the first to the last.",
		Source:     "scaler's watch"},
	{Path: "readyPeakPerSecond", Unit: UnitPerSecond, Label: "ready, peak", Counts: "second", Better: BetterNeither, NotCompared: true,
		Definition: "The most pods that became ready within one second: much more than `readyPerSecond` where readiness is bunched, whatever the arrival.",
		Source:     "scaler's watch"},
	{Path: "steps", Unit: UnitCount, Label: "bursts", Counts: "burst", Better: BetterNeither, NotCompared: true,
		Definition: "The number of bursts."},
	{Path: "stepsLateSeconds", Unit: UnitSeconds, Label: "bursts late, most", Counts: "burst", Better: BetterLower, NotCompared: true,
		Definition: "The longest time from the moment at which a burst was due to the response to its last request."},
}

// StreamFigures are the figures of XDS that are not by type.
var StreamFigures = []Figure{
	{Path: "acks", Unit: UnitCount, Label: "acks", Counts: "response", Better: BetterNeither,
		Definition: "Responses acknowledged, of the whole run."},
	{Path: "nacks", Unit: UnitCount, Label: "nacks", Counts: "response", Better: BetterLower,
		Definition: "Responses rejected, of the whole run."},
	{Path: "attempts", Unit: UnitCount, Label: "attempts", Counts: "attempt to connect", Better: BetterLower,
		Definition: "Dials, of the whole run."},
	{Path: "refusals", Unit: UnitCount, Label: "refusals", Counts: "stream", Better: BetterLower,
		Definition: "Streams that the control plane refused before any response, of the whole run."},
	{Path: "reconnects", Unit: UnitCount, Label: "reconnects", Counts: "stream", Better: BetterLower,
		Definition: "Streams opened by a sidecar that had lost a stream on which it had been answered, of the whole run."},
	{Path: "wastedResponses", Unit: UnitCount, Label: "wasted", Counts: "response", Better: BetterLower,
		Definition: "Responses with resources that were all equal to what the sidecar already held. Equal means equal in content: the order of map entries is ignored, as in Envoy. Released builds of istiod (vtprotobuf) write map entries in a different order each time."},
	{Path: "configurationBytes.mean", Unit: UnitBytes, Label: "configuration mean", Counts: "sidecar", Better: BetterLower,
		Definition: "Bytes of the resources that a sidecar holds when converged, mean over all sidecars. Read after settle, or at the end of a rollout that did not converge."},
	{Path: "configurationBytes.max", Unit: UnitBytes, Label: "max", Counts: "sidecar", Better: BetterLower,
		Definition: "The same of the sidecar that holds most."},
}

// PerSidecarFigures are the figures of PerSidecar: what a sidecar received in the rollout.
var PerSidecarFigures = []Figure{
	{Path: "perSidecar.responses", Unit: UnitCount, Label: "responses per sidecar", Counts: "sidecar", Better: BetterLower, Phase: PhaseRollout,
		Definition: "Responses of all types up to the end of the rollout, over the simulated sidecars that were connected. Headlines call them pushes."},
	{Path: "perSidecar.bytes", Unit: UnitBytes, Label: "bytes per sidecar", Counts: "sidecar", Better: BetterLower, Phase: PhaseRollout,
		Definition: "The bytes of those responses as messages, before compression."},
}

// RateFigures are the figures of Rates.
var RateFigures = []Figure{
	{Path: "responsesPerSecond", Unit: UnitPerSecond, Label: "responses/s", Counts: "phase", Better: BetterNeither,
		Definition: "Responses that all sidecars together received in the phase, over its length. What a worker in another process received may be counted up to a second late."},
	{Path: "bytesPerSecond", Unit: UnitBytesPerSecond, Label: "bytes/s", Counts: "phase", Better: BetterNeither,
		Definition: "The size of those responses as messages, before compression and without the frames of HTTP/2 and TLS, over the phase's length."},
}

// counts returns the figures of XDS.
func counts() []node {
	return []node{
		at(place{path: "responses.TYPE", label: "responses: TYPE"}, leaves([]Figure{{Unit: UnitCount, Counts: "response", Better: BetterLower,
			Definition: "Responses received, by type (CDS, EDS, LDS, RDS, ECDS)."}})),
		at(place{path: "bytes.TYPE", label: "bytes: TYPE"}, leaves([]Figure{{Unit: UnitBytes, Counts: "response", Better: BetterLower,
			Definition: "The size of those responses as messages, before compression, by type."}})),
		leaves(PerSidecarFigures), leaves(StreamFigures),
		at(place{path: "configurationBytes.byType.TYPE", label: "configuration mean: TYPE"}, leaves([]Figure{{Unit: UnitBytes, Counts: "sidecar", Better: BetterLower,
			Definition: "Bytes of the resources of a type that a sidecar holds when converged, mean over all sidecars."}})),
		at(place{path: "configurationResources.TYPE", label: "resources held, mean: TYPE"}, leaves([]Figure{{Unit: UnitCount, Counts: "sidecar", Better: BetterLower,
			Definition: "The number of resources of a type that a sidecar holds when converged, mean over all sidecars."}})),
		at(place{path: "rates.PHASE", label: "received: "}, leaves(RateFigures)),
	}
}

// CertificateFigures are the counts of Certificates.
var CertificateFigures = []Figure{
	{Path: "issued", Unit: UnitCount, Label: "issued", Counts: "certificate", Better: BetterNeither,
		Definition: "Certificates issued, of the whole run; with a control plane that delivers over SDS also those that it sent unasked."},
	{Path: "failed", Unit: UnitCount, Label: "failed", Counts: "pod", Better: BetterLower,
		Definition: "Pods without a certificate at the end."},
	{Path: "attempts", Unit: UnitCount, Label: "attempts", Counts: "CSR", Better: BetterLower,
		Definition: "Certificate signing requests that were sent, of the whole run; over SDS, those that were answered with a certificate."},
	{Path: "failedAttempts", Unit: UnitCount, Label: "failed attempts", Counts: "CSR", Better: BetterLower, Definition: "Certificate signing requests that were sent and brought no certificate: refused, lost, or answered with one that is not valid. `attempts` minus `issued`, where certificates come in answer to requests."},
	{Path: "perSecond", timed: "perSecond", Unit: UnitPerSecond, Label: "per second", Counts: "certificate", Better: BetterHigher, Phase: PhaseRollout,
		Definition: "The first certificates of the pods, over the time from the first request sent to the last chain received."},
}

// stormFigures are the figures of CertificateStorm that follow its latency.
var stormFigures = []Figure{
	{Path: "failures", Unit: UnitCount, Label: "failures", Counts: "CSR", Better: BetterLower,
		Definition: "Requests among `attempts` that brought no certificate."},
	{Path: "seconds", timed: "seconds", Unit: UnitSeconds, Label: "length", Counts: "storm", Better: BetterLower,
		Definition: "From the signal to all sidecars to the last certificate."},
	{Path: "perSecond", timed: "perSecond", Unit: UnitPerSecond, Label: "per second", Counts: "certificate", Better: BetterHigher,
		Definition: "Certificates issued in the storm, over its length."},
}

// certificates returns the figures of Certificates.
func certificates() []node {
	const from, to = "the certificate signing request is sent", "the chain is received and verified"
	return []node{
		leaves(CertificateFigures),
		distribution(place{path: "renewals", label: "renewals, ", counts: "certificate", from: from, to: to,
			note: "It is of certificates that replaced an older one, of simulated sidecars. Certificates of a storm are not included."}),
		at(place{path: "storm", label: "storm, ", phase: PhaseStorm},
			distribution(place{path: "latency", timed: timedWhole, counts: "certificate", from: from, to: to,
				note: "Certificates that are not there 5 minutes after the signal are lost."}),
			leaves(stormFigures)),
	}
}

// ChurnFigures are the figures of Churn, except latencies.
var ChurnFigures = []Figure{
	{Path: "offeredPerSecond", Unit: UnitPerSecond, Label: "offered/s", Counts: "pod", Better: BetterNeither, NotCompared: true,
		Definition: "Pods to be replaced per second. The oldest ready pod is next. The schedule does not wait: if no pod is ready, a turn is skipped."},
	{Path: "achievedPerSecond", timed: "achievedPerSecond", Unit: UnitPerSecond, Label: "achieved/s", Counts: "pod", Better: BetterHigher,
		Definition: "Pods deleted, over the length of the phase."},
	{Path: "replaced", Unit: UnitCount, Label: "replaced", Counts: "pod", Better: BetterNeither,
		Definition: "Pods created in place of others."},
	{Path: "seconds", timed: "seconds", Unit: UnitSeconds, Label: "converged after", Counts: "phase", Better: BetterLower,
		Definition: "From the end of the phase until the run had converged again; absent if it did not within the time limit."},
	{Path: "attempts", Unit: UnitCount, Label: "attempts", Counts: "attempt to connect", Better: BetterLower,
		Definition: "Dials in the phase."},
	{Path: "refusals", Unit: UnitCount, Label: "refusals", Counts: "stream", Better: BetterLower,
		Definition: "Streams that the control plane refused before any response, in the phase."},
}

// faultBytes is the figure of Fault.Bytes for one type of resource.
var faultBytes = []Figure{{Unit: UnitBytes, Counts: "response", Better: BetterLower,
	Definition: "Bytes of the responses that simulated sidecars received from the start of the fault to `seconds` or the limit, as messages, by type. With `reset-streams:100%@steady` and divided by `reconnected` it is what the control plane sends a sidecar that connects to the converged mesh."}}

// FaultFigures are the figures of Fault, except latencies and usage.
var FaultFigures = []Figure{
	{Path: "lastedSeconds", Unit: UnitSeconds, Label: "lasted", Counts: "fault", Better: BetterNeither,
		Definition: "From the moment at which it began until what was broken was available again."},
	{Path: "seconds", Unit: UnitSeconds, Label: "converged after", Counts: "fault", Better: BetterLower,
		Definition: "From the moment at which it began until the run had converged again. Absent if it did not within the time limit: the run is then `unconverged`."},
	{Path: "reconnected", Unit: UnitCount, Label: "reconnected", Counts: "sidecar", Better: BetterNeither,
		Definition: "Sidecars that lost their stream and returned: each type of their configuration was answered on another stream."},
	{Path: "replaced", Unit: UnitCount, Label: "replaced", Counts: "pod", Better: BetterNeither,
		Definition: "Pods created in place of others."},
	{Path: "attempts", Unit: UnitCount, Label: "attempts", Counts: "attempt to connect", Better: BetterLower,
		Definition: "Dials from the start of the fault to `seconds` or the limit."},
	{Path: "refusals", Unit: UnitCount, Label: "refusals", Counts: "stream", Better: BetterLower,
		Definition: "Streams that the control plane refused before any response in that time."},
}

// UpgradeRoomFigures are the figures of UpgradeRoom.
var UpgradeRoomFigures = []Figure{
	{Path: "cores", Unit: UnitCores, Label: "cores more than before", Counts: "run", Better: BetterLower, Definition: "What both control planes used together in their greatest second of all stages, less the mean of the old one in steady."},
	{Path: "memoryBytes", Unit: UnitBytes, Label: "memory more than before", Counts: "run", Better: BetterLower, Definition: "The greatest resident memory of both control planes together at one moment of all stages, less the peak of the old one in steady."},
	{Path: "pods", Unit: UnitCount, Label: "pods more than before", Counts: "run", Better: BetterLower, Definition: "The most pods that were there at once in all stages, less those of the mesh: what the rolling updates create before they delete."},
}

// UpgradeStageFigures are the figures of UpgradeStage, except latencies and the figures of
// one control plane.
var UpgradeStageFigures = []Figure{
	{Path: "pods", Unit: UnitCount, Label: "pods moved", Counts: "pod", Better: BetterNeither, NotCompared: true, Definition: "Pods of the workloads, or of the proxies, that the stage moves to the other control plane."},
	{Path: "replaced", Unit: UnitCount, Label: "replaced", Counts: "pod", Better: BetterNeither, Definition: "Pods created in the stage in place of others."},
	{Path: "peakCores", Unit: UnitCores, Label: "both control planes, cores, peak", Counts: "second", Better: BetterLower, Definition: "Cores of both control planes together in the second of the stage in which they used the most."},
	{Path: "peakMemoryBytes", Unit: UnitBytes, Label: "both control planes, memory, peak", Counts: "second", Better: BetterLower, Definition: "The greatest resident memory of both control planes together at one moment of the stage."},
	{Path: "peakPods", Unit: UnitCount, Label: "pods, peak", Counts: "second", Better: BetterLower, Definition: "The most pods that were there at once, read each second: those of the mesh, and proxies of nodes and waypoints beyond their number."},
}

// UpgradeSideFigures are the figures of UpgradeSide, except pushes and usage.
var UpgradeSideFigures = []Figure{
	{Path: "responses", Unit: UnitCount, Label: "responses", Counts: "response", Better: BetterLower, Definition: "Responses that the proxies received in the stage that are connected to this control plane."},
	{Path: "stale", Unit: UnitCount, Label: "stale endpoints, mean", Counts: "stage", Better: BetterLower, Definition: "The mean number of stale endpoints at a moment, over all sidecars of this control plane. An endpoint is stale in a sidecar from when the API server lists it as terminating, or no more, as seen by scaler, until the sidecar has received configuration without it: a request may go to a pod that is gone. The times for which they were stale are the distribution `push.endpointRemove` of the same control plane."},
}

// BalanceFigures are the figures of Balance.
var BalanceFigures = []Figure{
	{Path: "replicas", Unit: UnitCount, Label: "replicas that serve", Counts: "replica", Better: BetterNeither, NotCompared: true,
		Definition: "Replicas that serve at the end of the phase, or when the mesh has converged again after the fault."},
	{Path: "streams", Unit: UnitCount, Label: "streams", Counts: "stream", Better: BetterNeither, NotCompared: true,
		Definition: "Streams of simulated sidecars to these replicas that are open and answered at that moment."},
	{Path: "most", Unit: UnitCount, Label: "most", Counts: "stream", Better: BetterLower, NotCompared: true,
		Definition: "The streams of the replica that has the most of them."},
	{Path: "expected", Unit: UnitCount, Label: "most, expected", Counts: "stream", Better: BetterNeither, NotCompared: true,
		Definition: "The mean of the most under chance, where each of n streams goes to one of R replicas, all alike: n/R + e sqrt(n/R), e being the mean of the greatest of R independent standard normal variables."},
	{Path: "probability", Unit: UnitShare, Label: "probability", Counts: "phase", Better: BetterNeither, NotCompared: true,
		Definition: "The probability with which chance makes a spread as uneven as this, or more: Pearson's chi-squared test with R-1 degrees of freedom."},
}

// replicaFigures are the figures of a FaultReplica that are counts.
var replicaFigures = []Figure{
	{Path: "before", Unit: UnitCount, Label: "streams before", Counts: "stream", Better: BetterNeither, NotCompared: true,
		Definition: "Streams of simulated sidecars to the replica that were open and answered when the fault began."},
	{Path: "after", Unit: UnitCount, Label: "streams after", Counts: "stream", Better: BetterNeither, NotCompared: true,
		Definition: "Those that were when the mesh had converged again."},
}

// replicas returns the figures of Replicas.
func replicas() []node {
	return []node{
		at(place{path: "balance.PHASE", label: "streams to replicas: "}, leaves(BalanceFigures)),
		at(place{path: "each.PROGRAM", label: "PROGRAM: ", notCompared: true},
			at(place{path: "usage.PHASE", scope: "One replica; absent for a phase in which it did not run.", list: usageList}, leaves(UsageFigures)),
			at(place{path: "streams.PHASE", label: "streams"}, leaves([]Figure{{
				Unit: UnitCount, Counts: "stream", Better: BetterNeither,
				Definition: "Streams of simulated sidecars to the replica that are open and answered at the end of the phase, by the address that was dialled.",
			}})),
			at(place{path: "ownStreams.PHASE", label: "streams by its own count"}, leaves([]Figure{{
				Unit: UnitCount, Counts: "stream", Better: BetterNeither,
				Definition: "Streams that are connected to the replica by its own metric, of its last scrape in the phase. Those of real sidecars are among them.",
			}}))),
	}
}

// InstrumentFigures are the figures of Instrument, except its lag.
var InstrumentFigures = []Figure{
	{Path: "cores", Unit: UnitCores, Label: "cores", Counts: "phase", Better: BetterLower,
		Definition: "scaler's own mean cores over the rollout, with those of its workers.",
		Source:     "`/proc`"},
	{Path: "memoryBytes", Unit: UnitBytes, Label: "memory, peak", Counts: "second", Better: BetterLower,
		Definition: "scaler's peak resident memory, with that of its workers.",
		Source:     "`/proc`"},
	{Path: "bytesPerSidecar", Unit: UnitBytes, Label: "memory per sidecar", Counts: "sidecar", Better: BetterLower,
		Definition: "scaler's resident memory above that of the idle program, per sidecar.",
		Source:     "`/proc`"},
	{Path: "openFiles", Unit: UnitCount, Label: "open files", Counts: "second", Better: BetterLower, NotCompared: true,
		Definition: "The largest number of files that scaler had open, connections included.",
		Source:     "`/proc`"},
	{Path: "saturation", Unit: UnitShare, Label: "saturation", Counts: "phase", Better: BetterLower, NotCompared: true,
		Definition: "As that of [usage](#figures-of-a-usage), of scaler, in the rollout.",
		Source:     "the kernel's run delays (schedstat)"},
	{Path: "waitedSeconds", Unit: UnitSeconds, Label: "waited for processors, all threads", Counts: "phase", Better: BetterLower, NotCompared: true,
		Definition: "As that of [usage](#figures-of-a-usage), of scaler, in the rollout.",
		Source:     "the same"},
}

// explainedFigures are the figures of Explained.
var explainedFigures = []Figure{
	{Path: "ownSeconds", Unit: UnitSeconds, Label: "stages of a push, mean", Counts: "push", Better: BetterLower, NotCompared: true,
		Definition: "The sum of the means of the control plane's own push stages over the phase: for istiod `own.probe.debounceSeconds` and `own.probe.convergenceSeconds`, sums divided by counts. They cover all its pushes in the phase, including those that undo changes.",
		Source:     "the control plane's own metrics"},
	{Path: "pushSeconds", Unit: UnitSeconds, Label: "followed pushes, mean", Counts: "sidecar of each change", Better: BetterLower, NotCompared: true,
		Definition: "The mean over all observations of `latencies.push`."},
	{Path: "share", Unit: UnitShare, Label: "share", Counts: "phase", Better: BetterNeither, NotCompared: true,
		Definition: "`ownSeconds` over `pushSeconds`. The rest is the way to the sidecar and back, and the time before the control plane's clock starts: istiod's starts when its own watch has seen the change. The share is not exact and can exceed 1."},
}

// pushIntervals returns the figures of PushIntervals.
func pushIntervals() []node {
	counts := leaves([]Figure{
		{Path: "changes", Unit: UnitCount, Label: "changes", Counts: "change", Better: BetterNeither,
			Definition: "Changes that concerned a sidecar: the independent observations, as all sidecars receive a change at about the same time."},
		{Path: "blocks", Unit: UnitCount, Label: "blocks", Counts: "second", Better: BetterNeither,
			Definition: "Groups of changes that were resampled together: those of one second, where changes follow each other closely and are pushed together. Absent where each change was resampled by itself."},
	})
	ends := leaves([]Figure{
		{Path: "low", Unit: UnitSeconds, Label: "low", Counts: "change", Better: BetterLower,
			Definition: "The lower end of the 95 % confidence interval of the quantile of `push`, by resampling whole changes: a cluster bootstrap with 2000 resamples and percentile intervals. Absent where there are too few changes: below 6 for p50, 36 for p90, 368 for p99."},
		{Path: "high", Unit: UnitSeconds, Label: "high", Counts: "change", Better: BetterLower,
			Definition: "The upper end of that interval; absent also where it lies among the lost."},
	})
	return []node{
		counts,
		at(place{path: "p50", label: "p50, "}, ends),
		at(place{path: "p90", label: "p90, "}, ends),
		at(place{path: "p99", label: "p99, "}, ends),
	}
}

// rolloutTime returns the figure of the rollout's length. A run knows it only if the rollout ended by convergence.
func rolloutTime() node {
	f := Figure{Path: "phases.rollout.seconds", timed: "phases.rollout", Unit: UnitSeconds, Phase: PhaseRollout, Label: "rollout time", Counts: "run", Better: BetterLower,
		Definition: "The rollout time: the length of the phase, if it ended by convergence. After the time limit only a lower bound is known. [Phases](definitions/phases.md#phases) states from when to when."}
	return node{[]Figure{f}, func(want, _ string, run reflect.Value, add func(Value)) {
		if v := run.Addr().Interface().(*Run).RolloutSeconds(); v != nil && (want == "" || want == f.Path) {
			add(Value{Figure: f, Path: f.Path, Value: v})
		}
	}}
}

// runFigures is the catalogue.
var runFigures = sync.OnceValue(func() []node {
	usage := leaves(UsageFigures)
	side := func(name, label string) node {
		return at(place{path: name, label: label},
			leaves(UpgradeSideFigures),
			at(place{path: "controlPlane", scope: "That control plane, over the stage; of the new one without the live heap.", list: usageList}, usage),
			distributions("", pushesOf))
	}
	return []node{
		rolloutTime(),
		at(place{path: "controlPlane.PHASE", label: "control plane: ", scope: "The control plane, all its [replicas](definitions/programs.md#replicas) together.", list: usageList}, usage),
		at(place{path: "replicas"}, replicas()...),
		at(place{path: "latencies"}, latencies("")),
		at(place{path: "latencies.pushIntervals.KIND", label: "push interval, KIND: ", phase: PhaseProbe, notCompared: true}, pushIntervals()...),
		at(place{path: "latencies.explained", timed: timedWhole, label: "explained: ", phase: PhaseProbe}, leaves(explainedFigures)),
		at(place{path: "xds", scope: "Of simulated sidecars, or of the proxies of nodes where pods have none."}, counts()...),
		at(place{path: "certificates", label: "certificates: "}, certificates()...),
		at(place{path: "sidecars.real.PHASE", label: "real sidecars: ", scope: "All real sidecars together, agents included. Figures are sums over them; a sum of peaks that need not coincide is an upper bound.", list: usageList}, usage),
		at(place{path: "sidecars.real.starts", label: "real sidecars: ", timed: timedWhole, notCompared: true}, distributions("", realStarts)),
		at(place{path: "change", label: "change: ", phase: PhaseChange}, changeFigures()...),
		at(place{path: "cycle", label: "cycle: ", phase: PhaseCycle}, cycleFigures()...),
		at(place{path: "churn", label: "churn: ", phase: PhaseChurn},
			leaves(ChurnFigures),
			at(place{path: "latencies", timed: timedWhole, scope: "Of the pods created meanwhile. There is no `podAdmission`: a controller creates these pods, and no request of scaler marks the start."}, latencies(PhaseChurn))),
		at(place{path: "faults.FAULT", label: "FAULT: ", timed: timedApart, phase: PhaseFault},
			leaves(FaultFigures),
			at(place{path: "bytes.TYPE", label: "bytes: TYPE", notCompared: true}, leaves(faultBytes)),
			at(place{path: "controlPlane", label: "control plane, ", scope: "The control plane, from the start of the fault to `seconds` or the limit; a process that died included.", list: usageList}, usage),
			at(place{path: "balance", label: "streams to replicas, "}, leaves(BalanceFigures)),
			at(place{path: "replicas.PROGRAM", label: "PROGRAM, "}, leaves(replicaFigures)),
			at(place{path: "latencies", scope: "Of the sidecars that reconnected (`connect`, `reconnect`, `token`) and of the pods created meanwhile."}, latencies(PhaseFault))),
		at(place{path: "upgrade.room", label: "upgrade: "}, leaves(UpgradeRoomFigures)),
		at(place{path: "upgrade.stages.STAGE", label: "STAGE: ", timed: timedApart},
			leaves(UpgradeStageFigures),
			side("from", "old control plane, "),
			side("to", "new control plane, "),
			at(place{path: "latencies", scope: "Of the pods created meanwhile, as those of churn."}, latencies(""))),
		at(place{path: "cluster.PROGRAM", label: "PROGRAM: "}, at(place{path: "PHASE", scope: "A program of the cluster.", list: usageList}, usage)),
		at(place{path: "pods", label: "pods: ", phase: PhaseRollout}, leaves(PodFigures)),
		at(place{path: "proxies", label: "proxies: ", phase: PhaseRollout}, append([]node{leaves(ProxyFigures)}, heldByType("node", "the proxy of a node", "proxies")...)...),
		at(place{path: "proxies.waypoints", label: "waypoints: ", phase: PhaseRollout}, append([]node{leaves(WaypointFigures)}, heldByType("waypoint", "a waypoint", "waypoints")...)...),
		at(place{path: "arrival", label: "arrival: ", phase: PhaseRollout}, leaves(ArrivalFigures)),
		at(place{path: "instrument", label: "scaler: ", phase: PhaseRollout},
			leaves(InstrumentFigures),
			distribution(place{path: "lag", label: "lag, ", counts: "timer", from: "the moment of a timer", to: "its execution",
				note: "It is how late scaler was scheduled during the rollout, a hundred times a second."})),
	}
})

// orZero stands in for what was not measured: nothing is known of it.
func orZero[T any](measured *T) *T {
	if measured == nil {
		return new(T)
	}
	return measured
}
