package capacity

import (
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Captured is the captured mesh that a plan is of, in as many copies as the planned number of pods is.
type Captured struct {
	File   string `json:"file"`   // as the runs name it
	Digest string `json:"digest"` // of the file, as in the records
	Scale  int    `json:"scale"`
	// Revision is the name of the revision that the plan is for, with its own pods; "" = the plan is for one control plane that serves
	// the pods of all revisions.
	Revision string `json:"revision,omitempty"`
}

// growth states how the numbers of a captured mesh grow with its copies. A cluster has some namespaces, with their pods and services, once.
type growth struct {
	of             Captured // without a scale
	pods, services line
	// proxies counts the proxies of all kinds, and nodes the nodes with a proxy each. Where each pod has a sidecar, they are the number of pods and 0.
	proxies, nodes line
	own            line // pods that have a proxy each
}

// line is a number that grows with each copy.
type line struct{ once, each int }

func (l line) at(scale int) int { return l.once + l.each*scale }

// scaleOf returns the scale at which a run had a captured mesh; 0 of a synthetic one.
func scaleOf(r *record.Run) int {
	if r.Mesh == nil {
		return 0
	}
	return max(1, r.Scenario.Mesh.Scale.First())
}

// growthOf returns how the captured mesh of runs, which are sorted by pods, grows; nil of a synthetic mesh and where the runs
// are not all of one mesh. From one scale alone, all of it is taken to be in each copy.
func growthOf(runs []*record.Run) *growth {
	first, last := runs[0], runs[len(runs)-1]
	from, to := scaleOf(first), scaleOf(last)
	between := func(of func(*record.Run) int) line {
		if from == to {
			return line{0, of(last) / max(1, to)}
		}
		each := (of(last) - of(first)) / (to - from)
		return line{of(first) - each*from, each}
	}
	if last.Mesh == nil {
		return nil
	}
	g := &growth{
		of:   Captured{File: last.Scenario.Mesh.File, Digest: last.Mesh.Digest, Revision: last.Scenario.Mesh.Revision},
		pods: between((*record.Run).PodCount), services: between((*record.Run).ServiceCount), proxies: between(proxiesOf), nodes: between(nodesOf), own: between(ownOf),
	}
	for _, r := range runs {
		// Records from elsewhere may have figures that are of no mesh.
		if r.Mesh == nil || r.Mesh.Digest != g.of.Digest {
			return nil
		}
		at := scaleOf(r)
		if from != to && (g.pods.at(at) != r.PodCount() || g.services.at(at) != r.ServiceCount() || g.proxies.at(at) != proxiesOf(r) || g.nodes.at(at) != nodesOf(r) || g.own.at(at) != ownOf(r)) {
			return nil
		}
	}
	if g.pods.each < 1 {
		return nil
	}
	return g
}

// scaleFor returns the smallest scale of so many pods, and whether these are all of its pods.
func (g *growth) scaleFor(pods int) (scale int, whole bool) {
	scale = max(1, (pods-g.pods.once+g.pods.each-1)/g.pods.each)
	return scale, g.pods.at(scale) == pods
}

// aimCaptured sets the scale and the services of a target that is a captured mesh.
func (s *sample) aimCaptured(t *target, o Options) error {
	g := s.growth
	scale, whole := g.scaleFor(o.Pods)
	if !whole {
		return scenario.Refuse("pods", o.Pods, "%d or %d, which are scale %d and %d of %s", g.pods.at(max(1, scale-1)), g.pods.at(scale), max(1, scale-1), scale, g.of.File)
	}
	t.services, t.streams, t.nodes, t.own = g.services.at(scale), g.proxies.at(scale), g.nodes.at(scale), g.own.at(scale)
	if o.Services != 0 && o.Services != t.services {
		return scenario.Refuse("services", o.Services, "%d, which %s has at scale %d", t.services, g.of.File, scale)
	}
	of := g.of
	of.Scale = scale
	t.captured = &of
	s.warn("target.mesh", "the mesh grows by copies of its namespaces: pods that are added to services that it has need something else, which was not measured")
	return nil
}

// podsOf returns the number of pods of the planned scale.
func (s *sample) podsOf(o Options) (int, error) {
	switch {
	case o.Scale == 0:
		return o.Pods, nil
	case s.growth == nil:
		return 0, scenario.Refuse("scale", o.Scale, "runs that are all of one captured mesh, or the number of pods")
	}
	return s.growth.pods.at(o.Scale), nil
}
