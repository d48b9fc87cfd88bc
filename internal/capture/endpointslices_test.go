package capture

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"scaler.mesh/scaler/test/golden"
)

func billing(t *testing.T) Mesh {
	t.Helper()
	return meshOf(t, "endpoints/external.yaml", "endpoints/others.yaml", "../endpoints/refused.yaml")
}

// Endpoints that no cluster makes of pods are captured with their Services, however they were given, and what is left out is counted.
func TestEndpointSlices(t *testing.T) {
	m := billing(t)
	checkCounts(t, m)
	readAgain(t, m)
	golden.Compare(t, filepath.Join("testdata", "endpoints", "mesh.yaml"), written(t, m))
	var summary bytes.Buffer
	if err := m.Summary(&summary); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "endpoints", "summary.txt"), summary.String())
	if n := m.sliceEndpoints(); n != 2+4+1+1 {
		t.Errorf("%d endpoints besides pods, want two of extdb, two of each port of legacy, one of ledger, and of leader the node", n)
	}
	if m.Endpoints() != m.sliceEndpoints()+1 {
		t.Errorf("%d endpoints, want those and the pod of ledger", m.Endpoints())
	}
}

// Endpoints alone are what a cluster mirrors them to.
func TestMirroredEndpoints(t *testing.T) {
	m := meshOf(t, "endpoints/external.yaml")
	i := slices.IndexFunc(m.Slices, func(s discoveryv1.EndpointSlice) bool { return serviceOf(&s) == "billing/legacy" })
	if i < 0 {
		t.Fatalf("slices %v, want one of legacy", m.Slices)
	}
	s := m.Slices[i]
	var conditions []bool
	for _, e := range s.Endpoints {
		conditions = append(conditions, *e.Conditions.Ready)
	}
	if s.AddressType != discoveryv1.AddressTypeIPv4 || len(s.Ports) != 2 || !slices.Equal(conditions, []bool{true, true, false}) || !strings.HasPrefix(s.Name, "legacy-") {
		t.Errorf("captured %+v", s)
	}
	if again := meshOf(t, "endpoints/external.yaml"); written(t, again) != written(t, m) {
		t.Error("the same Endpoints have another name")
	}
	if len(m.LeftOut) != 0 || len(m.Dangling()) != 0 {
		t.Errorf("left out %v, dangling %v", m.LeftOut, m.Dangling())
	}
}

// Addresses say something of a network, as names do.
func TestAnonymizedEndpoints(t *testing.T) {
	m := billing(t)
	n := m.Endpoints()
	if err := m.Anonymize(); err != nil {
		t.Fatal(err)
	}
	text := written(t, m)
	golden.Compare(t, filepath.Join("testdata", "endpoints", "anonymized.yaml"), text)
	for _, name := range []string{"192.0.2", "198.51.100", "10.244", "2001:db8", "extdb", "legacy", "billing", "leader"} {
		if strings.Contains(text, name) {
			t.Errorf("the file holds %q", name)
		}
	}
	if readAgain(t, m); m.Endpoints() != n || len(m.ServiceSlices()) != 4 {
		t.Errorf("%d endpoints of %d Services, want %d of 4", m.Endpoints(), len(m.ServiceSlices()), n)
	}
	for service := range m.ServiceSlices() {
		if !slices.ContainsFunc(m.Services, func(s corev1.Service) bool { return s.Namespace+"/"+s.Name == service }) {
			t.Errorf("EndpointSlices of Service %s, which is not there", service)
		}
	}
}

// Copies of a mesh have copies of its EndpointSlices; in a cluster with other users it has none.
func TestPlacedEndpoints(t *testing.T) {
	m := billing(t)
	three, err := m.Times(3)
	if err != nil {
		t.Fatal(err)
	}
	if three.Endpoints() != 3*m.Endpoints() || len(three.ServiceSlices()["billing-3/extdb"]) != 1 {
		t.Errorf("three copies have %d endpoints, and slices %v", three.Endpoints(), three.ServiceSlices())
	}
	to, left, err := m.Into("x-", nil)
	if err != nil {
		t.Fatal(err)
	}
	if at := slices.IndexFunc(left, func(d Difference) bool { return d.What == "EndpointSlices" }); at < 0 || left[at].Value != "4 objects" || to.Slices != nil {
		t.Errorf("slices %v, left %v", to.Slices, left)
	}
}

