package fleet

import (
	"net/netip"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
)

// PodEndpoints derives the endpoints of services from the pods of a mesh, as a control plane
// that reads pods does: each with an address, whether ready or not, until it is deleted.
type PodEndpoints struct {
	ports map[string][]topology.Port // of services, by name
	of    map[string]map[string]endpoint
}

// endpoint is a pod as the endpoint of a service.
type endpoint struct {
	address            netip.Addr
	ready, terminating bool
}

// NewPodEndpoints returns a PodEndpoints without pods. A waypoint is a service, too.
func NewPodEndpoints(mesh topology.Mesh, waypoints []controlplane.Waypoint) *PodEndpoints {
	e := &PodEndpoints{ports: map[string][]topology.Port{}, of: map[string]map[string]endpoint{}}
	for _, s := range mesh.Services {
		e.ports[s.Name] = s.Ports
	}
	for _, w := range waypoints {
		e.ports[w.Name] = w.Ports
	}
	return e
}

// Take takes a change of a pod, and returns the endpoints of its service; false where they
// did not change.
func (e *PodEndpoints) Take(ev observe.PodEvent) (observe.EndpointsEvent, bool) {
	name, id := ev.Pod.Labels[kwok.ServiceLabel], ev.Pod.Namespace+"/"+ev.Pod.Name
	members := e.of[name]
	if members == nil {
		members = map[string]endpoint{}
		e.of[name] = members
	}
	was, had := members[id]
	if ev.Kind == observe.Deleted {
		delete(members, id)
		if !had {
			return observe.EndpointsEvent{}, false
		}
	} else {
		address, err := netip.ParseAddr(ev.Pod.Status.PodIP)
		is := endpoint{address, observe.Ready(ev.Pod), ev.Pod.DeletionTimestamp != nil}
		if err != nil || had && is == was {
			return observe.EndpointsEvent{}, false
		}
		members[id] = is
	}
	event := observe.EndpointsEvent{Seen: ev.Seen, Service: ev.Pod.Namespace + "/" + name, Ports: map[string][]observe.Endpoint{}}
	ports := e.ports[name]
	if name == "" {
		event.Service, ports = controlplane.Serviceless[:len(controlplane.Serviceless)-1], []topology.Port{{}}
	}
	for _, p := range ports {
		for _, m := range members {
			event.Ports[p.Name] = append(event.Ports[p.Name], observe.Endpoint{
				Addr: netip.AddrPortFrom(m.address, uint16(p.Target)), Ready: m.ready, Serving: m.ready, Terminating: m.terminating,
			})
		}
		if len(members) == 0 {
			event.Ports[p.Name] = nil
		}
	}
	return event, true
}
