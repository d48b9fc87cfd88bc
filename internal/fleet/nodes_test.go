package fleet

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/scenario"
)

// aPod returns a pod of a service, "" for none, as it is seen.
func aPod(name, service, ip string, ready bool) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Status: corev1.PodStatus{PodIP: ip}}
	if service != "" {
		pod.Labels = map[string]string{kwok.ServiceLabel: service}
	}
	if ready {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	return pod
}

func TestPodEndpoints(t *testing.T) {
	g := NewWithT(t)
	e := NewPodEndpoints(topology.Mesh{Services: []topology.Service{{Name: "s", Namespace: "ns", Ports: []topology.Port{{Name: "http", Number: 80, Target: 8080}}}}}, nil)
	at := netip.MustParseAddrPort("10.0.0.1:8080")
	seen := time.Now()
	take := func(kind observe.Kind, pod *corev1.Pod) (observe.EndpointsEvent, bool) {
		all := e.Take(observe.PodEvent{Seen: seen, Kind: kind, Pod: pod})
		if len(all) == 0 {
			return observe.EndpointsEvent{}, false
		}
		g.Expect(all).To(HaveLen(1))
		return all[0], true
	}
	_, ok := take(observe.Added, aPod("a", "s", "", false))
	g.Expect(ok).To(BeFalse(), "without an address")
	ev, ok := take(observe.Modified, aPod("a", "s", "10.0.0.1", false))
	g.Expect(ok).To(BeTrue())
	g.Expect(ev).To(Equal(observe.EndpointsEvent{Seen: seen, Service: "ns/s", Ports: map[string][]observe.Endpoint{"http": {{Addr: at}}}}))
	_, ok = take(observe.Modified, aPod("a", "s", "10.0.0.1", false))
	g.Expect(ok).To(BeFalse(), "nothing changed")
	ev, _ = take(observe.Modified, aPod("a", "s", "10.0.0.1", true))
	g.Expect(ev.Ports["http"]).To(Equal([]observe.Endpoint{{Addr: at, Ready: true, Serving: true}}))
	going := aPod("a", "s", "10.0.0.1", true)
	going.DeletionTimestamp = &metav1.Time{Time: seen}
	ev, _ = take(observe.Modified, going)
	g.Expect(ev.Ports["http"]).To(Equal([]observe.Endpoint{{Addr: at, Ready: true, Serving: true, Terminating: true}}))
	ev, ok = take(observe.Deleted, going)
	g.Expect(ok).To(BeTrue())
	g.Expect(ev.Ports).To(HaveKeyWithValue("http", BeEmpty()))

	ev, _ = take(observe.Added, aPod("z", "", "10.0.0.9", true))
	for port, endpoints := range ev.Ports {
		g.Expect(ev.Service + ":" + port).To(Equal(controlplane.Serviceless))
		g.Expect(endpoints[0].Addr).To(Equal(netip.MustParseAddrPort("10.0.0.9:0")))
	}
}

// A pod of a captured mesh is listed by several Services, each of which lists pods of several workloads.
func TestPodEndpointsOfSeveralServices(t *testing.T) {
	g := NewWithT(t)
	list := func(service, port string, target int) topology.Listing {
		return topology.Listing{Namespace: "ns", Service: service, Port: port, Target: target}
	}
	e := NewPodEndpoints(topology.Mesh{Services: []topology.Service{
		{Name: "cart", Namespace: "ns", Listed: []topology.Listing{list("cart", "http", 8080), list("cart", "admin", 9090), list("all", "http", 8080)}},
		{Name: "front", Namespace: "ns", Listed: []topology.Listing{list("all", "http", 7070)}},
		{Name: "job", Namespace: "ns"},
	}}, nil)
	take := func(kind observe.Kind, pod *corev1.Pod) map[string][]string {
		endpoints := map[string][]string{}
		for _, ev := range e.Take(observe.PodEvent{Kind: kind, Pod: pod}) {
			for port, all := range ev.Ports {
				endpoints[ev.Service+":"+port] = []string{}
				for _, one := range all {
					endpoints[ev.Service+":"+port] = append(endpoints[ev.Service+":"+port], one.Addr.String())
				}
				slices.Sort(endpoints[ev.Service+":"+port])
			}
		}
		return endpoints
	}
	g.Expect(take(observe.Added, aPod("a", "cart", "10.0.0.1", true))).To(Equal(map[string][]string{
		"ns/cart:http": {"10.0.0.1:8080"}, "ns/cart:admin": {"10.0.0.1:9090"}, "ns/all:http": {"10.0.0.1:8080"},
	}))
	g.Expect(take(observe.Added, aPod("b", "front", "10.0.0.2", true))).To(Equal(map[string][]string{"ns/all:http": {"10.0.0.1:8080", "10.0.0.2:7070"}}))
	g.Expect(take(observe.Added, aPod("c", "job", "10.0.0.3", true))).To(BeEmpty())
	g.Expect(take(observe.Deleted, aPod("a", "cart", "10.0.0.1", true))).To(Equal(map[string][]string{
		"ns/cart:http": {}, "ns/cart:admin": {}, "ns/all:http": {"10.0.0.2:7070"},
	}))
}

