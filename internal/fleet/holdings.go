package fleet

import (
	"context"
	"maps"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

// Holdings sums up the resources that the simulated sidecars of a run held at one moment.
type Holdings struct {
	Bytes     *record.ConfigurationBytes // nil if no sidecar was complete
	Resources map[string]float64         // mean number of a sidecar, by type

	Waypoints *Holdings // those of waypoints, of which the others are not; nil if there are none
	Nodes     *Holdings // likewise those of the proxies of nodes, where pods have sidecars, too; else nil
}

// Holdings returns what the complete sidecars hold now, or all proxies of a mesh at rest; nothing if there are none. It
// returns an error if a worker is lost.
func (f *Fleet) Holdings(ctx context.Context) (Holdings, error) {
	all, err := f.Workers.held(ctx, false)
	if err != nil {
		return Holdings{}, err
	}
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	proxies, nodes, waypoints := finished(f.Pods.sidecars, all, f.Pods.unmet), finished(f.nodes.proxies, all, false), finished(f.nodes.waypoints, all, false)
	if !f.nodes.mixed {
		proxies, nodes = append(proxies, nodes...), nil
	}
	h := holdingsOf(proxies)
	if len(waypoints) > 0 {
		h.Waypoints = new(holdingsOf(waypoints))
	}
	if len(nodes) > 0 {
		h.Nodes = new(holdingsOf(nodes))
	}
	return h, nil
}

// finished returns the holdings of those proxies that are complete, or of all if they are not going to be. The caller holds Pods.mu.
func finished[P interface{ self() *simulated }](proxies map[string]P, all map[string]worker.Holding, unmet bool) (held []worker.Holding) {
	for id, p := range proxies {
		if unmet || !p.self().times.Complete.IsZero() {
			held = append(held, all[id])
		}
	}
	return held
}

// holdingsOf sums up what some proxies hold; nothing if there are none.
func holdingsOf(proxies []worker.Holding) Holdings {
	var sum, most float64
	sidecars := 0.0
	bytes, resources := map[string]float64{}, map[string]float64{}
	for _, p := range proxies {
		sidecars++
		held := 0.0
		for t, h := range p.Types {
			held += float64(h.Bytes)
			bytes[t.String()] += float64(h.Bytes)
			resources[t.String()] += float64(h.Resources)
		}
		sum += held
		most = max(most, held)
	}
	if sidecars == 0 {
		return Holdings{}
	}
	for _, byType := range []map[string]float64{bytes, resources} {
		for t := range byType {
			byType[t] /= sidecars
		}
	}
	return Holdings{
		Bytes: &record.ConfigurationBytes{
			Mean: new(sum / sidecars), Max: &most, ByType: bytes,
			Note: "bytes of the resources a sidecar holds when converged",
		},
		Resources: resources,
	}
}

// CompareHoldings compares the keys of the resources that every proxy holds with those that
// the proxies of its service are expected to hold, by service name, and warns of
// differences. In a converged mesh all wanted resources are present; a key that is
// missing is one that the control plane was expected to send without a request. Optional keys
// may be absent. It returns an error if a worker is lost.
func (f *Fleet) CompareHoldings(ctx context.Context, expected map[string]map[convergence.Key]bool, optional map[convergence.Key]bool) ([]record.Warning, error) {
	all, err := f.Workers.held(ctx, true)
	if err != nil {
		return nil, err
	}
	var d differences
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	held := map[string][]convergence.Key{}
	for id, p := range f.Pods.simulated {
		if p.worker != nil {
			held[id] = all[id].Keys
		}
	}
	for _, p := range f.real.all {
		held[p.envoy().id] = p.envoy().keys()
	}
	for _, id := range slices.Sorted(maps.Keys(held)) {
		p := f.Pods.byID[id]
		if p == nil || p.gone {
			continue
		}
		holds, want := map[convergence.Key]bool{}, expected[p.service]
		for _, key := range held[id] {
			if want[key] || !optional[key] {
				holds[key] = true
			}
		}
		d.compare(id, want, holds)
	}
	return d.warnings(), nil
}

// differences between what sidecars should hold and what they do.
type differences struct{ unwanted, missing difference }

// difference counts the differences of one kind.
type difference struct {
	sidecars  int
	resources int
	example   string
}

func (d *differences) compare(id string, expected, held map[convergence.Key]bool) {
	d.unwanted.add(id, held, expected)
	d.missing.add(id, expected, held)
}

// add counts the keys that are in these and not in those.
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

// warnings returns the differences as warnings.
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
