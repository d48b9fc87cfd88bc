package istio

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
)

func withWaypoints(of string) waypoints {
	c := ambiently().ControlPlane
	c.opts.Waypoints = of
	return waypoints{c}
}

func TestWaypointExpectations(t *testing.T) {
	mesh := topology.Build(topology.Spec{Pods: 3, Services: 3, Namespaces: 2, FanOut: 1})
	all := []string{
		"CDS main_internal", "CDS encap", "CDS connect_originate",
		"CDS inner_connect_originate", "CDS outer_connect_originate", "LDS inner_connect_originate", "LDS outer_connect_originate",
		"LDS connect_terminate", "LDS main_internal", "LDS connect_originate",
		"Workload Kubernetes//Pod/mesh-0/p", "Workload Kubernetes/discovery.k8s.io/EndpointSlice/default/kubernetes/10.0.0.1",
	}
	of := func(host string) []string {
		cluster := "inbound-vip|80|http|" + host + ".svc.cluster.local"
		return []string{"CDS " + cluster, "EDS " + cluster}
	}
	for _, c := range []struct {
		of   string
		want map[string][]string
	}{
		{controlplane.NamespaceWaypoints, map[string][]string{
			"mesh-0/waypoint-mesh-0": append(of("svc-0.mesh-0"), of("svc-2.mesh-0")...),
			"mesh-1/waypoint-mesh-1": of("svc-1.mesh-1"),
		}},
		{controlplane.ServiceWaypoints, map[string][]string{
			"mesh-0/waypoint-svc-0": of("svc-0.mesh-0"), "mesh-1/waypoint-svc-1": of("svc-1.mesh-1"), "mesh-0/waypoint-svc-2": of("svc-2.mesh-0"),
		}},
	} {
		got, want := map[string][]string{}, map[string][]string{}
		for name, own := range c.want {
			want[name] = slices.Sorted(slices.Values(append(slices.Clone(all), own...)))
		}
		adapter := withWaypoints(c.of)
		for _, w := range adapter.List(mesh) {
			var keys []string
			for _, key := range adapter.Holds(mesh, w, []string{"mesh-0/p"}) {
				keys = append(keys, key.String())
			}
			slices.Sort(keys)
			got[w.Namespace+"/"+w.Name] = keys
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("--waypoints %s (-want +got):\n%s", c.of, diff)
		}
	}
}

// Endpoints of a waypoint are those that the API server lists, not the pods that ztunnels know.
func TestWaypointEndpoints(t *testing.T) {
	mesh := topology.Build(topology.Spec{Pods: 1, Services: 1, Namespaces: 1})
	adapter := withWaypoints(controlplane.ServiceWaypoints)
	for _, w := range adapter.Wants(mesh, adapter.List(mesh)[0]) {
		if w.Type == convergence.EDS && w.Service != "listed: mesh-0/svc-0:http" {
			t.Errorf("%s is compared with %q", w, w.Service)
		}
	}
}

