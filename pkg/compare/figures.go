package compare

import (
	"maps"
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/record"
)

// Unit is what a figure is measured in.
type Unit string

// The units of figures, all of them base units.
const (
	Seconds   Unit = "s"
	Bytes     Unit = "B"
	Cores     Unit = "cores"
	PerSecond Unit = "/s"
	Share     Unit = "share" // 0 to 1
	Count     Unit = "count"
)

// resolution is how exactly a figure of this unit is known at best, where it is
// near zero: halves of what is counted, the histograms' first step.
func (u Unit) resolution() float64 {
	switch u {
	case Seconds:
		return 1e-6
	case Bytes:
		return 1
	case Cores:
		return 1e-5
	case Count:
		return 0.5
	default:
		return 1e-4
	}
}

// measured is one figure of one run. A value that is not there is nil.
type measured struct {
	path  string // in the record
	unit  Unit
	value *float64
	lost  bool // it is not there because it lies among what was lost
}

// shortened are the parts of a path that Name leaves out.
var shortened = []string{"controlPlane.", "latencies.", "phases."}

// Name is the short name of the figure at a path of the record, which is what is
// printed and what --fail-on and --figures take: rollout.cores for
// controlPlane.rollout.cores.mean, push.route.p99 for latencies.push.route.p99.
func Name(path string) string {
	for _, prefix := range shortened {
		path = strings.TrimPrefix(path, prefix)
	}
	return strings.TrimSuffix(path, ".mean")
}

// figures are all figures of a run that are compared, in the order in which they
// are shown. The control plane's own metrics are not among them: they mean what
// its version makes of them.
func figures(r *record.Run) []measured {
	var f flattened
	f.add("phases.rollout.seconds", Seconds, r.RolloutSeconds())
	if r.ControlPlane != nil {
		f.phases("controlPlane", r.ControlPlane)
		if u := r.ControlPlane.Steady; u != nil && u.HeapBytes != nil && r.Schema >= record.CollectedTwice {
			f.add("controlPlane.steady.heapBytes.collected", Bytes, u.HeapBytes.Collected)
		}
	}
	f.latencies("latencies", &r.Latencies)
	f.xds(r.XDS)
	f.certificates(r.Certificates)
	if r.Sidecars != nil && r.Sidecars.Real != nil {
		f.phases("sidecars.real", &r.Sidecars.Real.ByPhase)
	}
	f.disturbed(r)
	for _, name := range slices.Sorted(maps.Keys(r.Cluster)) {
		program := r.Cluster[name]
		f.phases("cluster."+name, &program)
	}
	if r.Arrival != nil {
		f.add("arrival.achievedPerSecond", PerSecond, r.Arrival.AchievedPerSecond)
	}
	if i := r.Instrument; i != nil {
		f.add("instrument.cores", Cores, i.Cores)
		f.add("instrument.memoryBytes", Bytes, i.MemoryBytes)
		f.add("instrument.bytesPerSidecar", Bytes, i.BytesPerSidecar)
		f.latency("instrument.lag", i.Lag)
	}
	return f.all
}

// flattened gathers figures.
type flattened struct{ all []measured }

func (f *flattened) add(path string, unit Unit, value *float64) {
	if value != nil {
		f.all = append(f.all, measured{path: path, unit: unit, value: value})
	}
}

func (f *flattened) count(path string, value *int64) {
	if value != nil {
		f.add(path, Count, new(float64(*value)))
	}
}

func (f *flattened) small(path string, value *int) {
	if value != nil {
		f.add(path, Count, new(float64(*value)))
	}
}

// phasesCompared are the phases with figures. The baseline is one of them: a
// control plane that needs more while it has nothing to do is another one.
var phasesCompared = []record.PhaseName{
	record.PhaseBaseline, record.PhaseRollout, record.PhaseSteady, record.PhaseProbe, record.PhaseStorm, record.PhaseChurn,
}

func (f *flattened) phases(path string, by *record.ByPhase[*record.Usage]) {
	for _, phase := range phasesCompared {
		if at := by.At(phase); at != nil {
			f.usage(path+"."+string(phase), *at)
		}
	}
}

func (f *flattened) usage(path string, u *record.Usage) {
	if u == nil {
		return
	}
	f.level(path+".cores", Cores, u.Cores)
	f.add(path+".cpuSeconds", Seconds, u.CPUSeconds)
	f.level(path+".memoryBytes", Bytes, u.MemoryBytes)
	f.level(path+".heapBytes", Bytes, u.HeapBytes)
	f.add(path+".saturation", Share, u.Saturation)
	f.small(path+".restarts", u.Restarts)
}

func (f *flattened) level(path string, unit Unit, l *record.Level) {
	if l != nil {
		f.add(path+".mean", unit, l.Mean)
		f.add(path+".peak", unit, l.Peak)
		f.add(path+".end", unit, l.End)
	}
}

