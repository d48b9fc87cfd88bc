package istio

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

// Holds are the keys of all resources that a sidecar of the service with this
// index holds when converged, sorted: those that are wanted, those that istiod
// sends to every proxy, and, unless the scope is declared, those of the services
// that are not part of the mesh.
func (c configuration) Holds(mesh topology.Mesh, knobs controlplane.Knobs, service int) []convergence.Key {
	if !expected(c.report.Version) {
		return nil
	}
	h := holds{routes: map[int]bool{}}
	if own := mesh.Services[service]; own.Gateway {
		h.add(convergence.CDS, "BlackHoleCluster")
		for _, w := range gatewayWants(mesh, own) {
			h.add(w.Type, w.Name)
		}
		for _, b := range c.others {
			h.clusters(b)
		}
		return h.sorted()
	}
	for _, name := range []string{"BlackHoleCluster", "InboundPassthroughCluster", "PassthroughCluster"} {
		h.add(convergence.CDS, name)
	}
	h.add(convergence.LDS, virtualOutbound)
	h.add(convergence.LDS, virtualInbound)
	h.keys = append(h.keys, c.tunnels()...)
	for _, p := range mesh.Services[service].Ports {
		h.add(convergence.CDS, inboundCluster(p))
	}
	for _, s := range scope(mesh, knobs, service) {
		h.service(mesh, s)
	}
	if knobs.Scope != record.ScopeDeclared {
		more, _ := profileWants(mesh)
		for _, w := range more {
			h.add(w.Type, w.Name)
		}
		for _, b := range c.others {
			h.other(b)
		}
	}
	return h.sorted()
}

// holds gathers what a sidecar holds.
type holds struct {
	keys   []convergence.Key
	routes map[int]bool // the HTTP ports: each has one listener and one route configuration, which services share
}

func (h *holds) add(t convergence.Type, name string) {
	h.keys = append(h.keys, convergence.Key{Type: t, Name: name})
}

// service adds the resources of a service of the mesh for those who reach it.
func (h *holds) service(mesh topology.Mesh, s topology.Service) {
	for _, p := range s.Ports {
		for _, name := range outboundClusters(mesh, s, p.Number) {
			h.add(convergence.CDS, name)
			if !s.Headless {
				h.add(convergence.EDS, name)
			}
		}
		if p.TCP {
			h.add(convergence.LDS, tcpListener(s, p))
			continue
		}
		h.routes[p.Number] = true
	}
}

// other adds the resources of a service that is not part of the mesh.
func (h *holds) other(b otherService) {
	for _, p := range b.ports {
		name := outboundCluster(p.number, b.host)
		h.add(convergence.CDS, name)
		h.add(convergence.EDS, name)
		if p.kind == routed {
			h.routes[p.number] = true
			continue
		}
		h.add(convergence.LDS, fmt.Sprintf("%s_%d", b.address, p.number))
		if p.kind == sniffed {
			h.add(convergence.RDS, fmt.Sprintf("%s:%d", b.host, p.number))
		}
	}
}

// clusters adds the clusters of a service that is not part of the mesh, with their endpoints.
func (h *holds) clusters(b otherService) {
	for _, p := range b.ports {
		h.add(convergence.CDS, outboundCluster(p.number, b.host))
		h.add(convergence.EDS, outboundCluster(p.number, b.host))
	}
}

// sorted adds the listeners and routes that services share, and returns all keys.
func (h *holds) sorted() []convergence.Key {
	for port := range h.routes {
		h.add(convergence.LDS, anyAddress(port))
		h.add(convergence.RDS, fmt.Sprint(port))
	}
	slices.SortFunc(h.keys, func(a, b convergence.Key) int {
		return cmp.Or(a.Type.Compare(b.Type), strings.Compare(a.Name, b.Name))
	})
	return h.keys
}
