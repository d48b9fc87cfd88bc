package istio

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/topology"
)

// Holds are all resources that a sidecar of the service with this index holds
// when converged, sorted, with their predicted sizes: those that are wanted,
// those that istiod sends to every proxy, and, unless the scope is declared,
// what the services beside the mesh become.
func (c *ControlPlane) Holds(mesh topology.Mesh, knobs controlplane.Knobs, service int) []controlplane.Holding {
	h := holds{sizes: newSizes(mesh, knobs, service), routes: map[int]float64{}, upstream: c.opts.UpstreamEnvoy}
	h.add(convergence.CDS, "BlackHoleCluster", 44)
	h.add(convergence.CDS, "InboundPassthroughCluster", 264)
	h.add(convergence.CDS, "PassthroughCluster", 453)
	h.add(convergence.LDS, virtualOutbound, 537)
	h.add(convergence.LDS, virtualInbound, h.sizes.inboundListener())
	for _, p := range mesh.Services[service].Ports {
		h.add(convergence.CDS, inboundCluster(p), h.sizes.inboundCluster())
	}
	for _, s := range scope(mesh, knobs, service) {
		h.service(s)
	}
	if knobs.Scope != "declared" {
		for _, b := range c.beside {
			h.beside(b)
		}
	}
	return h.sorted()
}

// holds gathers what a sidecar holds.
type holds struct {
	sizes  sizes
	all    []controlplane.Holding
	routes map[int]float64 // bytes of the virtual hosts of each HTTP port

	upstream bool // see Options.UpstreamEnvoy
}

func (h *holds) add(t convergence.Type, name string, bytes float64) {
	if h.upstream {
		bytes -= h.sizes.ownFilters(t, name)
	}
	h.all = append(h.all, controlplane.Holding{Key: convergence.Key{Type: t, Name: name}, Bytes: bytes})
}

// service adds what a service of the mesh becomes for those who reach it.
func (h *holds) service(s topology.Service) {
	for _, p := range s.Ports {
		name := outboundCluster(p.Number, hostname(s))
		h.add(convergence.CDS, name, cluster(letters(s), p.Number)+accounts(letters(s)))
		h.add(convergence.EDS, name, endpoints(name, s))
		h.routes[p.Number] += h.sizes.virtualHost(s)
	}
}

// beside adds what a service becomes that is no part of the mesh. Its endpoints,
// if it has any that istiod knows, are not predicted.
func (h *holds) beside(b beside) {
	for _, p := range b.ports {
		name, bytes := outboundCluster(p.number, b.host), cluster(besideLetters(b.host), p.number)
		if p.http2 {
			bytes += http2
		}
		h.add(convergence.CDS, name, bytes)
		h.add(convergence.EDS, name, noEndpoints(name))
		if p.kind == routed {
			h.routes[p.number] += besideHost(b)
			continue
		}
		h.add(convergence.LDS, fmt.Sprintf("%s_%d", b.address, p.number), opaqueListener(b, p.number))
		if p.kind == sniffed {
			h.add(convergence.RDS, fmt.Sprintf("%s:%d", b.host, p.number), route+besideHost(b))
		}
	}
}

// sorted adds the listeners and routes that services share, and returns all.
func (h *holds) sorted() []controlplane.Holding {
	for port, hosts := range h.routes {
		h.add(convergence.LDS, anyAddress(port), h.sizes.outboundListener(port))
		h.add(convergence.RDS, fmt.Sprint(port), route+hosts)
	}
	slices.SortFunc(h.all, func(a, b controlplane.Holding) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), strings.Compare(a.Name, b.Name))
	})
	return h.all
}
