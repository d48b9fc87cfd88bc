package ztunnel

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

// Endpoints returns a key that names no resource of a ztunnel: it represents the
// workloads of a service port that the ztunnel holds, as endpoints with address, target
// port and health. A ztunnel reports it as long as it holds the service.
func Endpoints(namespace, host string, port int) convergence.Key {
	return endpointsOf(namespace+"/"+host, port)
}

func endpointsOf(service string, port int) convergence.Key {
	return convergence.Key{Type: Address, Name: fmt.Sprintf("endpoints of %s:%d", service, port)}
}

// Serviceless is the key of the workloads without a service that a ztunnel holds, as
// endpoints with port 0.
var Serviceless = convergence.Key{Type: Address, Name: "workloads without a service"}

// noService is the service of Serviceless.
const noService = ""

// held is the part of a ztunnel's resources that is needed here.
type held struct {
	node      string
	workloads map[string]*workload
	services  map[string]*service
	members   map[string]map[string]*workload // by service, then by the workload's name
	local     map[string]map[string]bool      // workloads of the node by their identity
}

func newHeld(node string) *held {
	return &held{
		node: node, workloads: map[string]*workload{}, services: map[string]*service{},
		members: map[string]map[string]*workload{}, local: map[string]map[string]bool{},
	}
}

// take applies an update, and adds to it the endpoints that changed with it. It returns
// the change of the node's own pods; nil for none. As in ztunnel, removals are applied
// last.
func (h *held) take(u *convergence.Update) *proxy.NodeUpdate {
	touched := map[string][]port{} // services, with the ports that they had
	touch := func(name string) {
		if _, ok := touched[name]; !ok {
			touched[name] = h.portsOf(name)
		}
	}
	var node proxy.NodeUpdate
	for _, r := range u.Set {
		if r.Content == nil {
			continue
		}
		switch is := r.Content.Detail.(type) {
		case *service:
			touch(r.Name)
			h.services[r.Name] = is
		case *workload:
			h.remove(r.Name, touch)
			h.add(r.Name, is, touch)
			if h.isLocal(is) {
				node.Held = append(node.Held, is.local())
			}
		}
	}
	for _, key := range u.Removed {
		if key.Type != Address {
			continue
		}
		if h.services[key.Name] != nil {
			touch(key.Name)
			delete(h.services, key.Name)
		}
		if w := h.remove(key.Name, touch); w != nil && h.isLocal(w) {
			node.Removed = append(node.Removed, w.local().ID)
			if id := w.identity(); len(h.local[id]) == 0 {
				node.Dropped = append(node.Dropped, id)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(touched)) {
		h.report(name, touched[name], u)
	}
	if len(node.Held)+len(node.Removed)+len(node.Dropped) == 0 {
		return nil
	}
	return &node
}

// isLocal reports whether a workload is a pod of the ztunnel's node.
func (h *held) isLocal(w *workload) bool { return w.pod && w.node == h.node }

// serviceNames returns the services of a workload.
func (w *workload) serviceNames() []string {
	if len(w.services) == 0 {
		return []string{noService}
	}
	return slices.Collect(maps.Keys(w.services))
}

func (h *held) add(name string, w *workload, touch func(string)) {
	h.workloads[name] = w
	for _, s := range w.serviceNames() {
		touch(s)
		if h.members[s] == nil {
			h.members[s] = map[string]*workload{}
		}
		h.members[s][name] = w
	}
	if h.isLocal(w) {
		id := w.identity()
		if h.local[id] == nil {
			h.local[id] = map[string]bool{}
		}
		h.local[id][name] = true
	}
}

// remove removes a workload and returns it; nil if there is none of that name.
func (h *held) remove(name string, touch func(string)) *workload {
	w := h.workloads[name]
	if w == nil {
		return nil
	}
	delete(h.workloads, name)
	for _, s := range w.serviceNames() {
		touch(s)
		if delete(h.members[s], name); len(h.members[s]) == 0 {
			delete(h.members, s)
		}
	}
	if h.isLocal(w) {
		id := w.identity()
		if delete(h.local[id], name); len(h.local[id]) == 0 {
			delete(h.local, id)
		}
	}
	return w
}

// portsOf returns the ports of a service that is held; nil if it is not.
func (h *held) portsOf(name string) []port {
	if name == noService {
		return []port{{}}
	}
	if s := h.services[name]; s != nil {
		return s.ports
	}
	return nil
}

// report adds the endpoints of a service, which had these ports before.
func (h *held) report(name string, had []port, u *convergence.Update) {
	has := h.portsOf(name)
	for _, p := range has {
		key, endpoints := Serviceless, h.endpoints(name, p)
		if name != noService {
			key = endpointsOf(name, int(p.service))
		}
		u.Set = append(u.Set, convergence.Resource{Key: key, Content: convergence.ContentOf(endpoints)})
	}
	for _, p := range had {
		if !slices.ContainsFunc(has, func(o port) bool { return o.service == p.service }) {
			u.Removed = append(u.Removed, endpointsOf(name, int(p.service)))
		}
	}
}

// endpoints returns the workloads of a service port as endpoints.
func (h *held) endpoints(name string, p port) convergence.Endpoints {
	endpoints := convergence.Endpoints{}
	for _, w := range h.members[name] {
		targets := []port{{}}
		if name != noService {
			targets = w.services[name]
		}
		for _, target := range targets {
			if target.service != p.service {
				continue
			}
			for _, address := range w.addresses {
				endpoints[netip.AddrPortFrom(address, target.target)] = w.health
			}
		}
	}
	return endpoints
}