// A pod is served once its node's proxy holds it and has the certificate of its identity,
// in whatever order it is known.
func TestPodsOfNodes(t *testing.T) {
	g := NewWithT(t)
	f := connected(0)
	f.nodes = newNodes(f, Options{
		Nodes: 1, Adapter: &controlplane.ControlPlane{Nodes: &controlplane.NodeProxies{Nodes: nodesOf{}}}, Mesh: topology.Mesh{Namespaces: []string{"ns"}, Services: []topology.Service{{Name: "s", Namespace: "ns"}}},
	})
	begin := time.Now()
	add := func(name, service string) *pod {
		return f.add(observe.PodEvent{Seen: begin, Pod: aPod(name, service, "", false)})
	}
	pod := add("a", "s")
	add("z", "")
	g.Expect(f.nodes.proxies).To(And(HaveLen(1), HaveKey("ns/z")))
	g.Expect(f.Pods.Certificates().There).To(Equal(1))

	z := f.nodes.proxies["ns/z"]
	held := begin.Add(time.Second)
	z.hold(&proxy.NodeUpdate{Held: []proxy.NodePod{{ID: "ns/a", Identity: "sa"}}}, held)
	g.Expect(pod.reported).To(BeFalse(), "it has no address")
	pod.times.IP = begin
	f.nodes.settle("ns/a")
	g.Expect(pod.reported).To(BeFalse(), "there is no certificate")
	z.certificates["sa"] = held.Add(time.Second)
	f.nodes.settle("ns/a")
	g.Expect(pod.reported).To(BeTrue())
	g.Expect(pod.times.Complete).To(Equal(held))
	g.Expect(pod.certified()).To(Equal(held.Add(time.Second)))

	// The last pod of the identity has gone: the next one needs a new certificate.
	z.hold(&proxy.NodeUpdate{Removed: []string{"ns/a"}, Dropped: []string{"sa"}}, held)
	next := add("b", "s")
	next.times.IP = begin
	z.hold(&proxy.NodeUpdate{Held: []proxy.NodePod{{ID: "ns/b", Identity: "sa"}}}, held)
	g.Expect(next.certified()).To(BeZero())
	// As does one whose node has another proxy.
	z.certificates["sa"] = held
	f.end(z.pod, held)
	add("y", "")
	f.nodes.proxies["ns/y"].hold(&proxy.NodeUpdate{Held: []proxy.NodePod{{ID: "ns/b", Identity: "sa"}}}, held)
	g.Expect(next.certified()).To(BeZero())
	f.nodes.proxies["ns/y"].certificates["sa"] = held
	f.nodes.settle("ns/b")
	g.Expect(next.certified()).To(Equal(held))
}

// While the proxy of a node is replaced, the newer one has the pods, whatever the older one is still sent; the node has a proxy again
// once the older one is gone, and convergence waits for that.
func TestReplacedNodeProxy(t *testing.T) {
	g := NewWithT(t)
	f := connected(0)
	f.nodes = newNodes(f, Options{
		Nodes: 1, Adapter: &controlplane.ControlPlane{Nodes: &controlplane.NodeProxies{Nodes: nodesOf{}}}, Mesh: topology.Mesh{Namespaces: []string{"ns"}, Services: []topology.Service{{Name: "s", Namespace: "ns"}}},
	})
	add := func(name string) *nodeProxy {
		f.add(observe.PodEvent{Seen: time.Now(), Pod: aPod(name, "", "", false)})
		return f.nodes.proxies["ns/"+name]
	}
	old := add("old")
	old.node = "node"
	update := &proxy.NodeUpdate{Held: []proxy.NodePod{{ID: "ns/a", Identity: "sa"}}}
	old.hold(update, time.Now())
	background := f.Pods.Begin()
	f.RenewNodes()
	const lacking = "of the proxies of nodes and the waypoints, 1 were not replaced yet or lack a certificate"
	g.Expect(f.nodes.lacks()).To(Equal(lacking))
	g.Expect(f.Lacking()).To(ContainElement(lacking))

	next := add("next")
	next.node = "node"
	next.hold(update, time.Now())
	old.hold(update, time.Now())
	g.Expect(f.nodes.held["ns/a"].proxy).To(BeIdenticalTo(next))
	g.Expect(f.nodes.on("node")).To(BeIdenticalTo(old))
	f.end(old.pod, time.Now())
	g.Expect(f.nodes.held["ns/a"].proxy).To(BeIdenticalTo(next))
	g.Expect(f.nodes.on("node")).To(BeIdenticalTo(next))
	g.Expect(f.nodes.lacks()).To(Equal(lacking), "it has no certificate for the pod")
	next.certificates["sa"] = time.Now()
	g.Expect(f.nodes.lacks()).To(BeEmpty())
	replaced, _ := f.Pods.End(background)
	g.Expect(replaced).To(Equal(1))
}

