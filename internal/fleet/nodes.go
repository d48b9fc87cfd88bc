package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/proxy"
)

// nodes holds the proxies of nodes, the waypoints, and the pods that proxies of nodes serve. It is empty where each
// pod has a sidecar.
type nodes struct {
	// fixed after newNodes
	fleet  *Fleet
	wanted int                              // proxies, one for each node
	listed map[string]controlplane.Waypoint // waypoints that there should be, by label
	ways   map[string]bool                  // Services of these waypoints, as "namespace/name"
	served map[string]bool                  // services whose pods they serve, by name
	mixed  bool                             // some pods have sidecars
	starts *Latencies                       // of the proxies, which are in no figure

	// guarded by Pods.mu: those that are not gone, by id
	proxies   map[string]*nodeProxy
	waypoints map[string]*waypoint
	pods      map[string]*servedPod

	// guarded by Pods.mu
	held map[string]heldPod // pods that the proxy of their node holds, by id; they may not be seen yet
}

// heldPod is a pod that the proxy of its node holds.
type heldPod struct {
	proxy    *nodeProxy
	identity string // "" = it needs no certificate
	at       time.Time
}

func newNodes(f *Fleet, o Options) *nodes {
	n := &nodes{
		fleet: f, wanted: o.Nodes, listed: map[string]controlplane.Waypoint{}, ways: map[string]bool{}, served: map[string]bool{}, starts: NewLatencies(),
		proxies: map[string]*nodeProxy{}, waypoints: map[string]*waypoint{}, pods: map[string]*servedPod{}, held: map[string]heldPod{},
	}
	if n.wanted == 0 {
		return n
	}
	n.mixed = o.Adapter.Mixed(o.Mesh)
	for _, s := range o.Mesh.Services {
		n.served[s.Name] = o.Adapter.ServedByNode(o.Mesh, s)
	}
	if waypoints := o.Adapter.Waypoints(); waypoints != nil {
		for _, w := range waypoints.List(o.Mesh) {
			n.listed[w.Label], n.ways[w.Namespace+"/"+w.Name] = w, true
		}
	}
	return n
}

// expected returns how many of these proxies a converged mesh has.
func (n *nodes) expected() int {
	expected := n.wanted
	for _, w := range n.listed {
		expected += w.Pods
	}
	return expected
}

// isWaypoint reports whether a service, "namespace/name", is that of a waypoint.
func (n *nodes) isWaypoint(service string) bool { return n.ways[service] }

// addProxy adds a new pod that is the proxy of a node or a waypoint, and reports whether it is one.
// The caller holds Pods.mu.
func (n *nodes) addProxy(p *pod) bool {
	switch {
	case n.wanted > 0 && p.service == "":
		made := &nodeProxy{nodes: n, certificates: map[string]time.Time{}}
		p.simulate(made, &made.simulated, false)
		n.proxies[p.id] = made
	case n.listed[p.service].Pods > 0 && n.listed[p.service].Namespace == p.namespace:
		made := &waypoint{nodes: n, of: n.listed[p.service]}
		p.simulate(made, &made.simulated, n.fleet.Driver.Proxy.Certificates != nil)
		n.waypoints[p.id] = made
	default:
		return false
	}
	p.latencies, p.background = n.starts, n.fleet.Pods.background.number
	n.fleet.Pods.background.proxies++
	return true
}

// scopes adds the scopes of the proxies to a revision of the control plane, whose version adapter is.
func (n *nodes) scopes(r *revision, adapter *controlplane.ControlPlane) {
	if n.wanted > 0 {
		r.scopes[""] = r.tracker.Scope(adapter.Nodes.Wants(n.fleet.Mesh, n.fleet.Knobs))
	}
	for label, w := range n.listed {
		r.scopes[label] = r.tracker.Scope(adapter.Nodes.Waypoints.Wants(n.fleet.Mesh, w))
	}
}

