package capture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/test/golden"
)

// written returns a mesh as its file.
func written(t *testing.T, m Mesh) string {
	t.Helper()
	var text bytes.Buffer
	if err := m.Write(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func shop(t *testing.T) Mesh {
	t.Helper()
	m, err := FromFiles(t.Context(), filepath.Join("testdata", "cluster.yaml"), filepath.Join("testdata", "configuration.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func read(t *testing.T, text string) Mesh {
	t.Helper()
	m, err := Read("mesh.yaml", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestCapture(t *testing.T) {
	m := shop(t)
	golden.Compare(t, filepath.Join("testdata", "mesh.yaml"), written(t, m))
	var summary bytes.Buffer
	if err := m.Summary(&summary); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "summary.txt"), summary.String())
	for _, secret := range []string{"hunter2", "aHVudGVyMg", "registry.example", "managedFields", "uid:", "status:"} {
		if strings.Contains(written(t, m), secret) {
			t.Errorf("the file holds %q", secret)
		}
	}
}

// What is written is read as it was.
func TestRoundTrip(t *testing.T) {
	m := shop(t)
	text := written(t, m)
	again := read(t, text)
	if diff := cmp.Diff(text, written(t, again)); diff != "" {
		t.Errorf("written, read and written again differs:\n%s", diff)
	}
	if diff := cmp.Diff(m, again, cmpopts.IgnoreUnexported(Mesh{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("read is not what was written:\n%s", diff)
	}
	if m.Endpoints() != again.Endpoints() || m.Endpoints() == 0 {
		t.Errorf("%d endpoints, want the same and some: %d", again.Endpoints(), m.Endpoints())
	}
}

// A capture of a replayed mesh equals the captured mesh, except for the owners of the pods.
func TestReplayOfCapture(t *testing.T) {
	proxies := meshOfText(t, `{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio.io/dataplane-mode: ambient}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: pay, labels: {istio-injection: enabled}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: proxy-alone, namespace: pay, labels: {app: a}}, spec: {containers: [{name: istio-proxy, args: [proxy, sidecar]}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: waypoint, namespace: pay, labels: {app: b}}, spec: {containers: [{name: istio-proxy, args: [proxy, waypoint], ports: [{name: status, containerPort: 15021}]}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: tunnel, namespace: pay, labels: {app: c}}, spec: {containers: [{name: istio-proxy, args: [proxy, ztunnel]}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: redirected, namespace: pay, labels: {app: d}, annotations: {ambient.istio.io/redirection: enabled}}, spec: {containers: [{name: app}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: of-host, namespace: shop}, spec: {template: {metadata: {labels: {app: e}}, spec: {hostNetwork: true, containers: [{name: app}]}}}}
`)
	if want := map[Proxy]int{Sidecar: 1, Waypoint: 1, Ztunnel: 1, Ambient: 1, NoProxy: 1}; !maps.Equal(proxies.Pods(), want) {
		t.Fatalf("pods are %v, want %v", proxies.Pods(), want)
	}
	for name, m := range map[string]Mesh{"shop": shop(t), "sixty pods": sixty(t), "endpoints": billing(t), "proxies": proxies} {
		again := replayOf(t, m)
		m.Header, again.Header = Header{}, Header{}
		if diff := cmp.Diff(written(t, m), written(t, again)); diff != "" {
			t.Errorf("%s: a replay is captured as another mesh:\n%s", name, diff)
		}
	}
}

// replayOf returns the mesh that is captured of a replay of m.
func replayOf(t *testing.T, m Mesh) Mesh {
	t.Helper()
	g := NewGatherer()
	add := func(o *unstructured.Unstructured) {
		t.Helper()
		if err := g.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range append(m.Surroundings(map[string]string{injectionLabel: "enabled"}), m.Objects...) {
		add(o)
	}
	for _, z := range m.Zones() {
		add(topologyNode(z))
	}
	for i := range m.Workloads {
		w := &m.Workloads[i]
		metadata := map[string]any{"name": w.Name, "namespace": w.Namespace}
		if annotations := w.Annotations(); annotations != nil {
			metadata["annotations"] = untyped(annotations)
		}
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": map[string]any{"replicas": int64(w.Spec.Replicas)},
		}}
		if err := unstructured.SetNestedField(o.Object, toMap(t, w.Template()), "spec", "template"); err != nil {
			t.Fatal(err)
		}
		add(o)
		for _, z := range w.Spec.Zones {
			for n := range z.Pods {
				add(replayed(t, w, z, n))
			}
		}
	}
	return g.Mesh()
}

// sixty returns the mesh of sixty pods that an end-to-end test rolls out.
func sixty(t *testing.T) Mesh {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "test", "e2e", "testdata", "sixty", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got files %v, %v", files, err)
	}
	m, err := FromFiles(t.Context(), files...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// topologyNode returns a node of a zone.
func topologyNode(z Zone) *unstructured.Unstructured {
	labels := map[string]any{corev1.LabelTopologyZone: z.Zone}
	if z.Region != "" {
		labels[corev1.LabelTopologyRegion] = z.Region
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "node-" + z.Zone, "labels": labels}}}
}

// replayed returns a pod of a replay as the API server has it, with its node's zone among its labels.
func replayed(t *testing.T, w *Workload, z Zone, n int) *unstructured.Unstructured {
	t.Helper()
	template := w.Template()
	labels := untyped(template.Labels)
	labels["pod-template-hash"], labels[corev1.LabelTopologyZone] = "1", z.Zone
	if z.Region != "" {
		labels[corev1.LabelTopologyRegion] = z.Region
	}
	spec, _ := toMap(t, template)["spec"].(map[string]any)
	spec["nodeName"] = "node-" + z.Zone
	if containers, _ := spec["containers"].([]any); w.Spec.Proxy == Sidecar {
		spec["containers"] = append(containers, map[string]any{"name": proxyContainer, "args": []any{"proxy", "sidecar"}})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "spec": spec,
		"metadata": map[string]any{
			"name": fmt.Sprintf("%s-1-%s-%d", w.Name, z.Zone, n), "namespace": w.Namespace, "labels": labels, "annotations": untyped(template.Annotations),
			"ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": w.Name + "-1", "uid": "1", "controller": true}},
		},
	}}
}

func TestBadFiles(t *testing.T) {
	good := written(t, shop(t))
	header := "apiVersion: scaler.mesh/v2\nkind: Mesh\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n---\n"
	workload := header + "apiVersion: scaler.mesh/v2\nkind: Workload\nmetadata: {name: cart, namespace: shop}\nspec: {owner: Deployment, proxy: sidecar, replicas: "
	service := header + "apiVersion: v1\nkind: Service\nmetadata: {name: cart, namespace: shop}\nspec: "
	tests := []struct{ name, text, want string }{
		{"empty", "", "mesh.yaml: it is empty: want a mesh, as 'scaler capture' writes it"},
		{"a list", "apiVersion: v1\nkind: List\nitems: []\n", `mesh.yaml: document 1: apiVersion "v1", kind "List": want scaler.mesh/v2 and Mesh first, as 'scaler capture' writes it`},
		{"another format", "apiVersion: scaler.mesh/v1\nkind: Mesh\n", "mesh.yaml: document 1: it is of format scaler.mesh/v1: want scaler.mesh/v2; capture the mesh again"},
		{"no proxy", strings.Replace(workload, "sidecar", "envoy", 1) + "1}\n", `mesh.yaml: document 3: Workload shop/cart: spec.proxy "envoy": want none, sidecar, gateway, ambient, ztunnel or waypoint`},
		{"a container twice", workload + "1, containers: [{name: a}, {name: a}]}\n", `mesh.yaml: document 3: Workload shop/cart: spec.containers[1].name "a": want a DNS label that no other container has`},
		{"a port's name twice", workload + "1, containers: [{name: a, ports: [{name: x, port: 1}, {name: x, port: 2}]}]}\n", `mesh.yaml: document 3: Workload shop/cart: spec.containers[0].ports[1].name "x": want the name of a port, each once in a container`},
		{"a service's port twice", service + "{ports: [{name: a, port: 80}, {name: b, port: 80}]}\n", "mesh.yaml: document 3: Service shop/cart: spec.ports[1].port 80: want each port of a protocol once"},
		{"no YAML", header + "a: [", "mesh.yaml: document 3: line 1: did not find expected node content"},
		{"a key twice", header + "kind: Service\nkind: Service\n", `mesh.yaml: document 3: unmarshal errors:`},
		{"unknown kind", header + "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: shop}\n", `mesh.yaml: document 3: Secret of "v1": want a kind that is captured: Namespace, Service, Workload, DestinationRule,`},
		{"twice", good + "---\napiVersion: v1\nkind: Service\nmetadata: {name: cart, namespace: shop}\n", "Service shop/cart: it is in document"},
		{"replicas", workload + "0}\n", "mesh.yaml: document 3: Workload shop/cart: spec.replicas 0: want 1 to 100000"},
		{"replicas as text", workload + "many}\n", "mesh.yaml: document 3: Workload shop/cart: spec.replicas string: want a whole number"},
		{"unknown field", workload + "1, image: x}\n", `mesh.yaml: document 3: Workload shop/cart: unknown field "image"`},
		{"port", service + "{ports: [{port: 99999}]}\n", "mesh.yaml: document 3: Service shop/cart: spec.ports[0].port 99999: want 1 to 65535"},
		{"protocol", service + "{ports: [{port: 80, protocol: HTTP}]}\n", `mesh.yaml: document 3: Service shop/cart: spec.ports[0].protocol "HTTP": want TCP, UDP or SCTP`},
		{"type", service + "{type: Public, ports: [{port: 80}]}\n", `mesh.yaml: document 3: Service shop/cart: spec.type "Public": want ClusterIP, NodePort, LoadBalancer or ExternalName`},
		{"address", service + "{clusterIP: 10.0.0.1, ports: [{port: 80}]}\n", `mesh.yaml: document 3: Service shop/cart: spec.clusterIP "10.0.0.1": want None, or none: the replay gives services their addresses`},
		{"namespace", strings.ReplaceAll(service, "{name: shop}", "{name: store}") + "{ports: [{port: 80}]}\n", `mesh.yaml: document 3: Service shop/cart: metadata.namespace "shop": want a Namespace of the file`},
		{"status", header + "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {name: s, namespace: shop}\nspec: {}\nstatus: {}\n", "mesh.yaml: document 3: Sidecar shop/s: field status: want apiVersion, kind, metadata and spec alone"},
		{"a class of no controller", header + "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: istio}\n", `mesh.yaml: document 3: GatewayClass istio: spec.controllerName "": want the name of a controller`},
		{"no specification", header + "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {name: s, namespace: shop}\nspec: all\n", `mesh.yaml: document 3: Sidecar shop/s: spec "all": want an object, or none`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Read("mesh.yaml", strings.NewReader(test.text))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

func TestFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"just text":                       "document 1: want objects",
		"a: b":                            "document 1: want apiVersion and kind",
		"apiVersion: v1\nkind: ConfigMap": "nothing of the files can be captured",
		"apiVersion: v1\nkind: Service\nmetadata: {name: cart}": `as 'kubectl get -A -o yaml' prints them; left out: services: a cluster would refuse it: Service default/cart: spec.ports "[]": want a port at least`,
		"apiVersion: v1\nkind: Service\nspec: {ports: 5}":       "document 1: Service ",
	} {
		path := filepath.Join(dir, "file.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := FromFiles(t.Context(), path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// The references of one route are in the same order each time.
func TestDanglingOrder(t *testing.T) {
	to := func(host string) map[string]any { return map[string]any{"host": host} }
	route := map[string]any{}
	for _, protocol := range []string{"http", "tcp", "tls"} {
		route[protocol] = []any{map[string]any{"mirror": to(protocol + "-mirror"), "route": []any{map[string]any{"destination": to(protocol + "-route")}}}}
	}
	m := Mesh{Objects: []*unstructured.Unstructured{{Object: object("networking.istio.io/v1", "VirtualService", "shop", "cart", route)}}}
	var found []string
	for _, r := range m.Dangling() {
		found = append(found, r.To)
	}
	if want := []string{"http-mirror", "http-route", "tcp-mirror", "tcp-route", "tls-mirror", "tls-route"}; !slices.Equal(found, want) {
		t.Errorf("refers to %v, want %v", found, want)
	}
}

func TestDangling(t *testing.T) {
	m := shop(t)
	if found := m.Dangling(); len(found) != 1 || found[0].To != "gone" {
		t.Errorf("dangling %v, want the host gone alone", found)
	}
	m.Services = slices.DeleteFunc(m.Services, func(s corev1.Service) bool { return s.Name == "cart" })
	var found []string
	for _, r := range m.Dangling() {
		found = append(found, r.String())
	}
	want := []string{
		"DestinationRule shop/cart: spec.host: cart",
		"VirtualService shop/cart: destination.host: cart.shop.svc.cluster.local",
		"VirtualService shop/cart: mirror.host: gone",
		"HTTPRoute shop/cart: backendRefs: shop/cart",
	}
	slices.Sort(found)
	slices.Sort(want)
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("dangling references differ:\n%s", diff)
	}
}

func TestTimes(t *testing.T) {
	m := shop(t)
	three, err := m.Times(3)
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "scaled.yaml"), written(t, three))
	var one, many int
	for _, n := range m.Namespaces {
		if !(&m).once(n.Name) {
			one++
		}
	}
	many = len(three.Namespaces) - (len(m.Namespaces) - one)
	if many != 3*one || len(three.Dangling()) != 3*len(m.Dangling()) {
		t.Errorf("%d namespaces, %d dangling references, want three of each: %d, %d", many, len(three.Dangling()), one, len(m.Dangling()))
	}
	for _, n := range []int{0, -1, MaxScale + 1} {
		if _, err := m.Times(n); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("mesh.scale: got %d, want 1 to 100", n)) {
			t.Errorf("times %d: %v", n, err)
		}
	}
	m.Namespaces = append(m.Namespaces, Namespace{Name: "shop-2"})
	if _, err := m.Times(2); err == nil || !strings.Contains(err.Error(), "would be shop-2") {
		t.Errorf("with a namespace of that name: %v", err)
	}
}

func TestAnonymize(t *testing.T) {
	m, plain := shop(t), shop(t)
	if err := m.Anonymize(); err != nil {
		t.Fatal(err)
	}
	text := written(t, m)
	golden.Compare(t, filepath.Join("testdata", "anonymized.yaml"), text)
	for _, name := range []string{"shop", "cart", "front", "example.com", "checkout", "secret-path", "x-tenant", "203.0.113", "eu-west", "stable"} {
		if strings.Contains(text, name) {
			t.Errorf("the file holds %q", name)
		}
	}
	read(t, text)
	// References are intact: the same number of endpoints, and nothing dangles that did not.
	if m.Endpoints() != plain.Endpoints() || len(m.Dangling()) != len(plain.Dangling()) {
		t.Errorf("%d endpoints and %v dangling, want %d and %v", m.Endpoints(), m.Dangling(), plain.Endpoints(), plain.Dangling())
	}
	again := shop(t)
	if err := again.Anonymize(); err != nil || written(t, again) != text {
		t.Errorf("the same mesh has other hashes: %v", err)
	}
}

// A hash that collides is replaced by another one, and names with equal hashes are refused.
func TestCollisions(t *testing.T) {
	m, plain := shop(t), shop(t)
	weak := func(text string, n int) string {
		if strings.Contains(text, "\x00") { // another attempt
			return digest(text, n)
		}
		return strings.Repeat("a", n)
	}
	if err := m.anonymize(weak); err != nil {
		t.Fatal(err)
	}
	if m.Endpoints() != plain.Endpoints() || len(m.Dangling()) != len(plain.Dangling()) || len(m.Namespaces) != len(plain.Namespaces) {
		t.Errorf("references are lost: %d endpoints, want %d; dangling %v", m.Endpoints(), plain.Endpoints(), m.Dangling())
	}
	m = shop(t)
	if err := m.anonymize(func(_ string, n int) string { return strings.Repeat("a", n) }); err == nil || !strings.Contains(err.Error(), "hashes of a name are those of other names") {
		t.Errorf("hashes that are all alike: %v", err)
	}
}

func toMap(t *testing.T, object any) map[string]any {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	of := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &of.Object); err != nil {
		t.Fatal(err)
	}
	return whole(of).Object
}
