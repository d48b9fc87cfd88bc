package record

// SidecarDataplane is Spec.Dataplane where each pod has a proxy of its own.
const SidecarDataplane = "sidecar"

// Proxies are those of a run whose pods were served by a proxy of their node.
type Proxies struct {
	Name  string `json:"name"`            // what such a proxy is called, as in ztunnel
	Nodes int    `json:"nodes"`           // that there were, each with a proxy
	Ready *int   `json:"ready,omitempty"` // proxies that were ready when the mesh began to be rolled out
}

// ProxyFigures are the counts of Proxies.
var ProxyFigures = []FigureOf[Proxies]{
	{Figure: Figure{Path: "nodes", Unit: UnitCount, Label: "nodes", Counts: "node", Better: BetterNeither, NotCompared: true, Definition: "Fake nodes, each with a proxy that serves its pods; absent where each pod has its own."}, Of: func(p *Proxies) *float64 { return whole(&p.Nodes) }},
	{Figure: Figure{Path: "ready", Unit: UnitCount, Label: "ready", Counts: "proxy", Better: BetterNeither, NotCompared: true, Definition: "Those proxies that were ready when the mesh began to be rolled out."}, Of: func(p *Proxies) *float64 { return whole(p.Ready) }},
}

// Mode is the mode of a run as it is grouped and named: with the data plane where that is
// not sidecars, as in "ambient strict"; otherwise, without a mode, as knobs says.
func (r *Run) Mode(knobs func() string) string {
	mode := r.Spec.Mode
	if mode == "" {
		mode = knobs()
	}
	if d := r.Dataplane(); d != SidecarDataplane {
		mode = d + " " + mode
	}
	return mode
}

// Dataplane is what the pods of a run had, also of a record that does not say.
func (r *Run) Dataplane() string {
	if r.Spec.Dataplane == "" {
		return SidecarDataplane
	}
	return r.Spec.Dataplane
}
