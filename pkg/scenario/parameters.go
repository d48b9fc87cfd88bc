package scenario

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Group is the headline under which help lists a parameter.
type Group string

// The groups, in the order of help.
const (
	MeshGroup         Group = "Mesh"
	ControlPlaneGroup Group = "Control plane"
	LoadGroup         Group = "Load"
	ClusterGroup      Group = "Cluster"
	OutputGroup       Group = "Output"
	InstrumentGroup   Group = "Instrument"
)

// Groups lists the groups, in the order of help.
var Groups = []Group{MeshGroup, ControlPlaneGroup, LoadGroup, ClusterGroup, OutputGroup, InstrumentGroup}

// Comparability states whether runs that differ in a parameter can be compared.
type Comparability string

// The kinds of parameter, for who compares runs.
const (
	// Irrelevant parameters change no figure.
	Irrelevant Comparability = "irrelevant"
	// Size parameters are the ones that a forecast extrapolates over. They must be equal where runs are compared.
	Size Comparability = "size"
	// Repeat parameters distinguish equal runs.
	Repeat Comparability = "repeat"
	// Condition must be equal where runs are compared, planned from or summarized.
	Condition Comparability = "condition"
	// Subject parameters may be the subject of a comparison: they may differ between its sides only.
	Subject Comparability = "subject"
)

// Where a parameter has a meaning.
type Where string

// The places, meshes and control planes that parameters are bound to.
const (
	Everywhere     Where = ""
	InCluster      Where = "place.context"                   // in an existing cluster alone
	ExternalServer Where = "xds://HOST:PORT"                 // with a control plane that the run does not start, alone
	SyntheticMesh  Where = "no mesh.file"                    // with a mesh that is built
	CapturedMesh   Where = "mesh.file"                       // with a captured mesh
	OwnProxies     Where = "mesh.dataplane sidecar"          // where each pod has a proxy
	NodeProxies    Where = "mesh.dataplane"                  // with data plane ambient or mixed
	InUpgrade      Where = "controlPlane.upgrade"            // in an upgrade
	InWaves        Where = "no controlPlane.upgrade.inPlace" // in an upgrade that has waves
	WithChanges    Where = "load.changes"                    // with changes at a rate
	ClosedLoop     Where = "latency.connections"             // with connections that wait for responses
	OpenLoop       Where = "no latency.connections"          // with requests on a schedule
)

// Parameter describes one field of a scenario. Everything else that is known of a field is made
// from it.
type Parameter struct {
	Path  string // as in mesh.pods
	Flag  string // without dashes; "" = the document and --set alone
	Alias string // a second flag for the same field; "" = none
	// FlagOf is the flag of a command that calls it otherwise.
	FlagOf map[string]string
	Group  Group
	Basic  bool   // its flag is in the short help
	Value  string // placeholder of its value in help; "" = by its type
	Help   string // one line, without the default
	// HelpOf is the help of a command where it differs.
	HelpOf map[string]string
	// Several is the sentence that help adds in commands that do one run for each of several values. Other commands
	// refuse several values. "" = the values are of one run.
	Several string
	// Default states in words what the field is where it is not stated and has no default value.
	Default string
	// Istiod is the value that the field has with istiod where it is not stated and has no default value; "" = it depends on more.
	Istiod  string
	Choices []string // all values, for completion and the schema; nil = free
	// Min and Max bound a number, or a duration in seconds, or bytes; without Max there are no bounds.
	Min, Max float64
	// Off reports whether 0 is a value, too, which leaves out what the parameter is about.
	Off   bool
	Where Where
	// Commands are the commands that have the parameter; nil = all that roll out a mesh, see Rolling.
	Commands []string
	Compared Comparability
}

// Commands that make runs from a scenario.
const (
	Rollout  = "rollout"
	Bench    = "bench"
	Upgrades = "upgrade"
	Limits   = "limits"
	Tune     = "tune"
	Latency  = "latency"
	Diff     = "diff"
	Assess   = "assess"
)

// Rolling are the commands that roll out a mesh.
var Rolling = []string{Rollout, Bench, Upgrades, Limits, Tune, Diff, Assess}

// oneRun are the commands that do all their runs with one size, mode and data plane.
var oneRun = []string{Upgrades, Limits, Tune, Diff, Assess}

// Values of Parameter.Commands.
var (
	notUpgrade  = []string{Rollout, Bench, Limits, Tune}
	ofOne       = []string{Rollout, Bench, Limits, Tune, Diff}             // all but upgrade
	measuring   = []string{Rollout, Bench, Upgrades, Limits, Tune, Assess} // what is measured, which diff does not
	notLimits   = []string{Rollout, Bench, Upgrades, Tune}
	onlyUpgrade = []string{Upgrades}
	upgrading   = []string{Upgrades, Assess}
	onlyRollout = []string{Rollout}
	onlyLatency = []string{Latency}
	inClusters  = []string{Rollout, Latency}
)

