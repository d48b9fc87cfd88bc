package rollout

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

// holdings are what the sidecars of a run held at one moment.
type holdings struct {
	bytes     *record.ConfigurationBytes
	resources map[string]float64
}

// holdings reads what the complete sidecars hold now; nothing if there are none.
func (f *fleet) holdings() holdings {
	f.mu.Lock()
	defer f.mu.Unlock()
	var sum, most float64
	sidecars := 0.0
	bytes, resources := map[string]float64{}, map[string]float64{}
	for _, p := range f.pods {
		if p.gone || p.sidecar == nil || p.times.Complete.IsZero() {
			continue
		}
		sidecars++
		held := 0.0
		for t, h := range p.sidecar.Holdings() {
			held += float64(h.Bytes)
			bytes[t.String()] += float64(h.Bytes)
			resources[t.String()] += float64(h.Resources)
		}
		sum += held
		most = max(most, held)
	}
	if sidecars == 0 {
		return holdings{}
	}
	for _, byType := range []map[string]float64{bytes, resources} {
		for t := range byType {
			byType[t] /= sidecars
		}
	}
	return holdings{
		&record.ConfigurationBytes{
			Mean: new(sum / sidecars), Max: &most, ByType: bytes,
			Note: "bytes of the resources a sidecar holds when converged",
		},
		resources,
	}
}

// surprise is how far, as a share, the bytes of a type may be from what was
// predicted before it is worth a warning.
const surprise = 0.05

// compareHoldings lays what every sidecar holds beside what the knobs and the
// mesh call for, name by name and in bytes, and warns of what differs. It is
// called when the mesh has converged, so what is wanted is there; a name that is
// missing is one that the control plane was thought to send of its own accord.
func (r *rolloutRun) compareHoldings() {
	expected := map[string]expectation{} // by service
	for i, s := range r.mesh.Services {
		all := r.adapter.Holds(r.mesh, r.spec.Knobs(), i)
		if all == nil {
			return
		}
		expected[s.Name] = newExpectation(all)
	}
	var d differences
	predicted, sidecars := map[string]float64{}, 0.0
	r.fleet.mu.Lock()
	for _, id := range slices.Sorted(maps.Keys(r.fleet.pods)) {
		p := r.fleet.pods[id]
		if !p.gone && p.real != nil {
			d.compare(id, expected[p.service].keys, p.real.keys())
		}
		if p.gone || p.sidecar == nil {
			continue
		}
		held := map[convergence.Key]bool{}
		for _, resource := range p.sidecar.Held() {
			held[resource.Key] = true
		}
		d.compare(id, expected[p.service].keys, held)
		sidecars++
		for kind, bytes := range expected[p.service].bytes {
			predicted[kind.String()] += bytes
		}
	}
	r.fleet.mu.Unlock()
	for _, text := range d.texts() {
		r.warn("xds.configurationResources", "%s", text)
	}
	for kind := range predicted {
		predicted[kind] /= sidecars
	}
	r.predict(predicted)
}

// expectation is what a service's sidecars hold.
type expectation struct {
	keys  map[convergence.Key]bool
	bytes map[convergence.Type]float64 // of types whose every resource is predicted
}

func newExpectation(all []controlplane.Holding) expectation {
	e := expectation{map[convergence.Key]bool{}, map[convergence.Type]float64{}}
	unknown := map[convergence.Type]bool{}
	for _, h := range all {
		e.keys[h.Key] = true
		e.bytes[h.Type] += h.Bytes
		unknown[h.Type] = unknown[h.Type] || h.Bytes == 0
	}
	maps.DeleteFunc(e.bytes, func(t convergence.Type, _ float64) bool { return unknown[t] })
	return e
}

// predict records the predicted means, and warns of a type that differs.
func (r *rolloutRun) predict(byType map[string]float64) {
	held := r.holdings.bytes
	if held == nil || len(byType) == 0 {
		return
	}
	held.PredictedByType = byType
	for _, kind := range slices.Sorted(maps.Keys(byType)) {
		if got, want := held.ByType[kind], byType[kind]; math.Abs(got-want) > surprise*want {
			r.warn("xds.configurationBytes.byType."+kind, "a sidecar holds %.0f bytes of %s; %.0f were predicted from the mesh and its knobs", got, kind, want)
		}
	}
}

// differences between what sidecars should hold and what they do.
type differences struct{ unwanted, missing difference }

// difference is one way in which they differ.
type difference struct {
	sidecars  int
	resources int
	example   string
}

func (d *differences) compare(id string, expected, held map[convergence.Key]bool) {
	d.unwanted.add(id, held, expected)
	d.missing.add(id, expected, held)
}

// add counts the keys of these that are not among those.
func (d *difference) add(id string, these, those map[convergence.Key]bool) {
	var keys []string
	for key := range these {
		if !those[key] {
			keys = append(keys, key.String())
		}
	}
	if keys == nil {
		return
	}
	if d.sidecars == 0 {
		slices.Sort(keys)
		d.example = id + " " + strings.Join(keys[:min(len(keys), 3)], ", ")
	}
	d.sidecars++
	d.resources += len(keys)
}

// texts are the differences as warnings.
func (d *differences) texts() []string {
	var texts []string
	for _, one := range []struct {
		difference
		what string
	}{{d.unwanted, "that the mesh and its knobs do not call for"}, {d.missing, "fewer than the control plane was expected to send"}} {
		if one.sidecars > 0 {
			texts = append(texts, fmt.Sprintf("%d sidecars hold %d resources %s, as %s", one.sidecars, one.resources, one.what, one.example))
		}
	}
	return texts
}
