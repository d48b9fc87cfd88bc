package rollout

import (
	"maps"
	"slices"
	"strings"

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

// compareHoldings compares the names of the resources that every sidecar holds
// with those that the mesh and its knobs call for, and warns of differences. It is
// called when the mesh has converged, so every wanted resource is there: a missing
// one is one that the control plane was expected to add by itself.
func (r *rolloutRun) compareHoldings() {
	expected := map[string]map[convergence.Key]bool{} // by service
	for i, s := range r.mesh.Services {
		keys := r.adapter.Mesh.Holds(r.mesh, r.spec.Knobs(), i)
		if keys == nil {
			return
		}
		expected[s.Name] = set(keys)
	}
	var d differences
	r.fleet.mu.Lock()
	for _, id := range slices.Sorted(maps.Keys(r.fleet.pods)) {
		p := r.fleet.pods[id]
		if !p.gone && p.real != nil {
			d.compare(id, expected[p.service], p.real.keys())
		}
		if p.gone || p.sidecar == nil {
			continue
		}
		held := map[convergence.Key]bool{}
		for _, resource := range p.sidecar.Held() {
			held[resource.Key] = true
		}
		d.compare(id, expected[p.service], held)
	}
	r.fleet.mu.Unlock()
	for _, w := range d.warnings() {
		r.warn(w)
	}
}

func set(keys []convergence.Key) map[convergence.Key]bool {
	all := make(map[convergence.Key]bool, len(keys))
	for _, key := range keys {
		all[key] = true
	}
	return all
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

// warnings are the differences as warnings.
func (d *differences) warnings() []record.Warning {
	var all []record.Warning
	for _, one := range []struct {
		difference
		reason record.Reason
	}{{d.unwanted, record.ReasonUnexpectedResources}, {d.missing, record.ReasonMissingResources}} {
		if one.sidecars > 0 {
			all = append(all, record.Warning{
				About: "xds.configurationResources", Reason: one.reason, Detail: one.example,
				Values: map[string]float64{"sidecars": float64(one.sidecars), "resources": float64(one.resources)},
			})
		}
	}
	return all
}