// day is the number of seconds of one.
const day = 24 * 3600

// maxConnections is a little less than the number of ports of one address.
const maxConnections = 20_000

// Parameters is the table of all fields, in the order of the document.
var Parameters = []Parameter{
	{Path: "repeats", Flag: "repeats", Group: LoadGroup, Basic: true, Help: "runs of each size, mode and data plane", HelpOf: map[string]string{Latency: "repeats of each rate and variant, for intervals"}, Commands: []string{Rollout, Bench, Tune, Latency}, Min: 1, Max: 100, Compared: Repeat},

	{Path: "mesh.pods", Flag: "pods", Group: MeshGroup, Basic: true, Help: "pods, each with a sidecar", Several: "several sizes, as in 200,400,800, are one run each", Where: SyntheticMesh, Min: 1, Max: MaxPods, Compared: Size},
	{Path: "mesh.services", Flag: "services", Group: MeshGroup, Basic: true, Help: "services", Default: "one for every 10 pods", Where: SyntheticMesh, Min: 1, Max: MaxPods, Compared: Size},
	{Path: "mesh.namespaces", Flag: "namespaces", Group: MeshGroup, Help: "namespaces", Default: "one for every 50 services", Where: SyntheticMesh, Min: 1, Max: MaxPods, Compared: Condition},
	{Path: "mesh.topology", Flag: "topology", Group: MeshGroup, Help: "call graph", Choices: []string{"star", "layers", "random"}, Where: SyntheticMesh, Compared: Condition},
	{Path: "mesh.fanOut", Flag: "fanout", Group: MeshGroup, Help: "services that each service calls", Where: SyntheticMesh, Min: 1, Max: MaxPods, Compared: Condition},
	{Path: "mesh.seed", Flag: "seed", Group: MeshGroup, Help: "seed of the call graph", Compared: Condition},
	{Path: "mesh.mode", Flag: "mode", Group: MeshGroup, Basic: true, Help: "permissive (everyone may reach everyone) or strict (only declared calls)", Several: "both is one run each", Default: "the control plane's first", Istiod: "permissive", Where: SyntheticMesh, Compared: Condition},
	{Path: "mesh.settings.mtls", Flag: "mtls", Group: MeshGroup, Help: "whether plaintext is refused, in place of the mode's", Choices: []string{"permissive", "strict"}, Where: SyntheticMesh, Compared: Condition},
	{Path: "mesh.settings.scope", Flag: "scope", Group: MeshGroup, Help: "services that a sidecar is configured for, in place of the mode's: all, or declared, the ones that it calls", Choices: []string{"all", "declared"}, Where: SyntheticMesh, Compared: Condition},
	{Path: "mesh.settings.authz", Flag: "authz", Group: MeshGroup, Help: "authorization policies, in place of the mode's: none, or only declared calls are allowed", Choices: []string{"none", "declared"}, Where: SyntheticMesh, Compared: Condition},
	{Path: "mesh.dataplane", Flag: "dataplane", Group: MeshGroup, Basic: true, Help: "sidecar, a proxy for each pod; ambient, a proxy for each node; mixed, both; a captured mesh in ambient mode has its own unless this is stated", Several: "several are one run each", Commands: Rolling, Compared: Condition},
	{Path: "mesh.podsPerNode", Flag: "pods-per-node", Group: MeshGroup, Help: "pods per fake node, with data plane ambient or mixed", Commands: Rolling, Where: NodeProxies, Min: 1, Max: 250, Compared: Condition},
	{Path: "mesh.waypoints", Flag: "waypoints", Group: MeshGroup, Help: "kind of object that has a waypoint proxy each, with data plane ambient; captured, the default of a captured mesh with waypoints, is the waypoints of that mesh", Commands: Rolling, Choices: []string{"none", "namespace", "service", "captured"}, Where: NodeProxies, Compared: Condition},
	{Path: "mesh.profile", Flag: "profile", Group: MeshGroup, Basic: true, Help: "parts of the mesh in addition to uniform HTTP services: plain (none) or typical", Choices: []string{"plain", "typical"}, Where: SyntheticMesh, Compared: Condition},
	{Path: "mesh.parts.virtualServices", Group: MeshGroup, Help: "VirtualServices: one for each service, the others for hosts outside the cluster's names that route to the mesh's services", Where: SyntheticMesh, Max: MaxPods, Compared: Condition},
	{Path: "mesh.parts.destinationRules", Group: MeshGroup, Help: "services with a DestinationRule of two subsets", Where: SyntheticMesh, Max: MaxPods, Compared: Condition},
	{Path: "mesh.parts.serviceEntries", Group: MeshGroup, Help: "ServiceEntries, each a host outside the cluster", Where: SyntheticMesh, Max: MaxPods, Compared: Condition},
	{Path: "mesh.parts.envoyFilters", Group: MeshGroup, Help: "EnvoyFilters, each a patch of the sidecars of one service", Where: SyntheticMesh, Max: 10000, Compared: Condition},
	{Path: "mesh.parts.telemetries", Group: MeshGroup, Help: "services with a Telemetry that switches access logs on", Where: SyntheticMesh, Max: MaxPods, Compared: Condition},
	{Path: "mesh.parts.tcpServices", Group: MeshGroup, Help: "services with a TCP port in addition", Where: SyntheticMesh, Max: 200, Compared: Condition},
	{Path: "mesh.parts.headlessServices", Group: MeshGroup, Help: "headless services", Where: SyntheticMesh, Max: MaxPods, Compared: Condition},
	{Path: "mesh.parts.externalNames", Group: MeshGroup, Help: "Services of type ExternalName, each a further name of a service of the mesh", Where: SyntheticMesh, Max: MaxPods, Compared: Condition},
	{Path: "mesh.parts.gateways", Group: MeshGroup, Help: "ingress gateways of one pod, each with ten hosts; they are among the pods", Where: SyntheticMesh, Max: 100, Compared: Condition},
	{Path: "mesh.parts.zones", Group: MeshGroup, Help: "zones that nodes are spread over", Where: SyntheticMesh, Max: 100, Compared: Condition},
	{Path: "mesh.parts.outsidePods", Group: MeshGroup, Help: "pods without sidecars that exist before the mesh", Where: SyntheticMesh, Max: MaxPods, Compared: Condition},
	{Path: "mesh.parts.outsideChurn", Group: MeshGroup, Help: "pods without sidecars that are created and deleted each second, as those of CronJobs", Commands: measuring, Where: SyntheticMesh, Max: 100, Compared: Condition},
	{Path: "mesh.parts.replicaSkew", Group: MeshGroup, Help: "exponent of Zipf's law by which pods are dealt to services; 0 deals evenly", Where: SyntheticMesh, Max: 3, Compared: Condition},
	{Path: "mesh.parts.gracePeriod", Group: MeshGroup, Help: "time for which a pod that is deleted runs on, terminating, with its sidecar; 0s = it is gone at once", Where: SyntheticMesh, Max: 300, Compared: Condition},
	{Path: "mesh.sidecars.xds", Flag: "xds", Group: MeshGroup, Help: "xDS variant of the sidecars, if the control plane supports it", Default: "the control plane's first", Istiod: "delta", Choices: []string{"delta", "sotw"}, Compared: Condition},
	{Path: "mesh.sidecars.version", Flag: "proxy-version", Group: MeshGroup, Help: "version of Istio that simulated sidecars report, as in 1.29.1", Default: "the control plane's", Commands: ofOne, Compared: Subject},
	{Path: "mesh.sidecars.startDelay", Flag: "start-delay", Group: MeshGroup, Help: "time from a pod's address to its sidecar's start: 2s, uniform:1s-5s or exponential:2s", Where: OwnProxies, Compared: Condition},
	{Path: "mesh.sidecars.certificateLifetime", Flag: "certificate-lifetime", Group: MeshGroup, Help: "certificate lifetime that sidecars request; they renew after half of it", Default: "24h", Min: 10, Max: 10 * 365 * day, Off: true, Compared: Condition},
	{Path: "mesh.sidecars.real", Flag: "real-sidecars", Group: MeshGroup, Help: "pods with a real sidecar, agent and Envoy, as processes on this machine; in an existing cluster, injected pods on real nodes", Commands: notUpgrade, Max: MaxPods, Compared: Condition},
	{Path: "mesh.sidecars.image", Group: MeshGroup, Value: "IMAGE", Help: "application of pods on real nodes, whose entrypoint is scaler", Where: InCluster, Commands: notUpgrade, Compared: Irrelevant},
	{Path: "mesh.file", Flag: "mesh", Group: MeshGroup, Basic: true, Value: "FILE", Help: "captured mesh, from 'scaler capture', or sample:NAME, that is rolled out in place of a synthetic one", Compared: Condition},
	{Path: "mesh.scale", Flag: "scale", Group: MeshGroup, Help: "copies of each namespace of a captured mesh, with its objects", Several: "several numbers, as in 1,2,4, are one run each", Where: CapturedMesh, Min: 1, Max: 100, Compared: Size},
	{Path: "mesh.revision", Group: MeshGroup, Value: "NAME", Help: "revision of a captured mesh, by its name in the file, whose control plane is rolled out with its own pods; those of other revisions are endpoints", Default: "one control plane serves the pods of all", Where: CapturedMesh, Compared: Condition},
	{Path: "mesh.share", Group: MeshGroup, Value: "SHARE", Help: "share of the pods of each workload of a captured mesh, one of each at least, as in 50%", Default: "all", Where: CapturedMesh, Compared: Size},

	{Path: "controlPlane.name", Flag: "control-plane", Group: ControlPlaneGroup, Basic: true, Help: "control plane under test: istiod, osm, linkerd, reference or xds://HOST:PORT", HelpOf: map[string]string{Latency: "control plane of the sidecars"}, Commands: []string{Rollout, Bench, Limits, Tune, Latency}, Compared: Subject},
	{Path: "controlPlane.version", Flag: "istio-version", FlagOf: map[string]string{Upgrades: "from", Diff: "from", Assess: "from"}, Group: ControlPlaneGroup, Basic: true, Help: "version of Istio to run, as in 1.30.2, or a minor version, as in 1.29", Default: "the newest one known", Commands: []string{Rollout, Upgrades, Limits, Tune, Latency, Diff, Assess}, Compared: Subject},
	{Path: "controlPlane.replicas", Flag: "replicas", Group: ControlPlaneGroup, Basic: true, Help: "replicas of the control plane: each connection of a sidecar goes to a random one, and each has its own processors and memory", Min: 1, Max: 16, Compared: Subject},
	{Path: "controlPlane.processors", Flag: "control-plane-cpus", Group: ControlPlaneGroup, Basic: true, Help: "processors of the modelled machine of each replica: its GOMAXPROCS, and the most that it may use, also if this machine has more or fewer", Default: strconv.Itoa(DefaultProcessors) + "; those of this machine where time cannot be slowed down", Istiod: strconv.Itoa(DefaultProcessors), Min: 1, Max: 1024, Compared: Subject},
	{Path: "controlPlane.memory", Flag: "control-plane-memory", Group: ControlPlaneGroup, Basic: true, Help: "memory limit of each replica, as in 512Mi or 2Gi; exceeding it is a result", Default: "none", Min: 64 << 20, Max: 1 << 44, Compared: Subject},
	{Path: "controlPlane.env", Flag: "control-plane-env", Group: ControlPlaneGroup, Value: "NAME=VALUE", Help: "environment variable of the control plane, repeatable; NAME alone takes its value from scaler's environment; values that look like secrets are masked in the record", Compared: Subject},
	{Path: "controlPlane.set", Flag: "control-plane-set", Group: ControlPlaneGroup, Value: "PATH=VALUE", Help: "setting of istiod's configuration, as in meshConfig.outboundTrafficPolicy.mode=REGISTRY_ONLY, or values.PATH=VALUE for injection, repeatable; the value is YAML", Compared: Subject},
	{Path: "controlPlane.configuration", Group: ControlPlaneGroup, Help: "configuration of the control plane of a captured mesh: captured, which also gives version, replicas, processors, memory limit and settings that are not stated, or stock", Default: "captured, where the file has it", Where: CapturedMesh, Commands: notUpgrade, Choices: []string{CapturedConfiguration, StockConfiguration}, Compared: Subject},
	{Path: "controlPlane.connection.plaintext", Group: ControlPlaneGroup, Help: "connect without TLS and without a token", Where: ExternalServer, Commands: notUpgrade, Compared: Condition},
	{Path: "controlPlane.connection.tlsCA", Group: ControlPlaneGroup, Value: "FILE", Help: "roots of the server's certificate, in PEM", Where: ExternalServer, Commands: notUpgrade, Compared: Irrelevant},
	{Path: "controlPlane.connection.tlsCert", Group: ControlPlaneGroup, Value: "FILE", Help: "certificate that sidecars show the server, in PEM", Where: ExternalServer, Commands: notUpgrade, Compared: Irrelevant},
	{Path: "controlPlane.connection.tlsKey", Group: ControlPlaneGroup, Value: "FILE", Help: "private key of tlsCert, in PEM", Where: ExternalServer, Commands: notUpgrade, Compared: Irrelevant},
	{Path: "controlPlane.connection.tokenFile", Group: ControlPlaneGroup, Value: "FILE", Help: "bearer token that all sidecars send; read again for new streams", Where: ExternalServer, Commands: notUpgrade, Compared: Irrelevant},
	{Path: "controlPlane.connection.serverName", Group: ControlPlaneGroup, Value: "NAME", Help: "name that the server's certificate must carry", Default: "the host of the address", Where: ExternalServer, Commands: notUpgrade, Compared: Irrelevant},
	{Path: "controlPlane.connection.nodeID", Group: ControlPlaneGroup, Value: "TEMPLATE", Help: "a sidecar's node.id, of {{.Pod}}, {{.Namespace}}, {{.Service}}, {{.Account}} and {{.IP}}", Default: "as Istio's", Where: ExternalServer, Commands: notUpgrade, Compared: Condition},
	{Path: "controlPlane.connection.nodeCluster", Group: ControlPlaneGroup, Value: "TEMPLATE", Help: "its node.cluster", Default: "as Istio's", Where: ExternalServer, Commands: notUpgrade, Compared: Condition},
	{Path: "controlPlane.connection.metadata", Group: ControlPlaneGroup, Value: "TEMPLATE", Help: "its node.metadata, a JSON object", Default: "as Istio's", Where: ExternalServer, Commands: notUpgrade, Compared: Condition},
	{Path: "controlPlane.connection.expect", Group: ControlPlaneGroup, Value: "FILE", Help: "what each sidecar must receive", Default: "that all that it asks for is answered; then pushes are not measured", Where: ExternalServer, Commands: notUpgrade, Compared: Condition},
	{Path: "controlPlane.upgrade.to", Flag: "to", Group: ControlPlaneGroup, Basic: true, Value: "VERSION", Help: "version of Istio that the mesh is upgraded to", Commands: upgrading, Compared: Condition},
	{Path: "controlPlane.upgrade.canary", Flag: "canary", Group: ControlPlaneGroup, Basic: true, Value: "SHARES", Help: "shares of the pods with sidecars that are on the new version after each wave, ascending to 100%", Where: InWaves, Commands: upgrading, Compared: Condition},
	{Path: "controlPlane.upgrade.inPlace", Flag: "in-place", Group: ControlPlaneGroup, Basic: true, Help: "no waves: the new version takes the place of the old one, and all workloads are restarted then", Where: InUpgrade, Commands: onlyUpgrade, Compared: Condition},
	{Path: "controlPlane.upgrade.rollbackAt", Flag: "rollback-at", Group: ControlPlaneGroup, Basic: true, Value: "WAVE", Help: "move everything back after this wave, and remove the new version", Default: "never", Where: InWaves, Commands: onlyUpgrade, Max: 1000, Compared: Condition},
	{Path: "controlPlane.upgrade.rate", Flag: "restart-rate", Group: ControlPlaneGroup, Basic: true, Help: "restart the workloads of a wave one after another, at this rate of pods, as in 5/s", Default: "all at once", Where: InUpgrade, Commands: upgrading, Compared: Condition},
	{Path: "controlPlane.upgrade.pause", Flag: "pause", Group: ControlPlaneGroup, Help: "time for which both versions run before the first wave, and length of the stage after the upgrade", Where: InUpgrade, Commands: upgrading, Min: 1, Max: 3600, Compared: Condition},
	{Path: "controlPlane.upgrade.env", Flag: "to-env", Group: ControlPlaneGroup, Value: "NAME=VALUE", Help: "environment variable of the new version only, repeatable", Where: InUpgrade, Commands: upgrading, Compared: Condition},

	{Path: "load.arrival", Flag: "arrival", Alias: "burst", Group: LoadGroup, Basic: true, Help: "how pods arrive: in bursts of SIZE/INTERVAL as in 100/10s, one by one at a rate as in 20/s, or all at once, which is as fast as this machine creates them; stock is 20/s, what the stock limit of a cluster's controllers allows", Compared: Condition},
	{Path: "load.probes", Flag: "probes", Group: LoadGroup, Basic: true, Help: "changes of each kind that are made one at a time and followed to the sidecars after steady; 0 for none", Commands: measuring, Max: 100000, Compared: Condition},
	{Path: "load.changes", Flag: "change", Group: LoadGroup, Basic: true, Value: "RATE[:KIND]", Help: "make changes at this rate, as in 5/s:route, in a phase after the probes, and follow each to the sidecars; kinds are " + oneOf(ChangeKinds), Commands: notUpgrade, Compared: Condition},
	{Path: "load.churn", Flag: "churn", Group: LoadGroup, Basic: true, Help: "replace pods at this rate, as in 2/s, in a phase as long as steady; with changes, in their phase", Commands: notUpgrade, Compared: Condition},
	{Path: "load.faults", Flag: "fault", Group: LoadGroup, Basic: true, Value: "NAME@PHASE", Help: "inject a fault in phase rollout, steady or probe, repeatable: " + FaultUsage(), HelpOf: map[string]string{Diff: "inject a fault in phase rollout or steady, before what proxies hold is kept, repeatable: " + FaultUsage()}, Commands: ofOne, Compared: Condition},
	{Path: "load.certificateStorm", Flag: "certificate-storm", Group: LoadGroup, Help: "make all sidecars request a new certificate at once, after the probes", Commands: notUpgrade, Compared: Condition},

	{Path: "phases.baseline", Flag: "baseline", Group: LoadGroup, Help: "length of the baseline phase: the control plane without a mesh", Commands: measuring, Min: 1, Max: day, Compared: Condition},
	{Path: "phases.convergeTimeout", Flag: "converge-timeout", Group: LoadGroup, Help: "time limit for convergence; exit code 3 if it passes", Min: 1, Max: day, Compared: Irrelevant},
	{Path: "phases.settle", Flag: "settle", Group: LoadGroup, Help: "time between rollout and steady, which no figure includes", Max: day, Compared: Condition},
	{Path: "phases.steady", Flag: "steady", Group: LoadGroup, Basic: true, Help: "length of the steady phase, without changes", Commands: measuring, Min: 1, Max: day, Compared: Condition},
	{Path: "phases.changes", Flag: "change-duration", Group: LoadGroup, Help: "length of the phase of changes", Where: WithChanges, Commands: notUpgrade, Min: 1, Max: day, Compared: Condition},
	{Path: "phases.cycle", Flag: "cycle", Group: LoadGroup, Help: "length of a phase after the changes in which every sidecar reconnects once, as at the age of its connection, and as many certificates are renewed as fall into that age", Default: "none", Commands: notUpgrade, Min: 10, Max: day, Off: true, Compared: Condition},

	{Path: "place.context", Flag: "context", Group: ClusterGroup, Basic: true, Value: "CONTEXT", Help: "roll out in the existing cluster of this context of the kubeconfig, or in-cluster in a pod, against its control plane; it must be named, also if it is the current one", HelpOf: map[string]string{Latency: "place client and servers in pods of the existing cluster of this context of the kubeconfig, or in-cluster in a pod, with the sidecars that it injects, in place of processes of this machine"}, Commands: inClusters, Compared: Condition},
	{Path: "place.kubeconfig", Flag: "kubeconfig", Group: ClusterGroup, Value: "FILE", Help: "file with contexts", Default: "KUBECONFIG, else ~/.kube/config", Where: InCluster, Commands: inClusters, Compared: Irrelevant},
	{Path: "place.namespace", Flag: "istio-namespace", Group: ClusterGroup, Help: "namespace of istiod, which must be the root namespace of its mesh, too", Default: "istio-system", Where: InCluster, Commands: inClusters, Compared: Irrelevant},
	{Path: "place.revision", Flag: "revision", Group: ClusterGroup, Help: "revision of the control plane, where the cluster has several", Where: InCluster, Commands: inClusters, Compared: Subject},
	{Path: "place.address", Flag: "control-plane-address", Group: ClusterGroup, Value: "HOST:PORT", Help: "address where sidecars reach the control plane from here", Default: "its pods, through the API server", Where: InCluster, Commands: onlyRollout, Compared: Condition},
	{Path: "place.metrics", Flag: "control-plane-metrics", Group: ClusterGroup, Value: "HOST:PORT", Help: "metrics of a control plane of one program that has an address, from which its cores and memory are", Default: "those of each of its pods, through the API server", Where: InCluster, Commands: onlyRollout, Compared: Irrelevant},
	{Path: "place.abortIf", Flag: "abort-if", Group: ClusterGroup, Value: "CONDITIONS", Help: "conditions; if one of them is met, the run ends and its objects are deleted; as in apiserver-p99>1s,pending-pods>20,control-plane-cores>4", Where: InCluster, Commands: onlyRollout, Compared: Irrelevant},
	{Path: "place.refuseIf", Flag: "refuse-if", Group: ClusterGroup, Value: "CONDITIONS", Help: "conditions of the cluster before the run, written as those of abortIf; if one of them is met, the run is refused; empty = none", Where: InCluster, Commands: onlyRollout, Compared: Irrelevant},
	{Path: "place.workerImage", Flag: "worker-image", Group: ClusterGroup, Value: "REF", Help: "container image of this scaler, with which workers run the simulated sidecars as a Job in the cluster", Default: "they run here", Where: InCluster, Commands: onlyRollout, Compared: Condition},
	{Path: "place.kwokImage", Flag: "kwok-image", Group: ClusterGroup, Value: "REF", Help: "container image of KWOK's controller, with which it runs in the cluster", Default: "it runs here", Where: InCluster, Commands: onlyRollout, Compared: Condition},

	{Path: "latency.rps", Flag: "rps", Group: LoadGroup, Basic: true, Help: "requests per second; several rates run one after another", Where: OpenLoop, Commands: onlyLatency, Min: 1, Max: 1_000_000, Compared: Condition},
	{Path: "latency.arrivals", Flag: "arrivals", Group: LoadGroup, Help: "schedule of an open loop", Choices: []string{"constant", "poisson"}, Where: OpenLoop, Commands: onlyLatency, Compared: Condition},
	{Path: "latency.seed", Flag: "seed", Group: LoadGroup, Help: "seed of poisson arrivals", Commands: onlyLatency, Compared: Condition},
	{Path: "latency.duration", Flag: "duration", Group: LoadGroup, Basic: true, Help: "length per rate, variant and repeat", Where: OpenLoop, Commands: onlyLatency, Min: 1, Max: day, Compared: Condition},
	{Path: "latency.maxConnections", Flag: "max-connections", Group: LoadGroup, Help: "maximum number of requests in flight in an open loop; requests beyond it count as not sent", Where: OpenLoop, Commands: onlyLatency, Min: 1, Max: maxConnections, Compared: Condition},
	{Path: "latency.killServerEvery", Flag: "kill-server-every", Group: LoadGroup, Basic: true, Help: "kill a server at this interval, restart it at once, and show errors over time", Default: "never", Where: OpenLoop, Commands: onlyLatency, Min: 1, Max: day, Off: true, Compared: Condition},
	{Path: "latency.connections", Flag: "connections", Group: LoadGroup, Basic: true, Help: "use a closed loop with this many busy connections; several numbers run one after another", Default: "an open loop", Commands: onlyLatency, Min: 1, Max: maxConnections, Compared: Condition},
	{Path: "latency.requests", Flag: "requests", Group: LoadGroup, Basic: true, Help: "requests per variant and repeat in a closed loop", Where: ClosedLoop, Commands: onlyLatency, Min: 1, Max: 100_000_000, Compared: Condition},
	{Path: "latency.http", Flag: "http", Group: LoadGroup, Basic: true, Help: "HTTP version", Choices: []string{"1", "2"}, Commands: onlyLatency, Compared: Condition},
	{Path: "latency.keepalive", Flag: "keepalive", Group: LoadGroup, Basic: true, Help: "use connections for more than one request", Commands: onlyLatency, Compared: Condition},
	{Path: "latency.timeout", Flag: "timeout", Group: LoadGroup, Help: "time after which a request has failed, from when it was due", Commands: onlyLatency, Min: 0.001, Max: 3600, Compared: Condition},
	{Path: "latency.rounds", Flag: "rounds", Group: LoadGroup, Help: "number of rounds that a repeat is divided into; the variants alternate between rounds", Default: "4, with killServerEvery 1", Commands: onlyLatency, Min: 1, Max: 1000, Compared: Condition},
	{Path: "latency.warmup", Flag: "warmup", Group: LoadGroup, Help: "warm-up before each round; its requests do not count", Commands: onlyLatency, Max: 3600, Compared: Condition},
	{Path: "latency.topology", Flag: "topology", Group: MeshGroup, Basic: true, Help: "a client and a server (pair), a client and several servers (star), or tiers that call each other (chain)", Default: "chain with a chain, star with several servers, otherwise pair", Choices: []string{"pair", "star", "chain"}, Commands: onlyLatency, Compared: Condition},
	{Path: "latency.servers", Flag: "servers", Group: MeshGroup, Basic: true, Help: "servers of a star, or of each tier of a chain", Default: "3", Commands: onlyLatency, Min: 1, Max: 20, Compared: Condition},
	{Path: "latency.chain", Flag: "chain", Group: MeshGroup, Basic: true, Help: "use a chain; the wait of each tier, as in 100ms,100ms", Default: "no chain", Commands: onlyLatency, Max: 3600, Compared: Condition},
	{Path: "latency.variants", Flag: "variants", Group: ControlPlaneGroup, Basic: true, Help: "what is on the path: none, permissive (sidecars), strict (sidecars that refuse plaintext and other callers)", Default: "none and each mode of the control plane", Commands: onlyLatency, Compared: Condition},
	{Path: "latency.proxy", Flag: "proxy", Group: ControlPlaneGroup, Value: "PATH", Help: "program of the sidecars, for a control plane whose proxy scaler does not have", Commands: onlyLatency, Compared: Subject},
	{Path: "latency.image", Flag: "image", Group: ClusterGroup, Basic: true, Value: "REF", Help: "container image of this scaler, which all pods run", Where: InCluster, Commands: onlyLatency, Compared: Irrelevant},
	{Path: "latency.placement", Flag: "placement", Group: ClusterGroup, Help: "node of the servers: the client's node (one-node) or another one (two-nodes)", Default: "both, if the cluster has two nodes that accept pods", Choices: []string{"one-node", "two-nodes"}, Where: InCluster, Commands: onlyLatency, Compared: Condition},
	{Path: "latency.nodes", Flag: "nodes", Group: ClusterGroup, Value: "NAMES", Help: "nodes of the pods, the client's first", Default: "the first two by name", Where: InCluster, Commands: onlyLatency, Compared: Condition},

	{Path: "instrument.workers", Flag: "workers", Group: InstrumentGroup, Help: "processes that run the simulated sidecars: scaler itself, and children of it; with a worker image pods", Commands: measuring, Min: 1, Max: 64, Compared: Condition},
	{Path: "instrument.dilation", Flag: "dilate", Group: InstrumentGroup, Help: "factor K by which time is slowed down, so that this machine can do the work of the modelled one; auto chooses it from the expected demand of the run and the speed of this machine's processors, and starts the run again, once, with twice that factor if the control plane still waits too long", Compared: Condition},
	{Path: "instrument.calibrate", Flag: "calibrate", Group: InstrumentGroup, Help: "measure scaler's floor first where it is unknown; see 'scaler calibrate'", Commands: notLimits, Compared: Irrelevant},
	{Path: "instrument.priority", Flag: "priority", Group: InstrumentGroup, Help: "give the control plane precedence over scaler, and scaler precedence over the cluster, when they compete for processors", Compared: Condition},
	{Path: "thresholds", Flag: "threshold", Group: OutputGroup, Basic: true, Value: "FIGURE<VALUE", Help: "bound that a figure of every run must meet, as in 'rollout.cores<1.5' or 'push.p99<2s', repeatable; the exit code is 3 if a run misses it, and 4 if a run does not decide it", Commands: onlyRollout, Compared: Irrelevant},
}