// nodesOf and waypointsOf are a control plane whose nodes have proxies that know of pods, and
// whose only service has a waypoint that knows of EndpointSlices.
type (
	nodesOf     struct{ controlplane.Nodes }
	waypointsOf struct{ controlplane.Waypoints }
)

func (nodesOf) PodHealth(ready, terminating bool) convergence.Health {
	if ready && !terminating {
		return convergence.Healthy
	}
	return convergence.Unhealthy
}

func (nodesOf) Serves(topology.Mesh, string) (m controlplane.Membership, ok bool) {
	return m, true
}

func (nodesOf) Wants(topology.Mesh, scenario.Settings) []convergence.Want {
	return []convergence.Want{{Key: convergence.Key{Type: convergence.EDS, Name: "s"}, Service: port}}
}

func (waypointsOf) List(topology.Mesh) []controlplane.Waypoint {
	return []controlplane.Waypoint{{Namespace: "ns", Name: "waypoint", Label: "w", Pods: 2, Services: []int{0}, Ports: []topology.Port{{Name: "mesh", Number: 15008, Target: 15008}}}}
}

func (waypointsOf) Wants(topology.Mesh, controlplane.Waypoint) []convergence.Want {
	return []convergence.Want{{Key: convergence.Key{Type: convergence.EDS, Name: "s"}, Service: controlplane.Listed(port)}}
}

// The pods of waypoints are none of the mesh, and are expected to hold what the API server lists
// where the proxies of nodes hold pods.
func TestWaypoints(t *testing.T) {
	g := NewWithT(t)
	adapter := version{}.adapter()
	adapter.Nodes = &controlplane.NodeProxies{Nodes: nodesOf{}, Waypoints: waypointsOf{}}
	f := connected(0)
	f.Mesh = topology.Mesh{Services: []topology.Service{{Name: "s", Namespace: "ns"}}}
	f.nodes = newNodes(f, Options{Nodes: 1, Adapter: adapter, Mesh: f.Mesh})
	first := newRevision(f, adapter)
	f.tracker = first.tracker
	f.Revisions.all.Store(&[]*revision{first})
	f.Endpoints = newEndpoints(1, nil)

	begin := time.Unix(1000, 0)
	f.add(observe.PodEvent{Seen: begin, Pod: aPod("w-1", "w", "", false)})
	f.add(observe.PodEvent{Seen: begin, Pod: aPod("s-1", "s", "", false)})
	g.Expect(f.nodes.waypoints).To(And(HaveLen(1), HaveKey("ns/w-1")))
	g.Expect(f.Pods.mesh).To(And(HaveLen(1), HaveKey("ns/s-1")))
	g.Expect(f.Pods.Certificates().There).To(Equal(1), "pods of the mesh")
	g.Expect(f.nodes.expected()).To(Equal(3), "a node's and two pods of the waypoint")

	for id, scope := range map[string]string{"node": "", "waypoint": "w"} {
		f.tracker.Add(id, first.scopes[scope])
		f.tracker.Certified(id, begin)
	}
	at := netip.MustParseAddrPort("10.0.0.1:80")
	event := func(of string, endpoints ...observe.Endpoint) observe.EndpointsEvent {
		return observe.EndpointsEvent{Seen: begin, Service: of, Ports: map[string][]observe.Endpoint{"http": endpoints}}
	}
	going := observe.Endpoint{Addr: at, Ready: true, Terminating: true}
	f.OnEndpoints(event("ns/s", going))
	f.OnEndpoints(event("ns/waypoint", going))
	f.OnListed(event("ns/s"))
	held := func(endpoints convergence.Endpoints) convergence.Update {
		return convergence.Update{ReceivedAt: begin, AckedAt: begin, Set: []convergence.Resource{{Key: convergence.Key{Type: convergence.EDS, Name: "s"}, Content: &convergence.Content{Endpoints: endpoints}}}}
	}
	f.tracker.Update("node", held(convergence.Endpoints{at: convergence.Unhealthy}))
	f.tracker.Update("waypoint", held(convergence.Endpoints{}))
	g.Expect(f.tracker.Counts().Converged).To(Equal(2), "%v", f.tracker.Missing(2))
	g.Expect(f.Endpoints.listed).To(HaveLen(1), "what is counted are the endpoints of the mesh")
}

