package fleet

import (
	"iter"
	"net/netip"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

// nodes are where the pods of a mesh, or of some of its namespaces, are served by a proxy of their node. Such a proxy is
// the proxy of a pod of its own (pod.ofNode), which is no pod of the mesh.
type nodes struct {
	fleet     *Fleet
	wanted    int                              // proxies, one for each node
	waypoints map[string]controlplane.Waypoint // by name
	served    map[string]bool                  // namespaces whose pods they serve; nil = all
	mixed     bool                             // the pods of some namespaces have sidecars
	latencies *Latencies                       // of the starts of the proxies, which are in no figure

	// guarded by Pods.mu
	held         map[string]heldPod              // pods that the proxy of their node holds, by id
	certificates map[string]map[string]time.Time // when each proxy, by id, had that of an identity
}

// heldPod is a pod that the proxy of its node holds.
type heldPod struct {
	proxy    string // id
	identity string // "" = it needs no certificate
	at       time.Time
}

func newNodes(f *Fleet, o Options) *nodes {
	n := &nodes{
		fleet: f, wanted: o.Nodes, waypoints: map[string]controlplane.Waypoint{}, latencies: NewLatencies(),
		held: map[string]heldPod{}, certificates: map[string]map[string]time.Time{},
	}
	if n.mixed = o.Adapter.Mixed(o.Mesh); n.mixed {
		n.served = map[string]bool{}
		for _, namespace := range o.Mesh.Namespaces {
			n.served[namespace] = o.Adapter.ServedByNode(o.Mesh, namespace)
		}
	}
	if waypoints := o.Adapter.Waypoints(); waypoints != nil {
		for _, w := range waypoints.List(o.Mesh) {
			n.waypoints[w.Name] = w
		}
	}
	return n
}

// proxies is how many there should be.
func (n *nodes) proxies() int { return n.wanted + len(n.waypoints) }

// isWaypoint reports whether a service, "namespace/name", is that of a waypoint. nil has none.
func (n *nodes) isWaypoint(service string) bool {
	if n == nil {
		return false
	}
	namespace, name, _ := strings.Cut(service, "/")
	w, ok := n.waypoints[name]
	return ok && w.Namespace == namespace
}

// serves reports whether a pod is that of a node's proxy. nil has none.
func (n *nodes) serves(p *pod) bool { return n != nil && p.service == "" }

// servesAll reports whether the pods of the mesh that are in a namespace have no proxy of their own. nil
// serves none.
func (n *nodes) servesAll(namespace string) bool {
	return n != nil && (n.served == nil || n.served[namespace])
}

// workloads are the pods of the mesh that are not gone. The caller holds Pods.mu.
func (s *Pods) workloads() iter.Seq[*pod] {
	return func(yield func(*pod) bool) {
		for p := range s.there {
			if !p.extra() && !yield(p) {
				return
			}
		}
	}
}

// updated takes what changed of the pods of a proxy's node.
func (n *nodes) updated(id string, u *proxy.NodeUpdate, at time.Time) {
	if n == nil || u == nil {
		return
	}
	var done []string
	n.fleet.Pods.mu.Lock()
	for _, p := range u.Held {
		if was := n.held[p.ID]; was.proxy != id || was.identity != p.Identity {
			n.held[p.ID] = heldPod{id, p.Identity, at}
		}
		if n.settle(p.ID) {
			done = append(done, p.ID)
		}
	}
	for _, gone := range u.Removed {
		if n.held[gone].proxy == id {
			delete(n.held, gone)
		}
	}
	for _, identity := range u.Dropped {
		delete(n.certificates[id], identity)
	}
	n.fleet.Pods.mu.Unlock()
	for _, pod := range done {
		n.fleet.Readiness.check(pod)
	}
}

// certified takes a certificate that a proxy has for an identity of its node.
func (n *nodes) certified(id string, e proxy.Certificate, storm bool) {
	f := n.fleet
	var done []string
	f.Pods.mu.Lock()
	csr := &f.Pods.csr
	in, bursting := f.Pods.background.Latencies, f.bursting.Load()
	if bursting {
		in = f.Latencies
	}
	if n.mixed {
		in = n.latencies // the figures are of sidecars
	}
	first(&csr.first, e.Sent)
	of := n.certificates[id]
	if of == nil {
		of = map[string]time.Time{}
		n.certificates[id] = of
	}
	_, renewed := of[e.Identity]
	of[e.Identity] = e.Verified
	if !renewed && bursting {
		csr.issued++
		if e.Verified.After(csr.last) {
			csr.last = e.Verified
		}
	}
	for pod, h := range n.held {
		if h.proxy == id && h.identity == e.Identity && n.settle(pod) {
			done = append(done, pod)
		}
	}
	f.Pods.mu.Unlock()
	observer{f}.certificateTook(&pod{latencies: in}, e, renewed && !storm, !renewed)
	for _, pod := range done {
		f.Readiness.check(pod)
	}
}

// settle notes that a pod is served once its node's proxy holds it and the certificate of
// its identity, and reports whether it is. The caller holds Pods.mu.
func (n *nodes) settle(id string) bool {
	p, h := n.fleet.Pods.byID[id], n.held[id]
	if p == nil || !p.served || p.gone || p.times.IP.IsZero() || h.proxy == "" {
		return false
	}
	certified := h.at
	if h.identity != "" {
		var has bool
		if certified, has = n.certificates[h.proxy][h.identity]; !has {
			return false
		}
	}
	first(&p.times.Certified, certified)
	first(&p.times.Usable, h.at)
	if first(&p.times.Complete, h.at) {
		n.fleet.Pods.progressed = time.Now()
	}
	return true
}

// ended forgets a proxy whose pod is gone. The caller holds Pods.mu.
func (n *nodes) ended(id string) {
	delete(n.certificates, id)
	for pod, h := range n.held {
		if h.proxy == id {
			delete(n.held, pod)
		}
	}
}

// count counts the pods as Fleet.Count does: what a proxy is counts for each pod of its
// node. The caller holds Pods.mu.
func (n *nodes) count(c *Counts) {
	stands := map[string]convergence.Stand{}
	for p := range n.fleet.Pods.there {
		if p.extra() && !p.times.Connected.IsZero() {
			c.Simulated++
		}
		if p.ofNode && !p.times.Connected.IsZero() {
			c.Nodes++
			stands[p.node] = p.revision.tracker.StandOf(p.id)
		}
	}
	c.Complete, c.Converged = 0, 0
	for p := range n.fleet.Pods.workloads() {
		c.Created++
		if !p.times.Ready.IsZero() {
			c.Ready++
		}
		if !p.times.Complete.IsZero() {
			c.Complete++
		}
		stand, connected := stands[p.node]
		if !p.served {
			if connected = !p.times.Connected.IsZero(); connected {
				c.Simulated++
				stand = p.revision.tracker.StandOf(p.id)
			} else {
				stand = convergence.Stand{}
			}
		}
		if connected {
			c.Connected++
		}
		if stand.Converged && p.ready {
			c.Converged++
		}
	}
}

// Proxies are the proxies of nodes that are there, and how many of them are ready; nothing
// where each pod has its own.
func (f *Fleet) Proxies() (there, ready int) {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	for p := range f.Pods.there {
		if p.ofNode {
			there++
			if p.ready {
				ready++
			}
		}
	}
	return there, ready
}

// Waypoints are how many waypoints are ready, and how many there should be.
func (f *Fleet) Waypoints() (ready, wanted int) {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	if f.nodes == nil {
		return 0, 0
	}
	for p := range f.Pods.there {
		if p.ofWaypoint && p.ready {
			ready++
		}
	}
	return ready, len(f.nodes.waypoints)
}

// WaypointsOf are the ids of the pods of the waypoints of these services, which are indices of
// the mesh.
func (f *Fleet) WaypointsOf(services []int) []string {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	var ids []string
	for p := range f.Pods.there {
		if !p.ofWaypoint || p.worker == nil {
			continue
		}
		if slices.ContainsFunc(f.nodes.waypoints[p.service].Services, func(i int) bool { return slices.Contains(services, i) }) {
			ids = append(ids, p.id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Sidecars are the ids of the pods of these services that have a simulated sidecar each, where others have
// the proxy of their node.
func (f *Fleet) Sidecars(services []string) []string {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	var ids []string
	for p := range f.Pods.workloads() {
		if p.worker != nil && slices.Contains(services, p.service) {
			ids = append(ids, p.id)
		}
	}
	slices.Sort(ids)
	return ids
}

// OnListed takes the endpoints of one service as the API server lists them now, where OnEndpoints
// takes those of pods: waypoints are sent these, and sidecars in a mesh that has both.
func (f *Fleet) OnListed(ev observe.EndpointsEvent) {
	f.Revisions.mu.Lock()
	for port, listed := range ev.Ports {
		name := controlplane.Listed(ev.Service + ":" + port)
		l := listing{listed, ev.Seen, true}
		f.Revisions.listed[name] = l
		for _, r := range f.Revisions.list() {
			r.tracker.SetEndpoints(name, r.endpoints(l), ev.Seen)
		}
	}
	f.Revisions.mu.Unlock()
	f.notify()
}

// IDs are the ids of the pods that are there, of the mesh and of its nodes' proxies.
func (f *Fleet) IDs() []string {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	var ids []string
	for p := range f.Pods.there {
		ids = append(ids, p.id)
	}
	return ids
}

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

// NewPodEndpoints begins without a pod. The pods of waypoints are those of services, too.
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
