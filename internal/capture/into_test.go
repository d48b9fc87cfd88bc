package capture

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/test/golden"
)

// In a cluster with other users a mesh names nothing but itself.
func TestInto(t *testing.T) {
	m := shop(t)
	selected := map[string]string{"scaler.mesh/run": "one"}
	to, left, err := m.Into("mesh-1a-", selected)
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "into.yaml"), written(t, to))
	ours := func(namespace string) bool { return strings.HasPrefix(namespace, "mesh-1a-") }
	for _, s := range to.Services {
		if !ours(s.Namespace) || s.Spec.Type == corev1.ServiceTypeLoadBalancer || s.Spec.Type == corev1.ServiceTypeNodePort || slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort != 0 }) {
			t.Errorf("Service %s/%s is reached from outside: %+v", s.Namespace, s.Name, s.Spec)
		}
	}
	for _, o := range to.Objects {
		if !ours(o.GetNamespace()) || IsGatewayAPI(o.GroupVersionKind()) {
			t.Errorf("%s %s/%s is there", o.GetKind(), o.GetNamespace(), o.GetName())
		}
		exportTo, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "exportTo")
		if slices.Contains(exported, o.GetKind()) && (len(exportTo) == 0 || slices.Contains(exportTo, "*")) {
			t.Errorf("%s %s/%s is exported to %v", o.GetKind(), o.GetNamespace(), o.GetName(), exportTo)
		}
		selector, _, _ := unstructured.NestedStringMap(o.Object, "spec", "selector")
		if o.GetKind() == "Gateway" && selector["scaler.mesh/run"] != "one" {
			t.Errorf("Gateway %s/%s selects %v", o.GetNamespace(), o.GetName(), selector)
		}
	}
	if was, is := m.Endpoints(), to.Endpoints(); was != is || len(m.Workloads) != len(to.Workloads) || m.Pods()[Sidecar] != to.Pods()[Sidecar] {
		t.Errorf("%d endpoints and %d workloads, want %d and %d", is, len(to.Workloads), was, len(m.Workloads))
	}
	if len(left)+len(to.Objects) < len(m.Objects)/2 || to.ControlPlane != nil {
		t.Errorf("%d objects of %d are left, control plane %v; not in it: %v", len(to.Objects), len(m.Objects), to.ControlPlane, left)
	}
	if written(t, m) != written(t, shop(t)) {
		t.Error("the mesh itself was changed")
	}
	if _, _, err := m.Into(strings.Repeat("x", 60)+"-", selected); err == nil || !strings.Contains(err.Error(), "must be no more than 63") {
		t.Errorf("with a long prefix: %v", err)
	}
}

// Each kind of object that would reach others is kept from it.
func TestConfine(t *testing.T) {
	m := Mesh{Namespaces: []Namespace{{Name: "shop"}, {Name: "istio-system"}}}
	object := func(apiVersion, kind, namespace string, spec map[string]any) {
		o := named(apiVersion, kind, namespace, "one")
		o.Object["spec"] = spec
		m.Objects = append(m.Objects, o)
	}
	const networking = "networking.istio.io/v1"
	object(networking, "ServiceEntry", "shop", map[string]any{"hosts": []any{"db.example.com", "*.other.com"}, "addresses": []any{"10.1.1.1"}})
	object(networking, "VirtualService", "shop", map[string]any{"hosts": []any{"*"}, "exportTo": []any{"*"}})
	object(networking, "DestinationRule", "shop", map[string]any{"host": "*.svc.cluster.local", "exportTo": []any{"elsewhere"}})
	object(networking, "DestinationRule", "shop", map[string]any{"host": "cart", "workloadSelector": map[string]any{"matchLabels": map[string]any{"app": "a"}}})
	m.Objects[3].SetName("selects")
	object(networking, "DestinationRule", "istio-system", map[string]any{"host": "*.local"})
	object("security.istio.io/v1", "PeerAuthentication", "istio-system", map[string]any{})
	object(networking, "Gateway", "istio-system", map[string]any{})
	object("gateway.networking.k8s.io/v1", "Gateway", "shop", map[string]any{})
	object("security.istio.io/v1", "RequestAuthentication", "shop", map[string]any{"jwtRules": []any{
		map[string]any{"issuer": "a", "jwksUri": "https://keys.example.com"}, map[string]any{"issuer": "b", "jwks": "kept"},
	}})
	object("security.istio.io/v1", "AuthorizationPolicy", "shop", map[string]any{"rules": []any{map[string]any{
		"from": []any{map[string]any{"source": map[string]any{"principals": []any{"cluster.local/ns/shop/*", "*/ns/shop/sa/cart"}}}},
		"when": []any{map[string]any{"key": "source.namespace", "values": []any{"shop", "other"}}, map[string]any{"key": "source.ip", "values": []any{"shop"}}},
	}}})
	object(networking, "VirtualService", "shop", map[string]any{"hosts": []any{"10.1.2.3"}, "http": []any{map[string]any{"match": []any{map[string]any{"sourceNamespace": "shop"}}}}})
	m.Objects[len(m.Objects)-1].SetName("address")
	m.Namespaces[0].Labels = map[string]string{"istio.io/use-waypoint": "wp", "team": "a"}
	m.Services = []corev1.Service{
		{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, ExternalIPs: []string{"192.0.2.1"}, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30080}}}},
		{Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}},
		{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "db.example.com"}},
	}
	for i := range m.Services {
		m.Services[i].Namespace, m.Services[i].Name = "shop", string(rune('a'+i))
	}
	to, left, err := m.Into("x-", map[string]string{"run": "r"})
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "confined.yaml"), written(t, to))
	var names []string
	for _, l := range left {
		names = append(names, l.What)
	}
	want := []string{"control plane", "DestinationRule istio-system/one", "PeerAuthentication istio-system/one", "Gateway of the Gateway API", "labels istio.io/use-waypoint", "ports of nodes, load balancers and external addresses", "keys of RequestAuthentications", "DestinationRule shop/one"}
	if !slices.Equal(names, want) {
		t.Errorf("left out %v, want %v", names, want)
	}
}