// Of returns the parameter of a path.
func Of(path string) (Parameter, bool) {
	i := slices.IndexFunc(Parameters, func(p Parameter) bool { return p.Path == path })
	if i < 0 {
		return Parameter{}, false
	}
	return Parameters[i], true
}

// For returns the parameters that a command has.
func For(command string) []Parameter {
	return slices.DeleteFunc(slices.Clone(Parameters), func(p Parameter) bool { return !p.AppliesTo(command) })
}

// AppliesTo reports whether a command has the parameter.
func (p Parameter) AppliesTo(command string) bool {
	if p.Commands == nil {
		return slices.Contains(Rolling, command)
	}
	return slices.Contains(p.Commands, command)
}

// Flags returns the flags of the parameter with a command, the first by its usual name.
func (p Parameter) Flags(command string) []string {
	var all []string
	for _, name := range []string{cmp.Or(p.FlagOf[command], p.Flag), p.Alias} {
		if name != "" {
			all = append(all, name)
		}
	}
	return all
}

// Type names the type of a parameter's value in help, as in int.
func (p Parameter) Type() string {
	if p.Value != "" {
		return p.Value
	}
	switch t := typeOf(p.Path); {
	case t == reflect.TypeFor[Duration]() || t == reflect.TypeFor[*Duration]():
		return "duration"
	case t == reflect.TypeFor[Rate]():
		return "rate"
	case t == reflect.TypeFor[Bytes]():
		return "bytes"
	case listed(t) && t.Elem() == reflect.TypeFor[Duration]():
		return "durations"
	case listed(t) && t.Elem().Kind() == reflect.Int:
		return "ints"
	case listed(t) && t.Elem().Kind() == reflect.Float64:
		return "numbers"
	case t.Kind() == reflect.Bool:
		return "bool"
	case t.Kind() == reflect.Int, t == reflect.TypeFor[*int](), t.Kind() == reflect.Uint64:
		return "int"
	}
	return "string"
}

// Wanted states what a value of the parameter is, as in "a whole number".
func (p Parameter) Wanted() string {
	if len(p.Choices) > 0 {
		return oneOf(p.Choices)
	}
	return wanted(typeOf(p.Path))
}

// Values states the choices or the bounds of the parameter; "" = it has none.
func (p Parameter) Values() string {
	switch {
	case len(p.Choices) > 0:
		return oneOf(p.Choices)
	case p.Max > 0:
		return strings.TrimPrefix(strings.TrimPrefix(p.bounds(), "a duration "), "from ")
	}
	return ""
}

// Usage returns the help of the parameter with a command and its choices; its default is not part of it.
func (p Parameter) Usage(command string) string {
	text := cmp.Or(p.HelpOf[command], p.Help)
	if p.Several != "" && !slices.Contains(oneRun, command) {
		text += "; " + p.Several
	}
	if len(p.Choices) > 0 && !strings.Contains(text, p.Choices[len(p.Choices)-1]) {
		text += ": " + oneOf(p.Choices)
	}
	return text
}

// typeOf returns the type of the field at a path.
func typeOf(path string) reflect.Type {
	v, _, _ := new(Scenario).leaf(path)
	return v.Type()
}
