package run

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// waypointOf is a waypoint of every mesh.
type waypointOf struct{ controlplane.Waypoints }

func (waypointOf) List(topology.Mesh) []controlplane.Waypoint {
	return []controlplane.Waypoint{{Namespace: "n", Name: "way", Label: "waypoint.1", Pods: 1}}
}

// What a gateway, a waypoint or a ztunnel holds is kept as what a sidecar holds, a resource of several once; pods without a proxy have addresses alone.
func TestConfigurationOf(t *testing.T) {
	pod := func(name, service, ip string) corev1.Pod {
		return corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, Labels: map[string]string{kwok.ServiceLabel: service, kwok.RunLabel: "r"}},
			Status:     corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: ip}}},
		}
	}
	shared, own := new(proxy.Resource), new(proxy.Resource)
	mesh := topology.Mesh{Services: []topology.Service{{Name: "cart"}, {Name: "ingress", Gateway: true}, {Name: "cron", Outside: true}}}
	d := dataplane{mesh: mesh, adapter: &controlplane.ControlPlane{Nodes: &controlplane.NodeProxies{Waypoints: waypointOf{}}}}
	c := d.configurationOf(
		[]corev1.Pod{pod("cart-1", "cart", "10.0.0.1"), pod("ingress-1", "ingress", "10.0.0.2"), pod("cron-1", "cron", "10.0.0.3"), pod("way-1", "waypoint.1", "10.0.0.4"), pod("z", "", "10.0.0.5")}, nil,
		map[string][]*proxy.Resource{"n/cart-1": {shared}, "n/ingress-1": {shared, own}, "n/way-1": {shared}, "n/z": {own}},
	)
	want := []record.HeldBy{
		{Namespace: "n", Workload: "cart", Pod: "cart-1", Resources: []int{0}},
		{Namespace: "n", Workload: "ingress", Pod: "ingress-1", Kind: record.OfGateway, Resources: []int{0, 1}},
		{Namespace: "n", Workload: "way", Pod: "way-1", Kind: record.OfWaypoint, Resources: []int{0}},
		{Namespace: "n", Workload: "ztunnel", Pod: "z", Kind: record.OfZtunnel, Resources: []int{1}},
	}
	if !reflect.DeepEqual(c.Sidecars, want) || len(c.Resources) != 2 || len(c.Objects) != 5 {
		t.Errorf("%+v", c)
	}
}

// Proxies of a captured mesh that a replay does not have are counted.
func TestUnasked(t *testing.T) {
	workload := func(p capture.Proxy, pods int) capture.Workload {
		return capture.Workload{Spec: capture.WorkloadSpec{Proxy: p, Replicas: pods}}
	}
	var s Spec
	if got := s.unasked(); got != nil {
		t.Errorf("of no captured mesh: %v", got)
	}
	s.Captured = new(MeshFile)
	s.Captured.Mesh.Workloads = []capture.Workload{workload(capture.Waypoint, 2), workload(capture.Sidecar, 3), workload(capture.Ambient, 4), workload(capture.Ztunnel, 5), workload(capture.Waypoint, 1), workload(capture.OtherRevision, 6)}
	if got, want := s.unasked(), []record.UnaskedProxies{{Kind: "ztunnel", Pods: 5}, {Kind: "waypoint", Pods: 3}, {Kind: "other revision's sidecar", Pods: 6}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// istiod pushes less often in a run of which only the final configuration is used, unless the run sets that itself.
func TestWithFewerPushes(t *testing.T) {
	for _, c := range []struct{ asked, want []string }{
		{nil, []string{"PILOT_DEBOUNCE_AFTER=1s"}},
		{[]string{"A=1"}, []string{"PILOT_DEBOUNCE_AFTER=1s", "A=1"}},
		{[]string{"PILOT_DEBOUNCE_AFTER=3s"}, []string{"PILOT_DEBOUNCE_AFTER=3s"}},
	} {
		s := Spec{Scenario: scenario.Default()}
		s.ControlPlane.Env = c.asked
		if env := s.WithFewerPushes().ControlPlane.Env; !slices.Equal(env, c.want) {
			t.Errorf("with %q: %q, want %q", c.asked, env, c.want)
		}
	}
}
