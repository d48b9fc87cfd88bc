package record

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"scaler.mesh/scaler/pkg/scenario"
)

// Condition is a property by which runs are distinguished: what a comparison requires to be equal, what
// a plan may extrapolate over, and what a report names where runs differ.
type Condition struct {
	Name string // as it is printed
	// Paths are the fields of the scenario that the property states; nil = it is of the environment.
	Paths []string
	Of    func(*Run) string // "" = not known, and differs from nothing
	// subject reports that one of the environment is what a comparison is about.
	subject bool
}

// Kind returns how a difference in the property affects the comparison of two runs: the Compared of its first field.
func (c Condition) Kind() scenario.Comparability {
	switch {
	case len(c.Paths) > 0:
		p, _ := scenario.Of(c.Paths[0])
		return p.Compared
	case c.subject:
		return scenario.Subject
	}
	return scenario.Condition
}

// stated returns a property that is one field of the scenario as it is written there. unset is its text where the
// scenario does not have it.
func stated(name, path, unset string) Condition {
	return Condition{Name: name, Paths: []string{path}, Of: func(r *Run) string {
		text, _ := r.Scenario.Text(path)
		return cmp.Or(text, unset)
	}}
}

// Names of conditions that analyses treat on their own.
const (
	PodsCondition        = "pods"
	ServicesCondition    = "services"
	DataplaneCondition   = "data plane"
	SettingsCondition    = "knobs"
	PodsPerNodeCondition = "pods per node"
	XDSCondition         = "xds"
	ReplicasCondition    = "replicas"
)