// on returns the proxy of a node; nil if there is none. While it is being replaced, this is the older one. The caller holds Pods.mu.
func (n *nodes) on(node string) (oldest *nodeProxy) {
	for _, p := range n.proxies {
		if p.node == node && (oldest == nil || p.order < oldest.order) {
			oldest = p
		}
	}
	return oldest
}

// shared iterates over the proxies of nodes and the waypoints, by id, in no order. The caller holds Pods.mu meanwhile.
func (n *nodes) shared(yield func(string, *simulated) bool) {
	for id, p := range n.proxies {
		if !yield(id, &p.simulated) {
			return
		}
	}
	for id, p := range n.waypoints {
		if !yield(id, &p.simulated) {
			return
		}
	}
}

// lacks states how many proxies convergence waits for: those that are to be replaced, and those in place of others that lack the certificate
// of a pod; "" = none. The caller holds Pods.mu.
func (n *nodes) lacks() string {
	late := map[*simulated]bool{}
	for _, h := range n.held {
		if _, has := h.proxy.certificates[h.identity]; h.proxy.anew && h.identity != "" && !has {
			late[&h.proxy.simulated] = true
		}
	}
	for _, p := range n.shared {
		if !n.fleet.Pods.renewedSince(p.pod) {
			late[p] = true
		}
	}
	if len(late) == 0 {
		return ""
	}
	return fmt.Sprintf("of the proxies of nodes and the waypoints, %d were not replaced yet or lack a certificate", len(late))
}

// settle checks whether a pod is served now. The caller holds Pods.mu.
func (n *nodes) settle(id string) {
	if p := n.pods[id]; p != nil {
		p.settle()
	}
}

// nodeProxy is the pod of a node's proxy.
type nodeProxy struct {
	sharedProxy
	nodes *nodes

	// guarded by Pods.mu
	certificates map[string]time.Time // since when it has that of an identity
}

// answered records changes of the pods of the node, too.
func (p *nodeProxy) answered(e proxy.Update) {
	p.sharedProxy.answered(e)
	if e.Node != nil {
		p.update(func() { p.hold(e.Node, e.ReceivedAt) })
	}
}

// hold records changes of the pods of the node. The caller holds Pods.mu.
func (p *nodeProxy) hold(u *proxy.NodeUpdate, at time.Time) {
	held := p.nodes.held
	for _, pod := range u.Held {
		was := held[pod.ID]
		if was.proxy != nil && was.proxy.order > p.order {
			continue // it replaces this one
		}
		if was.proxy != p || was.identity != pod.Identity {
			held[pod.ID] = heldPod{p, pod.Identity, at}
		}
		p.nodes.settle(pod.ID)
	}
	for _, gone := range u.Removed {
		if held[gone].proxy == p {
			delete(held, gone)
		}
	}
	for _, identity := range u.Dropped {
		delete(p.certificates, identity)
	}
}

// certificate takes the end of a request for the certificate of an identity of the node.
func (p *nodeProxy) certificate(e proxy.Certificate, storm bool) {
	if e.Identity == "" || e.Err != nil {
		p.simulated.certificate(e, storm)
		return
	}
	f := p.fleet
	var in *Latencies
	var renewed bool
	p.update(func() {
		csr := &f.Pods.csr
		bursting := f.bursting.Load()
		switch {
		case p.nodes.mixed:
			in = p.latencies // the figures are of sidecars
		case bursting:
			in = f.Latencies
		default:
			in = f.Pods.background.Latencies
		}
		setOnce(&csr.first, e.Sent)
		_, renewed = p.certificates[e.Identity]
		p.certificates[e.Identity] = e.Verified
		if !renewed && bursting {
			csr.issue(e.Verified)
		}
		for pod, h := range p.nodes.held {
			if h.proxy == p && h.identity == e.Identity {
				p.nodes.settle(pod)
			}
		}
	})
	f.certificateTook(in, e, renewed && !storm, !renewed)
}