// An endpoint that is a pod is not in a replay, which names it.
func TestEndpointsOfPods(t *testing.T) {
	m := billing(t)
	slice := m.ServiceSlices()["billing/leader"][0]
	object := sliceObject(slice)
	var made discoveryv1.EndpointSlice
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &made); err != nil {
		t.Fatal(err)
	}
	if len(made.Endpoints) != 1 || made.Endpoints[0].Addresses[0] != "192.0.2.2" || made.Labels[discoveryv1.LabelManagedBy] != ofReplay {
		t.Errorf("a replay makes %+v", made)
	}
	differences := m.Differences()
	if len(differences) != 1 || differences[0].What != "EndpointSlice billing/leader-m" || differences[0].Value != "2 endpoints of 3" {
		t.Errorf("differences %v", differences)
	}
}

// A Service without a selector that has no endpoints is reported.
func TestServiceWithoutEndpoints(t *testing.T) {
	m := billing(t)
	var found []string
	for _, r := range m.Dangling() {
		found = append(found, r.String())
	}
	const none = ": spec.selector: no selector and no EndpointSlice, so that it has no endpoints"
	if diff := cmp.Diff([]string{"Service billing/down" + none, "Service billing/election" + none, "Service billing/shared" + none}, found); diff != "" {
		t.Error(diff)
	}
}

func TestBadSlices(t *testing.T) {
	const head = "apiVersion: scaler.mesh/v2\nkind: Mesh\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: s, namespace: a, labels: {kubernetes.io/service-name: db}}\n"
	for text, want := range map[string]string{
		"addressType: IPv5\n": `addressType "IPv5": want IPv4 or IPv6`,
		"addressType: IPv4\nendpoints: [{addresses: [\"2001:db8::1\"]}]\n":        `endpoints[0].addresses[0] "2001:db8::1": want an address of type IPv4 of another machine`,
		"addressType: IPv6\nendpoints: [{addresses: [\"::ffff:192.0.2.1\"]}]\n":   `endpoints[0].addresses[0] "::ffff:192.0.2.1": want an address of type IPv6 of another machine`,
		"addressType: IPv4\nendpoints: [{addresses: []}]\n":                       `endpoints[0].addresses 0: want 1 to 100`,
		"addressType: IPv4\nports: [{name: a, port: 1}, {name: a, port: 2}]\n":    `ports[1].name "a": want a DNS label, each once`,
		"addressType: IPv4\nports: [{port: 0}]\n":                                 `ports[0].port 0: want 1 to 65535`,
		"addressType: IPv4\nports: [{port: 1, protocol: QUIC}]\n":                 `ports[0].protocol "QUIC": want TCP, UDP or SCTP`,
		"addressType: IPv4\nendpoints: [{addresses: [192.0.2.1], weight: 1}]\n":   `unknown field "weight"`,
		"addressType: IPv4\nendpoints: [" + strings.Repeat("{},", 1001) + "{}]\n": "endpoints 1002: want 1000 at most",
	} {
		if _, err := Read("mesh.yaml", strings.NewReader(head+text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: got %v, want %s", text, err, want)
		}
	}
	unnamed := strings.Replace(head, ", labels: {kubernetes.io/service-name: db}", "", 1) + "addressType: IPv4\n"
	if _, err := Read("mesh.yaml", strings.NewReader(unnamed)); err == nil || !strings.Contains(err.Error(), `metadata.labels.kubernetes.io/service-name "": want the name of a Service`) {
		t.Errorf("of no Service: %v", err)
	}
}