// latency gives the median and the 99th percentile of a run's distribution, and
// what was lost. The maximum is one observation, and no figure of a run.
func (f *flattened) latency(path string, l *record.Latency) {
	if l == nil {
		return
	}
	for _, q := range []struct {
		name  string
		value *float64
	}{{"p50", l.P50}, {"p99", l.P99}} {
		if q.value != nil || l.Lost > 0 {
			f.all = append(f.all, measured{path: path + "." + q.name, unit: Seconds, value: q.value, lost: q.value == nil})
		}
	}
	f.count(path+".lost", &l.Lost)
}

// changeKinds in the order in which they are shown.
var changeKinds = []record.ChangeKind{
	record.EndpointAdd, record.EndpointRemove, record.EndpointHealth, record.RouteChange, record.PolicyChange,
}

func (f *flattened) latencies(path string, l *record.Latencies) {
	for _, one := range []struct {
		name  string
		value *record.Latency
	}{
		{"podAdmission", l.PodAdmission}, {"podReady", l.PodReady},
		{"certificate", l.Certificate}, {"key", l.Key}, {"token", l.Token}, {"clientWait", l.ClientWait},
		{"connect", l.Connect}, {"connectTotal", l.ConnectTotal}, {"reconnect", l.Reconnect},
		{"firstConfiguration", l.FirstConfiguration}, {"completeConfiguration", l.CompleteConfiguration},
	} {
		f.latency(path+"."+one.name, one.value)
	}
	for _, kind := range changeKinds {
		f.latency(path+".rolloutPush."+string(kind), l.RolloutPush[kind])
	}
	for _, kind := range changeKinds {
		f.latency(path+".push."+string(kind), l.Push[kind])
	}
	for _, kind := range changeKinds {
		f.latency(path+".propagation."+string(kind)+".first", l.Propagation[kind].First)
		f.latency(path+".propagation."+string(kind)+".last", l.Propagation[kind].Last)
	}
	f.latency(path+".changeWrite", l.ChangeWrite)
	f.latency(path+".clusterPart", l.ClusterPart)
}

func (f *flattened) xds(x *record.XDS) {
	if x == nil {
		return
	}
	for _, kind := range slices.Sorted(maps.Keys(x.Responses)) {
		f.add("xds.responses."+kind, Count, new(float64(x.Responses[kind])))
	}
	for _, kind := range slices.Sorted(maps.Keys(x.Bytes)) {
		f.add("xds.bytes."+kind, Bytes, new(float64(x.Bytes[kind])))
	}
	f.count("xds.acks", x.Acks)
	f.count("xds.nacks", x.Nacks)
	f.count("xds.attempts", x.Attempts)
	f.count("xds.refusals", x.Refusals)
	f.count("xds.reconnects", x.Reconnects)
	f.count("xds.wastedResponses", x.WastedResponses)
	if c := x.ConfigurationBytes; c != nil {
		f.add("xds.configurationBytes.mean", Bytes, c.Mean)
		f.add("xds.configurationBytes.max", Bytes, c.Max)
		for _, kind := range slices.Sorted(maps.Keys(c.ByType)) {
			f.add("xds.configurationBytes.byType."+kind, Bytes, new(c.ByType[kind]))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(x.ConfigurationResources)) {
		f.add("xds.configurationResources."+kind, Count, new(x.ConfigurationResources[kind]))
	}
}

func (f *flattened) certificates(c *record.Certificates) {
	if c == nil {
		return
	}
	f.count("certificates.issued", c.Issued)
	f.count("certificates.failed", c.Failed)
	f.count("certificates.attempts", c.Attempts)
	f.add("certificates.perSecond", PerSecond, c.PerSecond)
	f.latency("certificates.renewals", c.Renewals)
	if s := c.Storm; s != nil {
		f.latency("certificates.storm.latency", s.Latency)
		f.count("certificates.storm.failures", &s.Failures)
		f.add("certificates.storm.seconds", Seconds, s.Seconds)
		f.add("certificates.storm.perSecond", PerSecond, s.PerSecond)
	}
}

// disturbed gives what came of churn and faults.
func (f *flattened) disturbed(r *record.Run) {
	if c := r.Churn; c != nil {
		f.add("churn.achievedPerSecond", PerSecond, c.AchievedPerSecond)
		f.small("churn.replaced", c.Replaced)
		f.add("churn.seconds", Seconds, c.Seconds)
		f.count("churn.attempts", c.Attempts)
		f.count("churn.refusals", c.Refusals)
		f.latencies("churn.latencies", &c.Latencies)
	}
	for i := range r.Faults {
		fault := &r.Faults[i]
		path := "faults." + fault.Name + "@" + string(fault.Phase)
		f.add(path+".lastedSeconds", Seconds, fault.LastedSeconds)
		f.add(path+".seconds", Seconds, fault.Seconds)
		f.small(path+".reconnected", fault.Reconnected)
		f.small(path+".replaced", fault.Replaced)
		f.count(path+".attempts", fault.Attempts)
		f.count(path+".refusals", fault.Refusals)
		f.usage(path+".controlPlane", fault.ControlPlane)
		f.latencies(path+".latencies", &fault.Latencies)
	}
}
