package istio

import (
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

// A Service that selects pods and a virtual machine has the endpoints of both.
func TestMachines(t *testing.T) {
	mesh, err := capture.FromFiles(t.Context(), filepath.Join("testdata", "machine.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	r := newReplayed(configuration{&ControlPlane{}}, &mesh)
	want := map[string]convergence.Endpoints{"shop/cart:http": {netip.MustParseAddrPort("192.0.2.10:8080"): convergence.Healthy}}
	if diff := cmp.Diff(want, r.Machines(), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if slices.ContainsFunc(r.notChecked(), func(n record.NotChecked) bool { return n.What == record.UncheckedEntries }) {
		t.Error("the WorkloadEntry counts as not checked")
	}

	change := func(field string, value any) *replayed {
		mesh.Objects[0] = mesh.Objects[0].DeepCopy()
		if err := unstructured.SetNestedField(mesh.Objects[0].Object, value, "spec", field); err != nil {
			t.Fatal(err)
		}
		return newReplayed(configuration{&ControlPlane{}}, &mesh)
	}
	for _, uncertain := range []struct{ field, value string }{{"network", "vm"}, {"address", "cart.example.com"}} {
		r := change(uncertain.field, uncertain.value)
		if len(r.Machines()) != 0 || !r.services[0].some() {
			t.Errorf("%s %s: %v, of a Service whose endpoints are compared: %v; want none, and not", uncertain.field, uncertain.value, r.Machines(), !r.services[0].some())
		}
		change("network", "")
		change("address", "192.0.2.10")
	}
	if r := change("labels", map[string]any{"app": "other"}); len(r.Machines()) != 0 || r.services[0].some() {
		t.Errorf("%v of a machine that is not selected", r.Machines())
	}
	mesh.Objects[0].SetLabels(map[string]string{"app": "cart"})
	if r := newReplayed(configuration{&ControlPlane{}}, &mesh); len(r.Machines()) != 1 {
		t.Errorf("%v of a machine that is selected by its own labels", slices.Collect(maps.Keys(r.Machines())))
	}
}

// The port of a machine is the one that its entry has by name, else the Service's number.
func TestMachinePort(t *testing.T) {
	for i, test := range []struct {
		port  corev1.ServicePort
		ports map[string]int64
		want  int64
	}{
		{corev1.ServicePort{Name: "http", Port: 80}, nil, 80},
		{corev1.ServicePort{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}, nil, 8080},
		{corev1.ServicePort{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}, map[string]int64{"http": 9090}, 9090},
		{corev1.ServicePort{Name: "http", Port: 80, TargetPort: intstr.FromString("web")}, map[string]int64{"web": 9091}, 9091},
		{corev1.ServicePort{Name: "http", Port: 80, TargetPort: intstr.FromString("web")}, map[string]int64{"http": 9091}, 0},
	} {
		if got := (machine{ports: test.ports}).port(test.port); got != test.want {
			t.Errorf("%d: %d, want %d", i, got, test.want)
		}
	}
}

// endpointSlice returns an EndpointSlice of Service b/web, with an endpoint that is no pod.
func endpointSlice(fields string) string {
	return "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: web-1, namespace: b, labels: {kubernetes.io/service-name: web}}\naddressType: IPv4\n" + fields
}

// Endpoints of EndpointSlices are expected where it is certain what istiod makes of them, and no subset by labels of pods has them.
func TestReplayedSlices(t *testing.T) {
	const v1 = "outbound|80|v1|web.b.svc.cluster.local"
	subset := destinationRule("b", "{host: web, subsets: [{name: v1, labels: {app: web}}]}")
	const whole, some = "EDS outbound|80||web.b.svc.cluster.local of b/web:http", "EDS outbound|80||web.b.svc.cluster.local"
	const port = "ports: [{name: http, port: 8080}]\n"
	for _, test := range []struct {
		name, fields string
		certain      bool
	}{
		{"ready", "endpoints: [{addresses: [192.0.2.1]}]\n" + port, true},
		{"not ready", "endpoints: [{addresses: [192.0.2.1], conditions: {ready: false, terminating: false}}]\n" + port, true},
		{"perhaps terminating", "endpoints: [{addresses: [192.0.2.1], conditions: {ready: false}}]\n" + port, false},
		{"all ports", "endpoints: [{addresses: [192.0.2.1]}]\nports: [{name: http}]\n", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			mesh := readMesh(t, subset+endpointSlice(test.fields))
			r := newReplayed(configuration{&ControlPlane{}}, mesh)
			wants := textsOf(r, 0)
			if slices.Contains(wants, whole) != test.certain || slices.Contains(wants, some) == test.certain {
				t.Errorf("wants %v, all endpoints of web: %v", wants, test.certain)
			}
			if !slices.Contains(wants, "EDS "+v1) {
				t.Errorf("wants %v, want the subset, whose endpoints are the pods alone", wants)
			}
			unchecked := slices.ContainsFunc(r.notChecked(), func(n record.NotChecked) bool {
				return n.What == record.UncheckedEndpoints && slices.Contains(n.Examples, "b/web")
			})
			if unchecked == test.certain {
				t.Errorf("not checked: %v", r.notChecked())
			}
			if (replayedNodes{of: r}).follows(r.services[slices.IndexFunc(r.services, func(v visible) bool { return v.Name == "web" })]) {
				t.Error("a ztunnel is expected to hold the pods alone")
			}
			of := convergence.Difference{Endpoint: netip.MustParseAddrPort("192.0.2.1:8080")}
			if by := (captured{&ControlPlane{}}).Explain(mesh, of); by != "EndpointSlice b/web-1" {
				t.Errorf("the endpoint is explained by %q", by)
			}
		})
	}
}
