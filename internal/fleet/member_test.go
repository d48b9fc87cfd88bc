package fleet

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
)

// The kind of a pod follows from its namespace, its service and its node, and from how many of its service are real.
// Each kind is counted once in what it is part of.
func TestKinds(t *testing.T) {
	seen := time.Unix(1000, 0)
	pod := func(namespace, name, service string, labels ...string) *corev1.Pod {
		p := aPod(name, service, "", false)
		p.Namespace = namespace
		for _, label := range labels {
			p.Labels[label] = "true"
		}
		return p
	}
	adapter := version{}.adapter()
	adapter.Nodes = &controlplane.NodeProxies{Nodes: someNodes{}, Waypoints: waypointsOf{}}
	for _, c := range []struct {
		name  string
		nodes int
		real  *RealOptions
		pods  []*corev1.Pod
		want  []string
		// number of pods of the mesh, and of starts that are in the figures
		mesh, starts int
	}{
		{"a sidecar each", 0, nil, []*corev1.Pod{pod("ns", "a", "s"), pod("other", "b", "s"), pod("ns", "w", "w")}, []string{"*fleet.sidecarPod", "*fleet.sidecarPod", "*fleet.sidecarPod"}, 3, 3},
		{
			"proxies of nodes and waypoints", 1, nil, []*corev1.Pod{pod("istio-system", "z", ""), pod("ns", "w", "w"), pod("other", "a", "u"), pod("ns", "b", "s"), pod("other", "c", "u")},
			[]string{"*fleet.nodeProxy", "*fleet.waypoint", "*fleet.servedPod", "*fleet.sidecarPod", "*fleet.servedPod"}, 3, 1,
		},
		{
			"processes of this machine", 0, &RealOptions{Count: 1}, []*corev1.Pod{pod("ns", "a", "s"), pod("ns", "b", "s"), pod("ns", "c", "t")},
			[]string{"*fleet.processPod", "*fleet.sidecarPod", "*fleet.sidecarPod"}, 3, 2,
		},
		{
			"pods on real nodes", 0, &RealOptions{Count: 1, InPods: &RealPods{}}, []*corev1.Pod{pod("ns", "a", "s"), pod("ns", "b", "s", kwok.RealLabel)},
			[]string{"*fleet.sidecarPod", "*fleet.containerPod"}, 2, 1,
		},
	} {
		f := connected(0)
		f.Mesh = topology.Mesh{Namespaces: []string{"ns", "other"}, Services: []topology.Service{{Name: "s", Namespace: "ns", Pods: 2}, {Name: "u", Namespace: "other", Pods: 2}}}
		f.Adapter, f.Real = adapter, c.real
		f.nodes = newNodes(f, Options{Nodes: c.nodes, Adapter: adapter, Mesh: f.Mesh})
		f.real = newRealSidecars(f, f.Revisions.list()[0])
		var got []string
		for _, p := range c.pods {
			added := f.add(observe.PodEvent{Seen: seen, Pod: p})
			got = append(got, fmt.Sprintf("%T", added.member))
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
		if n, starts := f.Count().Created, f.Pods.background.starts; n != c.mesh || starts != c.starts {
			t.Errorf("%s: %d pods of the mesh and %d starts, want %d and %d", c.name, n, starts, c.mesh, c.starts)
		}
		for _, p := range f.Pods.byID {
			f.end(p, seen)
			f.end(p, seen) // seen twice
		}
		if counts := f.Count(); counts != (Counts{}) || len(f.IDs())+len(f.Pods.sidecars)+len(f.nodes.proxies)+len(f.nodes.waypoints)+len(f.nodes.pods) > 0 {
			t.Errorf("%s: %+v, %v is left when all pods are gone", c.name, counts, f.IDs())
		}
	}
}
