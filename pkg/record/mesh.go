package record

import "fmt"

// Mesh is the captured mesh that a run replayed.
type Mesh struct {
	Digest     string `json:"digest"`               // first 12 digits of the SHA-256 of the file
	Anonymized bool   `json:"anonymized,omitempty"` // its names are hashes

	Namespaces int `json:"namespaces"`
	Services   int `json:"services"`  // objects of that kind, headless and external ones too
	Workloads  int `json:"workloads"` // Deployments that were made, of workloads of whatever kind
	Gateways   int `json:"gateways"`  // pods that are gateways, which Pods.Requested includes
	Outside    int `json:"outside"`   // pods without sidecars, which Pods.Requested does not include
	// OtherRevisions are the pods with a sidecar of another revision than mesh.revision, which are endpoints and which Pods.Requested does not include.
	OtherRevisions int `json:"otherRevisions,omitempty"`
	Zones          int `json:"zones"`     // of nodes; 0 = none was known
	Endpoints      int `json:"endpoints"` // that the API server lists once all pods are ready

	Objects    map[string]int `json:"objects,omitempty"`    // of the mesh's configuration, by kind
	NotChecked []NotChecked   `json:"notChecked,omitempty"` // what may differ from what the sidecars should hold, unseen
	// NotReproduced lists the parts of the captured cluster that differ in the run.
	NotReproduced []NotReproduced `json:"notReproduced,omitempty"`
}

// NotReproduced is a part of a captured mesh or of its control plane that a run did not have as it was.
type NotReproduced struct {
	What    string `json:"what"`              // as in "setting EXTERNAL_CA"
	Value   string `json:"value,omitempty"`   // that was captured; "" = it has none, or it looks like a secret
	Changes string `json:"changes,omitempty"` // what may be otherwise for it
}

// Topology describes a run's mesh in words, without its size; "" = not known.
func (r *Run) Topology() string {
	asked := r.Scenario.Mesh
	if m := r.Mesh; m != nil {
		if asked.Revision != "" {
			return "captured, " + m.Digest + ", revision " + asked.Revision
		}
		return "captured, " + m.Digest
	}
	if asked.Topology == "" {
		return ""
	}
	return fmt.Sprintf("%s with fan-out %d", asked.Topology, asked.FanOut)
}

// NotChecked is a part of a captured mesh that convergence does not include: what sidecars hold of
// it is not compared with what they should hold.
type NotChecked struct {
	What  Unchecked `json:"what"`
	Count int       `json:"count,omitempty"` // of what it names; 0 = it is not a matter of numbers
	// Examples are some of them, by namespace and name.
	Examples []string `json:"examples,omitempty"`
}

// Unchecked names a part of a captured mesh that is not checked.
type Unchecked string

// The parts of a mesh that are not checked. Each names what Count counts.
const (
	UncheckedNames      Unchecked = "other-resources"     // whether sidecars hold resources besides those expected
	UncheckedInbound    Unchecked = "inbound-policies"    // objects that decide what inbound listeners accept
	UncheckedRoutes     Unchecked = "routes"              // objects that change routes
	UncheckedClusters   Unchecked = "cluster-settings"    // DestinationRules: the settings of clusters, and subsets that do not follow from one rule
	UncheckedEntries    Unchecked = "service-entries"     // hosts of ServiceEntries of which not all is compared, and WorkloadEntries whose endpoint no Service is expected to have
	UncheckedHeadless   Unchecked = "headless-listeners"  // ports of headless Services without a known HTTP protocol: listeners of their endpoints
	UncheckedExternal   Unchecked = "external-names"      // ExternalName Services: names of other Services
	UncheckedListeners  Unchecked = "address-listeners"   // ports without a known HTTP protocol: listeners of Service addresses
	UncheckedEndpoints  Unchecked = "chosen-endpoints"    // Services whose sidecars get some of the endpoints
	UncheckedGateways   Unchecked = "gateway-listeners"   // pods that are gateways: their listeners and routes
	UncheckedAmbient    Unchecked = "ambient"             // waypoints and, with data plane sidecar, ztunnels and pods in ambient mode: their proxies, which are not replayed
	UncheckedScope      Unchecked = "scope"               // Sidecars whose egress is not read in full
	UncheckedPatches    Unchecked = "patches"             // EnvoyFilters, WasmPlugins, Telemetries and ProxyConfigs
	UncheckedProxies    Unchecked = "proxy-settings"      // workloads whose pods configure their own proxies by annotations
	UncheckedMeshConfig Unchecked = "mesh-config"         // settings of the captured mesh's control plane, where they were not captured
	UncheckedTemplates  Unchecked = "injection-templates" // pods that ask for templates of injection which the file does not have: they are injected without
	UncheckedDangling   Unchecked = "dangling-references" // references to what the mesh does not have
)