func (p *nodeProxy) renewable() []string {
	var all []string
	for identity := range p.certificates {
		all = append(all, certificateOf(p.id, identity))
	}
	return all
}

func (p *nodeProxy) count(c *Counts) {
	if !p.times.Connected.IsZero() {
		c.Simulated++
		c.Nodes++
	}
}

func (p *nodeProxy) leave() {
	delete(p.nodes.proxies, p.id)
	clear(p.certificates)
	for pod, h := range p.nodes.held {
		if h.proxy == p {
			delete(p.nodes.held, pod)
		}
	}
	p.sharedProxy.leave()
}

// waypoint is a pod of a waypoint.
type waypoint struct {
	sharedProxy
	nodes *nodes
	of    controlplane.Waypoint
}

func (p *waypoint) count(c *Counts) {
	if !p.times.Connected.IsZero() {
		c.Simulated++
	}
}

func (p *waypoint) leave() {
	delete(p.nodes.waypoints, p.id)
	p.sharedProxy.leave()
}

// servedPod is a pod of the mesh without a proxy of its own: that of its node serves it.
type servedPod struct {
	*pod
	nodes *nodes
}

// newServedPod makes it of a pod of the mesh. The caller holds Pods.mu.
func newServedPod(p *pod) *servedPod {
	made := &servedPod{p, p.fleet.nodes}
	p.member, made.nodes.pods[p.id] = made, made
	return made
}

func (p *servedPod) start(context.Context, *corev1.Pod) {
	p.stop = func() {} // nothing runs for it alone
	p.settle()
}

// settle records that the pod is served, once it has an address, and its node's proxy holds it and the certificate of
// its identity. The caller holds Pods.mu.
func (p *servedPod) settle() {
	h, held := p.nodes.held[p.id]
	if p.times.IP.IsZero() || !held {
		return
	}
	certified := h.at
	if h.identity != "" {
		var has bool
		if certified, has = h.proxy.certificates[h.identity]; !has {
			return
		}
	}
	setOnce(&p.times.Certified, certified)
	setOnce(&p.times.Complete, h.at)
	p.initialize(h.at)
}

// count adds the pod as connected and converged as its node's proxy is.
func (p *servedPod) count(c *Counts) {
	if !p.times.Complete.IsZero() {
		c.Complete++
	}
	of := p.nodes.on(p.node)
	if of == nil || of.times.Connected.IsZero() {
		return
	}
	c.Connected++
	if p.ready && of.stand().Converged {
		c.Converged++
	}
}

func (p *servedPod) leave() { delete(p.nodes.pods, p.id) }

// RenewNodes makes convergence wait until the present proxy of every node was replaced.
func (f *Fleet) RenewNodes() { f.Pods.Renew("") }

// RenewWaypoints makes convergence wait until every present pod of a waypoint was replaced.
func (f *Fleet) RenewWaypoints() {
	for label := range f.nodes.listed {
		f.Pods.Renew(label)
	}
}

// Proxies counts the proxies of nodes that are there, and those of them that are ready.
func (f *Fleet) Proxies() (there, ready int) {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	for _, p := range f.nodes.proxies {
		if p.ready {
			ready++
		}
	}
	return len(f.nodes.proxies), ready
}

// Waypoints counts the pods of waypoints that are ready.
func (f *Fleet) Waypoints() (ready int) {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	for _, p := range f.nodes.waypoints {
		if p.ready {
			ready++
		}
	}
	return ready
}

// Surplus returns the number of proxies of nodes and pods of waypoints beyond those of a converged mesh.
func (f *Fleet) Surplus() int {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	return max(0, len(f.nodes.proxies)+len(f.nodes.waypoints)-f.nodes.expected())
}

// WaypointsOf returns the ids of the pods of the waypoints of a service, which is an index of the mesh.
func (f *Fleet) WaypointsOf(service int) []string {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	var ids []string
	for id, p := range f.nodes.waypoints {
		if p.worker != nil && slices.Contains(p.of.Services, service) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
