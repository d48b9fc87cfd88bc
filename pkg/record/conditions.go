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
	Kind  scenario.Comparability
	Of    func(*Run) string // "" = not known, and differs from nothing
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

// Conditions are all properties by which runs are distinguished: the only list of them. The first five
// name a group of runs to a reader.
var Conditions = []Condition{
	{PodsCondition, []string{"mesh.pods", "mesh.scale", "mesh.share"}, scenario.Size, func(r *Run) string { return strconv.Itoa(r.PodCount()) }},
	{ServicesCondition, []string{"mesh.services"}, scenario.Size, func(r *Run) string { return strconv.Itoa(r.ServiceCount()) }},
	{"namespaces", []string{"mesh.namespaces"}, scenario.Condition, func(r *Run) string { return strconv.Itoa(r.NamespaceCount()) }},
	{DataplaneCondition, []string{"mesh.dataplane"}, scenario.Condition, func(r *Run) string { return r.Dataplane() }},
	{SettingsCondition, []string{"mesh.mode", "mesh.settings.mtls", "mesh.settings.scope", "mesh.settings.authz"}, scenario.Condition, func(r *Run) string { return r.Environment.Knobs.Text() }},
	{PodsPerNodeCondition, []string{"mesh.podsPerNode"}, scenario.Condition, func(r *Run) string {
		if r.Scenario.Mesh.PodsPerNode == 0 {
			return "not set"
		}
		return strconv.Itoa(r.Scenario.Mesh.PodsPerNode)
	}},
	{"waypoints", []string{"mesh.waypoints"}, scenario.Condition, func(r *Run) string { return cmp.Or(r.Waypoints(), "none") }},
	{"profile", []string{
		"mesh.profile", "mesh.parts.virtualServices", "mesh.parts.destinationRules", "mesh.parts.serviceEntries", "mesh.parts.envoyFilters", "mesh.parts.telemetries",
		"mesh.parts.tcpServices", "mesh.parts.headlessServices", "mesh.parts.externalNames", "mesh.parts.gateways", "mesh.parts.zones", "mesh.parts.outsidePods",
		"mesh.parts.outsideChurn", "mesh.parts.replicaSkew", "mesh.parts.gracePeriod",
	}, scenario.Condition, func(r *Run) string { return cmp.Or(r.Parts.String(), "none") }},
	{"topology", []string{"mesh.topology", "mesh.fanOut", "mesh.file", "mesh.revision"}, scenario.Condition, func(r *Run) string { return r.Topology() }},
	{"seed", []string{"mesh.seed"}, scenario.Condition, func(r *Run) string { return strconv.FormatUint(r.Scenario.Mesh.Seed, 10) }},
	{"arrival", []string{"load.arrival"}, scenario.Condition, func(r *Run) string { return r.Scenario.Load.Arrival.String() }},
	{"dilation", []string{"instrument.dilation"}, scenario.Condition, func(r *Run) string { return strconv.FormatFloat(r.Slowdown(), 'g', -1, 64) }},
	{"phases in real time", nil, scenario.Condition, func(r *Run) string { return r.realTimeText() }},
	{XDSCondition, []string{"mesh.sidecars.xds"}, scenario.Condition, func(r *Run) string { return r.Scenario.Mesh.Sidecars.XDS }},
	{"start delay", []string{"mesh.sidecars.startDelay"}, scenario.Condition, func(r *Run) string { return cmp.Or(r.StartDelay(), "none") }},
	{"certificate lifetime", []string{"mesh.sidecars.certificateLifetime"}, scenario.Condition, func(r *Run) string {
		if d := r.Scenario.Mesh.Sidecars.CertificateLifetime; d > 0 {
			return d.String()
		}
		return "none"
	}},
	{"change", []string{"load.changes"}, scenario.Condition, func(r *Run) string { return cmp.Or(r.Scenario.Load.Changes.String(), "none") }},
	{"churn", []string{"load.churn"}, scenario.Condition, func(r *Run) string { return cmp.Or(r.Scenario.Load.Churn.String(), "none") }},
	{"faults", []string{"load.faults"}, scenario.Condition, func(r *Run) string { return cmp.Or(r.Scenario.Load.FaultsText(), "none") }},
	{"upgrade", []string{
		"controlPlane.upgrade.to", "controlPlane.upgrade.canary", "controlPlane.upgrade.inPlace", "controlPlane.upgrade.rollbackAt", "controlPlane.upgrade.rate",
		"controlPlane.upgrade.pause", "controlPlane.upgrade.env",
	}, scenario.Condition, func(r *Run) string { return cmp.Or(r.Scenario.ControlPlane.Upgrade.String(), "none") }},
	{"real sidecars", []string{"mesh.sidecars.real"}, scenario.Condition, func(r *Run) string { return strconv.Itoa(r.Scenario.Mesh.Sidecars.Real) }},
	{"certificate storm", []string{"load.certificateStorm"}, scenario.Condition, func(r *Run) string {
		if r.Scenario.Load.CertificateStorm {
			return "in the end"
		}
		return "none"
	}},
	{"connection", []string{
		"controlPlane.connection.plaintext", "controlPlane.connection.nodeID", "controlPlane.connection.nodeCluster", "controlPlane.connection.metadata", "controlPlane.connection.expect",
	}, scenario.Condition, func(r *Run) string {
		c := r.Scenario.ControlPlane.Connection
		if c == (scenario.Connection{}) {
			return "none"
		}
		return fmt.Sprintf("plaintext %t, node %q in %q, metadata %q, expected %q", c.Plaintext, c.NodeID, c.NodeCluster, c.Metadata, c.Expect)
	}},
	{"place", []string{"place.context", "place.address", "place.workerImage", "place.kwokImage"}, scenario.Condition, func(r *Run) string {
		e := r.Environment.Existing
		if e == nil {
			return "a cluster of its own"
		}
		return strings.TrimSpace(fmt.Sprintf("context %s %s %s %s", e.Context, e.Access, e.WorkerImage, e.KwokImage))
	}},
	{"workers", []string{"instrument.workers"}, scenario.Condition, func(r *Run) string {
		if n := r.Scenario.Instrument.Workers; n > 0 {
			return strconv.Itoa(n)
		}
		return ""
	}},

	{"baseline", []string{"phases.baseline"}, scenario.Condition, func(r *Run) string { return r.Scenario.Phases.Baseline.String() }},
	{"settle", []string{"phases.settle"}, scenario.Condition, func(r *Run) string { return r.Scenario.Phases.Settle.String() }},
	{"steady", []string{"phases.steady"}, scenario.Condition, func(r *Run) string { return r.Scenario.Phases.Steady.String() }},
	{"probes", []string{"load.probes"}, scenario.Condition, func(r *Run) string { return strconv.Itoa(r.Scenario.Load.Probes) }},
	{"cycle", []string{"phases.cycle"}, scenario.Condition, func(r *Run) string { return r.Scenario.Phases.Cycle.String() }},
	{"change duration", []string{"phases.changes"}, scenario.Condition, func(r *Run) string { return r.Scenario.Phases.Changes.String() }},

	{"CPUs", nil, scenario.Condition, func(r *Run) string { return strconv.Itoa(r.Environment.CPUs) }},
	{"processor model", nil, scenario.Condition, func(r *Run) string {
		if p := r.Environment.Processor; p != nil {
			return p.Model
		}
		return ""
	}},
	{"unit of processor speed", nil, scenario.Condition, func(r *Run) string {
		if p := r.Environment.Processor; p != nil && p.Before != nil {
			return "work " + p.Before.Work
		}
		return ""
	}},
	{"memory", nil, scenario.Condition, func(r *Run) string {
		if r.Environment.MemoryBytes == 0 {
			return ""
		}
		return strconv.FormatFloat(float64(r.Environment.MemoryBytes)/(1<<30), 'f', 1, 64) + " GiB"
	}},
	{"kernel", nil, scenario.Condition, func(r *Run) string { return r.Environment.Kernel }},
	{"Kubernetes", nil, scenario.Condition, func(r *Run) string { return r.Environment.Kubernetes }},
	{"KWOK", nil, scenario.Condition, func(r *Run) string { return r.Environment.Kwok }},
	{"writes of a pod's status", nil, scenario.Condition, func(r *Run) string { return cmp.Or(r.Environment.PodStatus, "two") }},
	{"priority", []string{"instrument.priority"}, scenario.Condition, func(r *Run) string { return r.Environment.Priority.Text() }},

	{"control plane", []string{"controlPlane.name", "controlPlane.version", "place.revision"}, scenario.Subject, func(r *Run) string {
		c := r.Environment.ControlPlane
		return strings.TrimSpace(c.Name + " " + c.Version)
	}},
	{"program", nil, scenario.Subject, func(r *Run) string { return r.Environment.ControlPlane.Program }},
	{"program's source", nil, scenario.Subject, (*Run).programSource},
	{"sidecars' version", []string{"mesh.sidecars.version"}, scenario.Subject, func(r *Run) string { return r.Environment.ControlPlane.ProxyVersion }},
	{"configuration", []string{"controlPlane.configuration"}, scenario.Subject, func(r *Run) string {
		if r.Mesh == nil {
			return ""
		}
		return cmp.Or(r.Scenario.ControlPlane.Configuration, scenario.StockConfiguration)
	}},
	{ReplicasCondition, []string{"controlPlane.replicas"}, scenario.Subject, func(r *Run) string { return strconv.Itoa(r.Environment.ControlPlane.Replicas) }},
	{"processors", []string{"controlPlane.processors"}, scenario.Subject, func(r *Run) string {
		switch c := r.Environment.ControlPlane; {
		case c.GOMAXPROCS == 0:
			return ""
		case c.ReferenceProcessors:
			return strconv.Itoa(c.GOMAXPROCS) + " reference processors"
		default:
			return strconv.Itoa(c.GOMAXPROCS)
		}
	}},
	{"memory limit", []string{"controlPlane.memory"}, scenario.Subject, func(r *Run) string {
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

// programSource is where the control plane's program is from: a released one and one that was built
// here are compiled with different versions of Go.
func (r *Run) programSource() string {
	for _, p := range r.Environment.Programs {
		if p.Digest == r.Environment.ControlPlane.Program {
			return p.Source
		}
	}
	return ""
}

// Text is the settings as words.
func (k Knobs) Text() string {
	return fmt.Sprintf("mtls %s, scope %s, authz %s", cmp.Or(k.MTLS, "none"), cmp.Or(k.Scope, "none"), cmp.Or(k.Authz, "none"))
}

// Text states by what the control plane ran before scaler, and scaler before the cluster.
func (p *Priority) Text() string {
	if p == nil {
		return "none"
	}
	return fmt.Sprintf("control plane, scaler, cluster (%s %d, %d, %d)", p.Mechanism, p.ControlPlane, p.Instrument, p.Cluster)
}
