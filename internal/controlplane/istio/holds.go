package istio

import (
	"fmt"
	"slices"

	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/scenario"
)

// Holds returns the keys of all resources that a sidecar of the service with this
// index holds when converged, sorted: those that are wanted, those that istiod
// sends to every proxy, and those of the services that are not part of the mesh:
// a gateway always has these, and a sidecar unless the scope is declared.
func (c configuration) Holds(mesh topology.Mesh, knobs scenario.Settings, service int) []convergence.Key {
	if !expected(c.report.Version) {
		return nil
	}
	gateway := mesh.Services[service].Gateway
	names := []string{"BlackHoleCluster"}
	if !gateway {
		names = append(names, "InboundPassthroughCluster", "PassthroughCluster")
	}
	keys := convergence.Keys(c.Wants(mesh, knobs, service))
	for _, name := range names {
		keys = append(keys, convergence.Key{Type: convergence.CDS, Name: name})
	}
	if gateway || knobs.Scope != scenario.ScopeDeclared {
		for _, o := range c.others {
			keys = append(keys, o.held(gateway)...)
		}
	}
	slices.SortFunc(keys, convergence.Key.Compare)
	return slices.Compact(keys) // services share the listener and the routes of a port
}

// held returns the resources of a service that is not part of the mesh. A gateway has its clusters alone.
func (o otherService) held(gateway bool) (keys []convergence.Key) {
	add := func(t convergence.Type, name string) { keys = append(keys, convergence.Key{Type: t, Name: name}) }
	for _, p := range o.ports {
		add(convergence.CDS, outboundCluster(p.number, o.host))
		add(convergence.EDS, outboundCluster(p.number, o.host))
		switch {
		case gateway:
		case p.kind == routed:
			add(convergence.LDS, anyAddress(p.number))
			add(convergence.RDS, fmt.Sprint(p.number))
		default:
			add(convergence.LDS, fmt.Sprintf("%s_%d", o.address, p.number))
			if p.kind == sniffed {
				add(convergence.RDS, fmt.Sprintf("%s:%d", o.host, p.number))
			}
		}
	}
	return keys
}
