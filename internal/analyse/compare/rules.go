package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/record"
)

// rules say in what the runs of two sides must be alike to be compared, and what is
// compared.
type rules struct {
	conditions []condition // the first sizeAndKnobs name a group
	subjects   []condition // what may differ, in addition to that of any two control planes
	figures    []string    // paths of figures, or beginnings of paths; nil = all
	across     *across     // nil = both sides are of one control plane, or are compared as if they were
}

// sameMeaning are the figures that mean the same whatever the data plane: the needs of
// the control plane and the cluster, the times of pods, the totals sent, and pushes timed
// from when a write returned. Other figures are of each sidecar or of each node's proxy,
// or are timed from a change of an EndpointSlice or of a pod. Figures of otherPhases are
// excluded.
var sameMeaning = []string{
	"phases", "arrival", "controlPlane", "cluster", "pods.created", "pods.ready", "certificates.issued", "certificates.attempts",
	"latencies.podAdmission", "latencies.podReady", "latencies.podReadyWithoutKwok",
	"xds.rates", "latencies.propagation.policy", "latencies.pushFromWrite.endpointHealth",
}

// otherPhases are the phases that differ between data planes: in the baseline the proxies
// of nodes exist already, and the probe phase makes other changes.
var otherPhases = []record.PhaseName{record.PhaseBaseline, record.PhaseProbe}

// rulesFor returns the rules for two sides. If each has one data plane, and they differ,
// the data planes are compared; with Options.Planes, two control planes are.
func rulesFor(a, b []record.Run, o Options) (rules, error) {
	sides, err := sidesOf(a, b, o)
	if err != nil {
		return rules{}, err
	}
	all := rules{conditions: conditions}
	if of, other := dataplanes(a), dataplanes(b); len(of) == 1 && len(other) == 1 && of[0] != other[0] {
		all = acrossDataplanes()
	}
	if all.across = sides; sides == nil {
		return all, nil
	}
	given := all.conditions
	all.conditions = nil
	for _, c := range given {
		switch c.name {
		case knobsName: // their meaning is stated for each side
			all.conditions = append(all.conditions, condition{knobsName, func(*record.Run) string { return "" }}) // keeps sizeAndKnobs
		case xdsName:
			all.subjects = append(all.subjects, condition{xdsName, func(r *record.Run) string { return cmp.Or(r.Scenario.Mesh.Sidecars.XDS, "none") }})
		default:
			all.conditions = append(all.conditions, c)
		}
	}
	return all, nil
}

// match pairs the groups of two sides.
func (r rules) match(a, b []*repeats) (alike, forced []pair, onlyA, onlyB []*repeats) {
	if r.across != nil {
		return r.across.match(r.conditions, a, b)
	}
	return match(r.conditions, a, b)
}

// acrossDataplanes returns the rules for sides of different data planes.
func acrossDataplanes() rules {
	across := rules{figures: sameMeaning}
	for _, c := range conditions {
		switch c.name {
		case knobsName: // scope is none of proxies of nodes
			across.conditions = append(across.conditions, condition{knobsName, func(r *record.Run) string {
				k := r.Environment.Knobs
				return fmt.Sprintf("mtls %s, authz %s", cmp.Or(k.MTLS, "none"), cmp.Or(k.Authz, "none"))
			}})
			across.subjects = append(across.subjects, condition{"scope", func(r *record.Run) string { return cmp.Or(r.Environment.Knobs.Scope, "none") }})
		case dataplaneName:
			across.conditions = append(across.conditions, condition{dataplaneName, func(*record.Run) string { return "" }}) // keeps sizeAndKnobs
			across.subjects = append(across.subjects, c)
		case podsPerNodeName:
			across.subjects = append(across.subjects, c)
		default:
			across.conditions = append(across.conditions, c)
		}
	}
	return across
}

// dataplanes returns the data planes of the runs of a side, each once.
func dataplanes(runs []record.Run) []string {
	var names []string
	for i := range runs {
		if r := &runs[i]; r.PodCount() > 0 && !slices.Contains(names, r.Dataplane()) {
			names = append(names, r.Dataplane())
		}
	}
	return names
}

// compares reports whether the figure at a path is compared.
func (r rules) compares(path string) bool {
	if r.figures == nil {
		return true
	}
	parts := strings.Split(path, ".")
	return !slices.ContainsFunc(otherPhases, func(phase record.PhaseName) bool { return slices.Contains(parts, string(phase)) }) &&
		slices.ContainsFunc(append([]string{allPrograms}, r.figures...), func(f string) bool { return record.Within(path, f) })
}

// differs lists the compared properties in which two runs differ.
func (r rules) differs(a, b *record.Run) []Differing {
	return append(differences(r.subjects, a, b), compared(a, b)...)
}

// remarks state what is not compared.
func (r rules) remarks() (all []string) {
	if r.across != nil {
		all = append(all, "the sides are of two control planes: figures that mean the same with both are compared, the others are listed without a verdict, with what they mean on either side; allPrograms is the sum of all programs of a control plane")
	}
	if r.figures == nil {
		return all
	}
	return append(all, "the sides have different data planes: only figures that mean the same in both are compared; those of each proxy, of the baseline, in which the proxies of nodes are there already, of probes, and pushes whose clock begins with what one data plane alone reads, are not")
}