// Every ztunnel knows the waypoints' services, and which services go through which.
func TestZtunnelsKnowWaypoints(t *testing.T) {
	mesh := topology.Build(topology.Spec{Pods: 1, Services: 1, Namespaces: 1})
	adapter := ambient(withWaypoints(controlplane.NamespaceWaypoints))
	var got []string
	for _, w := range adapter.Wants(mesh, controlplane.Modes["permissive"]) {
		if strings.Contains(w.Name, "waypoint") || w.Members != nil {
			got = append(got, w.String()+" of "+w.Service+" with "+strings.Join(w.Members, " "))
		}
	}
	want := []string{
		"Address mesh-0/waypoint-mesh-0.mesh-0.svc.cluster.local of  with ",
		"Address endpoints of mesh-0/waypoint-mesh-0.mesh-0.svc.cluster.local:15021 of mesh-0/waypoint-mesh-0:status-port with ",
		"Address endpoints of mesh-0/waypoint-mesh-0.mesh-0.svc.cluster.local:15008 of mesh-0/waypoint-mesh-0:mesh with ",
		"Address mesh-0/svc-0.mesh-0.svc.cluster.local of  with waypoint mesh-0/waypoint-mesh-0.mesh-0.svc.cluster.local",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, key := range ambient(withWaypoints(controlplane.NoWaypoints)).Holds(mesh, controlplane.Modes["permissive"], nil) {
		if strings.Contains(key.Name, "waypoint") {
			t.Errorf("without waypoints a ztunnel holds %s", key)
		}
	}
}

func TestWaypointObjects(t *testing.T) {
	mesh := topology.Build(topology.Spec{Pods: 1, Services: 1, Namespaces: 1})
	adapter := withWaypoints(controlplane.NamespaceWaypoints)
	objects := adapter.Objects(mesh, "run")
	if len(objects) != 2 {
		t.Fatalf("%d objects, want one ConfigMap and one Gateway", len(objects))
	}
	data := objects[0].Object["data"].(map[string]any)["deployment"].(string)
	for _, want := range []string{"nodeSelector:", "tolerations:", "kwok.x-k8s.io/node"} {
		if !strings.Contains(data, want) {
			t.Errorf("the defaults of the class lack %q:\n%s", want, data)
		}
	}
	gateway := objects[1]
	if gateway.GetName() != "waypoint-mesh-0" || gateway.GetLabels()["scaler.mesh/run"] != "run" {
		t.Errorf("the gateway is %s with %v", gateway.GetName(), gateway.GetLabels())
	}
	if got, want := adapter.Labels("mesh-0", ""), map[string]string{capture.UseWaypoint: "waypoint-mesh-0"}; !cmp.Equal(got, want) {
		t.Errorf("the namespace has %v, want %v", got, want)
	}
	if got := adapter.Labels("mesh-0", "svc-0"); got != nil {
		t.Errorf("a service has %v, want nothing", got)
	}
}

func TestWaypointNode(t *testing.T) {
	spec, err := withWaypoints(controlplane.NamespaceWaypoints).Spec(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "mesh-0", Name: "waypoint-x", UID: "1", Labels: map[string]string{capture.GatewayName: "waypoint-mesh-0"}},
		Spec: corev1.PodSpec{NodeName: "node-3", ServiceAccountName: "waypoint-mesh-0", Containers: []corev1.Container{{
			Name: proxyContainer, Args: []string{"proxy", "waypoint"}, Env: []corev1.EnvVar{{Name: "ISTIO_META_CLUSTER_ID", Value: clusterID}},
		}}},
		Status: corev1.PodStatus{PodIP: "10.64.0.9"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := "waypoint~10.64.0.9~waypoint-x.mesh-0~mesh-0.svc.cluster.local"; spec.NodeID != want {
		t.Errorf("its node is %s, want %s", spec.NodeID, want)
	}
	if spec.NodeCluster != "waypoint-mesh-0.mesh-0" || spec.Node != "" || spec.Identity != "spiffe://cluster.local/ns/mesh-0/sa/waypoint-mesh-0" {
		t.Errorf("it is %+v", spec)
	}
}

func TestWaypointsNeedAmbient(t *testing.T) {
	for _, c := range []struct{ dataplane, waypoints, want string }{
		{"", "namespace", `mesh.waypoints: got "namespace", want none with mesh.dataplane sidecar`},
		{"ambient", "all", `mesh.waypoints: got "all", want none, namespace, service or captured`},
	} {
		if _, err := Driver().Of(c.dataplane, c.waypoints); err == nil || err.Error() != c.want {
			t.Errorf("%s with %s: %v, want %s", c.dataplane, c.waypoints, err, c.want)
		}
	}
	d, err := Driver().Of("ambient", "service")
	if err != nil {
		t.Fatal(err)
	}
	types, err := d.Proxy.Types()
	if err != nil || !slices.Contains(types.Names(), workloadType) || !slices.Contains(types.Names(), convergence.CDS) {
		t.Errorf("its types are %v: %v", types.Names(), err)
	}
}
