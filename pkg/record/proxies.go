package record

import "strings"

// Proxies are the node proxies of a run whose pods have no proxies of their own.
type Proxies struct {
	Name  string `json:"name"`            // what such a proxy is called, as in ztunnel
	Nodes int    `json:"nodes"`           // that there were, each with a proxy
	Ready *int   `json:"ready,omitempty"` // proxies that were ready when the mesh began to be rolled out

	Waypoints *Waypoints `json:"waypoints,omitempty"` // nil = there were none

	// Namespaces are the namespaces whose pods they serve, where pods of other namespaces have sidecars; nil = all.
	// The fields that follow are set for such a mesh alone. In other runs XDS has what the nodes' proxies received and held.
	Namespaces             []string            `json:"namespaces,omitempty"`
	Sidecars               *int                `json:"sidecars,omitempty"`               // pods of the other namespaces, each with one
	PerNode                *PerSidecar         `json:"perNode,omitempty"`                // that each proxy received in the rollout
	ConfigurationBytes     *ConfigurationBytes `json:"configurationBytes,omitempty"`     // that each proxy held
	ConfigurationResources map[string]float64  `json:"configurationResources,omitempty"` // that each proxy held, mean, by type
}

// Waypoints are the proxies of namespaces or services, in addition to those of nodes.
type Waypoints struct {
	Ready *int `json:"ready,omitempty"` // that were ready when the mesh began to be rolled out: all

	ConfigurationBytes     *ConfigurationBytes `json:"configurationBytes,omitempty"`     // that each held
	ConfigurationResources map[string]float64  `json:"configurationResources,omitempty"` // that each held, mean, by type
}

// WaypointFigures are the counts of Waypoints.
var WaypointFigures = []Figure{
	{Path: "ready", Unit: UnitCount, Label: "ready", Counts: "waypoint", Better: BetterNeither, NotCompared: true, Definition: "Pods of waypoints that were ready when the mesh began to be rolled out; absent where there are none."},
	{Path: "configurationBytes.mean", Unit: UnitBytes, Label: "configuration mean", Counts: "waypoint", Better: BetterLower, Definition: "Bytes of the resources that a waypoint holds when converged, mean over the waypoints."},
	{Path: "configurationBytes.max", Unit: UnitBytes, Label: "configuration max", Counts: "waypoint", Better: BetterLower, Definition: "The same of the waypoint that holds most."},
}

// ProxyFigures are the counts of Proxies.
var ProxyFigures = []Figure{
	{Path: "nodes", Unit: UnitCount, Label: "nodes", Counts: "node", Better: BetterNeither, NotCompared: true, Definition: "Fake nodes, each with a proxy that serves its pods; absent where each pod has its own."},
	{Path: "ready", Unit: UnitCount, Label: "ready", Counts: "proxy", Better: BetterNeither, NotCompared: true, Definition: "Those proxies that were ready when the mesh began to be rolled out."},
	{Path: "sidecars", Unit: UnitCount, Label: "sidecars", Counts: "sidecar", Better: BetterNeither, NotCompared: true, Definition: "Pods of namespaces with sidecars, in a mesh of which others have the proxies of their nodes; absent elsewhere."},
	{Path: "perNode.responses", Unit: UnitCount, Label: "responses per node", Counts: "node", Better: BetterLower, Definition: "Responses that the proxy of a node received up to the end of the rollout, mean, in a mesh of which other pods have sidecars."},
	{Path: "perNode.bytes", Unit: UnitBytes, Label: "bytes per node", Counts: "node", Better: BetterLower, Definition: "The bytes of those responses."},
	{Path: "configurationBytes.mean", Unit: UnitBytes, Label: "configuration mean", Counts: "node", Better: BetterLower, Definition: "Bytes of the resources that the proxy of a node holds when converged, mean, in a mesh of which other pods have sidecars."},
	{Path: "configurationBytes.max", Unit: UnitBytes, Label: "configuration max", Counts: "node", Better: BetterLower, Definition: "The same of the proxy that holds most."},
}

// heldByType returns the bytes and resources of each type that a holder has, mean over all of them. counts is
// Figure.Counts.
func heldByType(counts, holder, all string) []node {
	return []node{
		at(place{path: "configurationBytes.byType.TYPE", label: "configuration mean: TYPE"}, leaves([]Figure{{
			Unit: UnitBytes, Counts: counts, Better: BetterLower, Definition: "Those bytes by type, mean over the " + all + "."}})),
		at(place{path: "configurationResources.TYPE", label: "resources held, mean: TYPE"}, leaves([]Figure{{
			Unit: UnitCount, Counts: counts, Better: BetterLower, Definition: "The number of resources of a type that " + holder + " holds, mean over the " + all + "."}})),
	}
}

// Sentence returns a warning's Sentence as it is said of the run: of the proxies of nodes where no pod has a
// sidecar.
func (r *Run) Sentence(w Warning) string {
	text := w.Sentence()
	if r.Proxies == nil || r.Proxies.Sidecars != nil || r.Proxies.Name == "" {
		return text
	}
	return OfProxies(text, r.Proxies.Name, r.Proxies.Name+"s")
}

// OfProxies returns a text about sidecars as it is said of other proxies: of one, and of several.
func OfProxies(text, one, several string) string {
	capital := func(word string) string { return strings.ToUpper(word[:1]) + word[1:] }
	return strings.NewReplacer(
		"sidecars", several, "Sidecars", capital(several), "sidecar", one, "Sidecar", capital(one),
	).Replace(text)
}
