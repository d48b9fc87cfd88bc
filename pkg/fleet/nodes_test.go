package fleet

import (
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/observe"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/topology"
)

// aPod is a pod of a service, "" for none, as it is seen.
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
	e := NewPodEndpoints(topology.Mesh{Services: []topology.Service{{Name: "s", Namespace: "ns", Ports: []topology.Port{{Name: "http", Number: 80, Target: 8080}}}}})
	at := netip.MustParseAddrPort("10.0.0.1:8080")
	seen := time.Now()
	take := func(kind observe.Kind, pod *corev1.Pod) (observe.EndpointsEvent, bool) {
		return e.Take(observe.PodEvent{Seen: seen, Kind: kind, Pod: pod})
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

// A pod is served once its node's proxy holds it and has the certificate of its identity,
// in whatever order it is known.
func TestPodsOfNodes(t *testing.T) {
	g := NewWithT(t)
	f := &Fleet{Pods: newPods(NewLatencies())}
	n := newNodes(f, 1)
	f.nodes = n
	f.Readiness = newReadiness(f)
	begin := time.Now()
	pod := f.Pods.add(observe.PodEvent{Seen: begin, Pod: aPod("a", "s", "", false)}, false, n)
	g.Expect(pod.ofNode).To(BeFalse())
	g.Expect(f.Pods.add(observe.PodEvent{Seen: begin, Pod: aPod("z", "", "", false)}, false, n).ofNode).To(BeTrue())
	g.Expect(f.Pods.Certificates().There).To(Equal(1))

	held := begin.Add(time.Second)
	n.updated("ns/z", &proxy.NodeUpdate{Held: []proxy.NodePod{{ID: "ns/a", Identity: "sa"}}}, held)
	g.Expect(n.settle("ns/a")).To(BeFalse(), "it has no address")
	pod.times.IP = begin
	g.Expect(n.settle("ns/a")).To(BeFalse(), "there is no certificate")
	n.certificates["ns/z"] = map[string]time.Time{"sa": held.Add(time.Second)}
	g.Expect(n.settle("ns/a")).To(BeTrue())
	g.Expect(pod.times.Complete).To(Equal(held))
	g.Expect(pod.certified()).To(Equal(held.Add(time.Second)))

	// The last pod of the identity has gone: the next one needs a new certificate.
	n.updated("ns/z", &proxy.NodeUpdate{Removed: []string{"ns/a"}, Dropped: []string{"sa"}}, held)
	next := f.Pods.add(observe.PodEvent{Seen: begin, Pod: aPod("b", "s", "", false)}, false, n)
	next.times.IP = begin
	n.updated("ns/z", &proxy.NodeUpdate{Held: []proxy.NodePod{{ID: "ns/b", Identity: "sa"}}}, held)
	g.Expect(next.certified()).To(BeZero())
	// As does one whose node has another proxy.
	n.certificates["ns/z"] = map[string]time.Time{"sa": held}
	n.ended("ns/z")
	n.updated("ns/y", &proxy.NodeUpdate{Held: []proxy.NodePod{{ID: "ns/b", Identity: "sa"}}}, held)
	g.Expect(next.certified()).To(BeZero())
}
