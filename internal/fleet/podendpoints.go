package fleet

import (
	"net/netip"
	"slices"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
)

// PodEndpoints derives the endpoints of services from the pods of a mesh, as a control plane
// that reads pods does: each with an address, whether ready or not, until it is deleted.
type PodEndpoints struct {
	listings map[string][]topology.Listing // of pods, by the name of their service
	ports    map[string][]string           // names of the ports of each Service
	pods     map[string]endpoint           // by id
	of       map[string]map[string]bool    // ids of the pods of each Service
}

// endpoint is a pod as the endpoint of Services.
type endpoint struct {
	service            string // whose name is in its label
	address            netip.Addr
	ready, terminating bool
}

// NewPodEndpoints returns a PodEndpoints without pods. A waypoint is a service, too.
func NewPodEndpoints(mesh topology.Mesh, waypoints []controlplane.Waypoint) *PodEndpoints {
	e := &PodEndpoints{listings: map[string][]topology.Listing{}, ports: map[string][]string{}, pods: map[string]endpoint{}, of: map[string]map[string]bool{}}
	list := func(name string, l topology.Listing) {
		e.listings[name] = append(e.listings[name], l)
		service := listedBy(l)
		if !slices.Contains(e.ports[service], l.Port) {
			e.ports[service] = append(e.ports[service], l.Port)
		}
	}
	for _, s := range mesh.Services {
		for _, l := range s.Listings() {
			list(s.Name, l)
		}
	}
	for _, w := range waypoints {
		for _, p := range w.Ports {
			list(w.Label, topology.Listing{Namespace: w.Namespace, Service: w.Name, Port: p.Name, Target: p.Target})
		}
	}
	list("", topology.Listing{})
	return e
}

// listedBy returns the Service of a listing as an event names it. Pods without one have a listing without names.
func listedBy(l topology.Listing) string {
	if l == (topology.Listing{}) {
		return controlplane.Serviceless[:len(controlplane.Serviceless)-1]
	}
	return l.Namespace + "/" + l.Service
}

// Take takes a change of a pod, and returns the endpoints of the Services that list it; none where they
// did not change.
func (e *PodEndpoints) Take(ev observe.PodEvent) []observe.EndpointsEvent {
	id := ev.Pod.Namespace + "/" + ev.Pod.Name
	is, had := e.pods[id]
	if ev.Kind == observe.Deleted {
		if !had {
			return nil
		}
		delete(e.pods, id)
	} else {
		address, err := netip.ParseAddr(ev.Pod.Status.PodIP)
		was := is
		is = endpoint{ev.Pod.Labels[kwok.ServiceLabel], address, observe.Ready(ev.Pod), ev.Pod.DeletionTimestamp != nil}
		if err != nil || had && is == was {
			return nil
		}
		e.pods[id] = is
	}
	var events []observe.EndpointsEvent
	for _, l := range e.listings[is.service] {
		service := listedBy(l)
		if slices.ContainsFunc(events, func(ev observe.EndpointsEvent) bool { return ev.Service == service }) {
			continue
		}
		if e.of[service] == nil {
			e.of[service] = map[string]bool{}
		}
		if ev.Kind == observe.Deleted {
			delete(e.of[service], id)
		} else {
			e.of[service][id] = true
		}
		events = append(events, e.event(service, ev.Seen))
	}
	return events
}

// event returns the present endpoints of a Service.
func (e *PodEndpoints) event(service string, seen time.Time) observe.EndpointsEvent {
	event := observe.EndpointsEvent{Seen: seen, Service: service, Ports: map[string][]observe.Endpoint{}}
	for _, port := range e.ports[service] {
		event.Ports[port] = nil
	}
	for id := range e.of[service] {
		pod := e.pods[id]
		for _, l := range e.listings[pod.service] {
			if listedBy(l) == service {
				event.Ports[l.Port] = append(event.Ports[l.Port], observe.Endpoint{
					Addr: netip.AddrPortFrom(pod.address, uint16(l.Target)), Ready: pod.ready, Serving: pod.ready, Terminating: pod.terminating,
				})
			}
		}
	}
	return event
}
