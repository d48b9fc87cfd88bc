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
	conditions []record.Condition // the first sizeAndKnobs name a group
	subjects   []record.Condition // what may differ, in addition to that of any two control planes
	figures    []string           // paths of figures, or beginnings of paths; nil = all
	across     *across            // nil = both sides are of one control plane, or are compared as if they were
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
	r := rules{conditions: slices.Clone(conditions), across: sides}
	ignored := func(*record.Run) string { return "" }
	if of, other := dataplanes(a), dataplanes(b); len(of) == 1 && len(other) == 1 && of[0] != other[0] {
		r.figures = sameMeaning
		r.subjects = append(r.subjects, r.replace(record.DataplaneCondition, ignored))
		r.replace(record.SettingsCondition, func(r *record.Run) string { // scope is none of proxies of nodes
			k := r.Environment.Knobs
			return fmt.Sprintf("mtls %s, authz %s", cmp.Or(k.MTLS, "none"), cmp.Or(k.Authz, "none"))
		})
		r.subjects = append(r.subjects, record.Condition{Name: "scope", Of: func(r *record.Run) string { return cmp.Or(r.Environment.Knobs.Scope, "none") }})
		r.subjects = append(r.subjects, r.replace(record.PodsPerNodeCondition, ignored))
	}
	if sides != nil {
		r.replace(record.SettingsCondition, ignored) // their meaning is stated for each side
		r.replace(record.XDSCondition, ignored)
		r.subjects = append(r.subjects, record.Condition{Name: record.XDSCondition, Of: func(r *record.Run) string { return cmp.Or(r.Scenario.Mesh.Sidecars.XDS, "none") }})
	}
	return r, nil
}

// replace states a condition otherwise, at its place among those that name a group. It
// returns the condition as it was.
func (r *rules) replace(name string, of func(*record.Run) string) (was record.Condition) {
	at := slices.IndexFunc(r.conditions, func(c record.Condition) bool { return c.Name == name })
	was = r.conditions[at]
	r.conditions[at].Of = of
	return was
}

// match finds for each group of A those of B that are alike in all conditions. As far as
// possible, the rest are paired with groups that are alike in size and settings, and
// finally, if one of each is left, with each other: such pairs are forced.
func (r rules) match(a, b []*repeats) (alike, forced []pair, onlyA, onlyB []*repeats) {
	by := matchBy
	if r.across != nil {
		by = matchModes(a, b)
	}
	alike, onlyA, onlyB = by(r.conditions, a, b)
	forced, onlyA, onlyB = by(r.conditions[:sizeAndKnobs], onlyA, onlyB)
	if len(onlyA) == 1 && len(onlyB) == 1 {
		forced, onlyA, onlyB = append(forced, pair{a: onlyA[0], b: onlyB[0]}), nil, nil
	}
	if r.across != nil {
		for _, pairs := range [][]pair{alike, forced} {
			for i := range pairs {
				pairs[i].name = pairs[i].modesLabel()
			}
		}
	}
	return alike, forced, onlyA, onlyB
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