// Conditions are the properties by which runs are distinguished: the only list of them. Reports name
// a group of runs by the first five.
var Conditions = []Condition{
	{Name: PodsCondition, Paths: []string{"mesh.pods", "mesh.scale", "mesh.share"}, Of: func(r *Run) string { return strconv.Itoa(r.PodCount()) }},
	{Name: ServicesCondition, Paths: []string{"mesh.services"}, Of: func(r *Run) string { return strconv.Itoa(r.ServiceCount()) }},
	{Name: "namespaces", Paths: []string{"mesh.namespaces"}, Of: func(r *Run) string { return strconv.Itoa(r.NamespaceCount()) }},
	{Name: DataplaneCondition, Paths: []string{"mesh.dataplane"}, Of: func(r *Run) string { return r.Dataplane() }},
	{Name: SettingsCondition, Paths: []string{"mesh.mode", "mesh.settings.mtls", "mesh.settings.scope", "mesh.settings.authz"}, Of: func(r *Run) string { return r.Environment.Knobs.Text() }},
	stated(PodsPerNodeCondition, "mesh.podsPerNode", "not set"),
	{Name: "waypoints", Paths: []string{"mesh.waypoints"}, Of: func(r *Run) string { return cmp.Or(r.Waypoints(), "none") }},
	{Name: "profile", Paths: []string{
		"mesh.profile", "mesh.parts.virtualServices", "mesh.parts.destinationRules", "mesh.parts.serviceEntries", "mesh.parts.envoyFilters", "mesh.parts.telemetries",
		"mesh.parts.tcpServices", "mesh.parts.headlessServices", "mesh.parts.externalNames", "mesh.parts.gateways", "mesh.parts.zones", "mesh.parts.outsidePods",
		"mesh.parts.outsideChurn", "mesh.parts.replicaSkew", "mesh.parts.gracePeriod",
	}, Of: func(r *Run) string { return cmp.Or(r.Parts.String(), "none") }},
	{Name: "topology", Paths: []string{"mesh.topology", "mesh.fanOut", "mesh.file", "mesh.revision"}, Of: func(r *Run) string { return r.Topology() }},
	stated("seed", "mesh.seed", ""),
	stated("arrival", "load.arrival", ""),
	{Name: "dilation", Paths: []string{"instrument.dilation"}, Of: func(r *Run) string { return strconv.FormatFloat(r.Slowdown(), 'g', -1, 64) }},
	{Name: "phases in real time", Of: func(r *Run) string { return r.realTimeText() }},
	stated(XDSCondition, "mesh.sidecars.xds", ""),
	{Name: "start delay", Paths: []string{"mesh.sidecars.startDelay"}, Of: func(r *Run) string { return cmp.Or(r.StartDelay(), "none") }},
	stated("certificate lifetime", "mesh.sidecars.certificateLifetime", "none"),
	stated("change", "load.changes", "none"),
	stated("churn", "load.churn", "none"),
	{Name: "faults", Paths: []string{"load.faults"}, Of: func(r *Run) string { return cmp.Or(r.Scenario.Load.FaultsText(), "none") }},
	{Name: "upgrade", Paths: []string{
		"controlPlane.upgrade.to", "controlPlane.upgrade.canary", "controlPlane.upgrade.inPlace", "controlPlane.upgrade.rollbackAt", "controlPlane.upgrade.rate",
		"controlPlane.upgrade.pause", "controlPlane.upgrade.env",
	}, Of: func(r *Run) string { return cmp.Or(r.Scenario.ControlPlane.Upgrade.String(), "none") }},
	stated("real sidecars", "mesh.sidecars.real", "0"),
	{Name: "certificate storm", Paths: []string{"load.certificateStorm"}, Of: func(r *Run) string {
		if r.Scenario.Load.CertificateStorm {
			return "in the end"
		}
		return "none"
	}},
	{Name: "connection", Paths: []string{
		"controlPlane.connection.plaintext", "controlPlane.connection.nodeID", "controlPlane.connection.nodeCluster", "controlPlane.connection.metadata", "controlPlane.connection.expect",
	}, Of: func(r *Run) string {
		c := r.Scenario.ControlPlane.Connection
		if c == (scenario.Connection{}) {
			return "none"
		}
		return fmt.Sprintf("plaintext %t, node %q in %q, metadata %q, expected %q", c.Plaintext, c.NodeID, c.NodeCluster, c.Metadata, c.Expect)
	}},
	{Name: "place", Paths: []string{"place.context", "place.address", "place.workerImage", "place.kwokImage"}, Of: func(r *Run) string {
		e := r.Environment.Existing
		if e == nil {
			return "a cluster of its own"
		}
		return strings.TrimSpace(fmt.Sprintf("context %s %s %s %s", e.Context, e.Access, e.WorkerImage, e.KwokImage))
	}},
	stated("workers", "instrument.workers", ""),

	stated("baseline", "phases.baseline", "0s"),
	stated("settle", "phases.settle", "0s"),
	stated("steady", "phases.steady", "0s"),
	stated("probes", "load.probes", ""),
	stated("cycle", "phases.cycle", "0s"),
	stated("change duration", "phases.changes", "0s"),

	{Name: "CPUs", Of: func(r *Run) string { return strconv.Itoa(r.Environment.CPUs) }},
	{Name: "processor model", Of: func(r *Run) string {
		if p := r.Environment.Processor; p != nil {
			return p.Model
		}
		return ""
	}},
	{Name: "unit of processor speed", Of: func(r *Run) string {
		if p := r.Environment.Processor; p != nil && p.Before != nil {
			return "work " + p.Before.Work
		}
		return ""
	}},
	{Name: "memory", Of: func(r *Run) string {
		if r.Environment.MemoryBytes == 0 {
			return ""
		}
		return strconv.FormatFloat(float64(r.Environment.MemoryBytes)/(1<<30), 'f', 1, 64) + " GiB"
	}},
	{Name: "kernel", Of: func(r *Run) string { return r.Environment.Kernel }},
	{Name: "Kubernetes", Of: func(r *Run) string { return r.Environment.Kubernetes }},
	{Name: "KWOK", Of: func(r *Run) string { return r.Environment.Kwok }},
	{Name: "writes of a pod's status", Of: func(r *Run) string { return cmp.Or(r.Environment.PodStatus, "two") }},
	{Name: "priority", Paths: []string{"instrument.priority"}, Of: func(r *Run) string { return r.Environment.Priority.Text() }},

	{Name: "control plane", Paths: []string{"controlPlane.name", "controlPlane.version", "place.revision"}, Of: func(r *Run) string {
		c := r.Environment.ControlPlane
		return strings.TrimSpace(c.Name + " " + c.Version)
	}},
	{Name: "program", subject: true, Of: func(r *Run) string { return r.Environment.ControlPlane.Program }},
	{Name: "program's source", subject: true, Of: (*Run).programSource},
	{Name: "sidecars' version", Paths: []string{"mesh.sidecars.version"}, Of: func(r *Run) string { return r.Environment.ControlPlane.ProxyVersion }},
	{Name: "configuration", Paths: []string{"controlPlane.configuration"}, Of: func(r *Run) string {
		if r.Mesh == nil {
			return ""
		}
		return cmp.Or(r.Scenario.ControlPlane.Configuration, scenario.StockConfiguration)
	}},
	{Name: ReplicasCondition, Paths: []string{"controlPlane.replicas"}, Of: func(r *Run) string { return strconv.Itoa(r.Environment.ControlPlane.Replicas) }},
	{Name: "processors", Paths: []string{"controlPlane.processors"}, Of: func(r *Run) string {
		switch c := r.Environment.ControlPlane; {
		case c.GOMAXPROCS == 0:
			return ""
		case c.ReferenceProcessors:
			return strconv.Itoa(c.GOMAXPROCS) + " reference processors"
		default:
			return strconv.Itoa(c.GOMAXPROCS)
		}
	}},
	{Name: "memory limit", Paths: []string{"controlPlane.memory"}, Of: func(r *Run) string {
		c := r.Environment.ControlPlane
		switch {
		case c.MemoryLimitBytes == 0:
			return "none"
		case c.MemoryLimitEnforced:
			return fmt.Sprintf("%d MiB, enforced", c.MemoryLimitBytes>>20)
		default:
			return fmt.Sprintf("%d MiB, not enforced", c.MemoryLimitBytes>>20)
		}
	}},
}

// programSource returns the source of the control plane's program, as in Program.Source. Released
// programs and programs built here are compiled with different versions of Go.
func (r *Run) programSource() string {
	for _, p := range r.Environment.Programs {
		if p.Digest == r.Environment.ControlPlane.Program {
			return p.Source
		}
	}
	return ""
}

// Text states by what the control plane ran before scaler, and scaler before the cluster.
func (p *Priority) Text() string {
	if p == nil {
		return "none"
	}
	return fmt.Sprintf("control plane, scaler, cluster (%s %d, %d, %d)", p.Mechanism, p.ControlPlane, p.Instrument, p.Cluster)
}