// someNodes serve the pods of every namespace but "ns".
type someNodes struct{ nodesOf }

func (someNodes) Serves(_ topology.Mesh, namespace string) (m controlplane.Membership, ok bool) {
	return m, namespace != "ns"
}

// In a mesh that has both, the pods of some namespaces have sidecars, which are sent the endpoints that the
// API server lists, and those of others the proxy of their node, which is sent pods.
func TestMixedMesh(t *testing.T) {
	g := NewWithT(t)
	adapter := version{}.adapter()
	adapter.Nodes = &controlplane.NodeProxies{Nodes: someNodes{}}
	f := connected(0)
	f.Mesh = topology.Mesh{Namespaces: []string{"ns", "other"}, Services: []topology.Service{{Name: "s", Namespace: "ns"}, {Name: "o", Namespace: "other"}}}
	f.nodes = newNodes(f, Options{Nodes: 1, Adapter: adapter, Mesh: f.Mesh})
	first := newRevision(f, adapter)
	f.tracker = first.tracker
	f.Revisions.all.Store(&[]*revision{first})
	f.Endpoints = newEndpoints(1, nil)
	g.Expect(first.scopes).To(And(HaveKey("s"), HaveKey(""), Not(HaveKey("o"))))

	begin := time.Unix(1000, 0)
	add := func(of *corev1.Pod) *pod { return f.add(observe.PodEvent{Seen: begin, Pod: of}) }
	node, own := add(aPod("z", "", "", false)), add(aPod("s-1", "s", "", true))
	other := aPod("o-1", "o", "", true)
	other.Namespace = "other"
	served := add(other)
	g.Expect(f.nodes.pods).To(And(HaveLen(1), HaveKey(served.id)))
	g.Expect(f.Pods.background.pods).To(Equal(2))
	g.Expect(f.Pods.background.starts).To(Equal(1), "a pod without a sidecar has no start")

	for _, id := range []string{node.id, own.id} {
		p := f.Pods.simulated[id]
		p.revision, p.times.Connected, p.node = first, begin, "node-0"
		f.tracker.Add(p.id, first.scopes[p.service])
		f.tracker.Certified(p.id, begin)
	}
	own.ready, served.ready, served.node = true, true, "node-0"
	at := netip.MustParseAddrPort("10.0.0.1:80")
	event := observe.EndpointsEvent{Seen: begin, Service: "ns/s", Ports: map[string][]observe.Endpoint{"http": {{Addr: at}}}}
	f.OnEndpoints(event) // of pods
	f.OnListed(event)    // of the API server
	f.wanted.Store(2)
	held := func(endpoints convergence.Endpoints) convergence.Update {
		return convergence.Update{ReceivedAt: begin, AckedAt: begin, Set: []convergence.Resource{{Key: convergence.Key{Type: convergence.EDS, Name: "s"}, Content: &convergence.Content{Endpoints: endpoints}}}}
	}
	f.tracker.Update(node.id, held(convergence.Endpoints{at: convergence.Unhealthy}))
	g.Expect(f.converged()).To(BeFalse())
	f.tracker.Update(own.id, held(convergence.Endpoints{})) // this version sends none that is not ready
	g.Expect(f.converged()).To(BeTrue(), "%v", f.Lacking())
	g.Expect(f.Count()).To(Equal(Counts{Created: 2, Connected: 2, Simulated: 2, Nodes: 1, Converged: 2}))

	// One change is followed to both, each of which knows the endpoint by another list.
	following := f.tracker.Follow(convergence.Change{Service: port, Also: controlplane.Listed(port), Addr: at, Health: convergence.Healthy}, []string{node.id, own.id})
	healthy := held(convergence.Endpoints{at: convergence.Healthy})
	healthy.ReceivedAt = begin.Add(time.Second)
	f.tracker.Update(node.id, healthy)
	g.Expect(following.Done()).NotTo(BeClosed())
	f.tracker.Update(own.id, healthy)
	g.Expect(following.Done()).To(BeClosed())
}
