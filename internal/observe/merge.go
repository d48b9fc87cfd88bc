package observe

import (
	"net/netip"
	"slices"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"
)

// merger merges the EndpointSlices of each service.
type merger struct {
	services map[string]*service // by "namespace/name"
	changed  []string            // services to report, without duplicates
}

// service is the known state of one service's endpoints.
type service struct {
	slices map[cache.ObjectName]map[string][]Endpoint // by slice, then by port
	ports  map[string]bool                            // all port names ever seen
}

func newMerger() *merger { return &merger{services: make(map[string]*service)} }

// set processes a change of a slice. A slice that belongs to no service is ignored.
func (m *merger) set(kind Kind, slice *discoveryv1.EndpointSlice) {
	owner := slice.Labels[discoveryv1.LabelServiceName]
	if owner == "" {
		return
	}
	key := slice.Namespace + "/" + owner
	s := m.services[key]
	if s == nil {
		s = &service{slices: make(map[cache.ObjectName]map[string][]Endpoint), ports: make(map[string]bool)}
		m.services[key] = s
	}
	if kind == Deleted {
		delete(s.slices, name(slice))
	} else {
		endpoints := endpointsOf(slice)
		s.slices[name(slice)] = endpoints
		for port := range endpoints {
			s.ports[port] = true
		}
	}
	if !slices.Contains(m.changed, key) {
		m.changed = append(m.changed, key)
	}
}

// take returns an event for each service that changed since the last call.
func (m *merger) take(seen time.Time) []EndpointsEvent {
	events := make([]EndpointsEvent, 0, len(m.changed))
	for _, key := range m.changed {
		events = append(events, EndpointsEvent{Seen: seen, Service: key, Ports: m.services[key].merge()})
	}
	m.changed = m.changed[:0]
	return events
}

// merge returns the endpoints of all slices by port. An endpoint may be in two slices
// while it moves from one to the other; then the entry that takes more traffic counts.
func (s *service) merge() map[string][]Endpoint {
	ports := make(map[string][]Endpoint, len(s.ports))
	for port := range s.ports {
		best := make(map[netip.AddrPort]Endpoint)
		for _, slice := range s.slices {
			for _, e := range slice[port] {
				if known, twice := best[e.Addr]; !twice || rank(e) > rank(known) {
					best[e.Addr] = e
				}
			}
		}
		list := make([]Endpoint, 0, len(best))
		for _, e := range best {
			list = append(list, e)
		}
		slices.SortFunc(list, func(a, b Endpoint) int { return a.Addr.Compare(b.Addr) })
		ports[port] = list
	}
	return ports
}

// rank orders endpoints by how much traffic they take.
func rank(e Endpoint) int {
	r := 0
	for i, holds := range []bool{!e.Terminating, e.Serving, e.Ready} {
		if holds {
			r += 1 << i
		}
	}
	return r
}

// endpointsOf returns a slice's endpoints by port name. Addresses that are no IP (slices
// of type FQDN) and ports without a number, which mean all ports, are left out: such
// endpoints cannot be distinguished by address and port.
func endpointsOf(slice *discoveryv1.EndpointSlice) map[string][]Endpoint {
	ports := make(map[string][]Endpoint, len(slice.Ports))
	for _, p := range slice.Ports {
		if p.Port == nil {
			continue
		}
		portName := value(p.Name, "")
		list := ports[portName] // a name stands twice if protocols differ
		for _, e := range slice.Endpoints {
			for _, text := range e.Addresses {
				addr, err := netip.ParseAddr(text)
				if err != nil {
					continue
				}
				list = append(list, Endpoint{
					Addr:        netip.AddrPortFrom(addr, uint16(*p.Port)),
					Ready:       value(e.Conditions.Ready, true),
					Serving:     value(e.Conditions.Serving, true),
					Terminating: value(e.Conditions.Terminating, false),
				})
			}
		}
		ports[portName] = list
	}
	return ports
}

// value returns what p points to, or absent if p is nil.
func value[T any](p *T, absent T) T {
	if p == nil {
		return absent
	}
	return *p
}
