package latency

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/place/attach"
	"scaler.mesh/scaler/internal/place/existing"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/test/golden"
)

var _ = It("validates what is asked in an existing cluster", func() {
	t := GinkgoTB()
	for want, change := range map[string]func(*Spec){
		"":                                      func(*Spec) {},
		`latency.image: got "", want the image`: func(s *Spec) { s.Latency.Image = "" },
		`latency.placement: got "one-node", want each value once`:             func(s *Spec) { s.Latency.Placement = scenario.List[string]{OneNode, OneNode} },
		`latency.nodes: got "a", want each value once`:                        func(s *Spec) { s.Latency.Nodes = scenario.List[string]{"a", "a"} },
		`latency.nodes: got "a,b,c", want one or two nodes`:                   func(s *Spec) { s.Latency.Nodes = scenario.List[string]{"a", "b", "c"} },
		"latency.killServerEvery: got 2s, want none with place.context":       func(s *Spec) { s.Latency.KillServerEvery = 2e9 },
		`controlPlane.name: got "linkerd", want one whose sidecars`:           func(s *Spec) { s.ControlPlane.Name, s.Latency.Variants = "linkerd", scenario.List[string]{VariantNone} },
		`controlPlane.name: got "osm", want one whose sidecars`:               func(s *Spec) { s.ControlPlane.Name = "osm" },
		`controlPlane.version: got "1.30", want none with place.context`:      func(s *Spec) { s.ControlPlane.Version = "1.30" },
		`latency.proxy: got "p", want none with place.context, whose cluster`: func(s *Spec) { s.Latency.Proxy = "p" },
	} {
		s := DefaultSpec()
		s.Existing, s.Latency.Image = &attach.Place{}, "scaler:1"
		change(&s)
		err := s.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%v: want %q", err, want)
		}
	}
	s := DefaultSpec()
	s.Existing, s.Latency.Image = &attach.Place{}, "scaler:1"
	if _, err := Run(t.Context(), s, Progress{}); err == nil || !strings.Contains(err.Error(), "was not inspected") {
		t.Errorf("without a look at the cluster: %v", err)
	}
})

// node returns a node that takes pods, with a change.
func node(name string, change func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: "linux", corev1.LabelHostname: name + ".example"}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	if change != nil {
		change(n)
	}
	return n
}

var _ = It("chooses the nodes of a placement", func() {
	t := GinkgoTB()
	unusable := []*corev1.Node{
		node("a-control", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
		}),
		node("a-cordoned", func(n *corev1.Node) { n.Spec.Unschedulable = true }),
		node("a-fake", func(n *corev1.Node) { n.Annotations = map[string]string{kwok.NodeAnnotation: kwok.FakeNode} }),
		node("a-gone", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }),
		node("a-windows", func(n *corev1.Node) { n.Labels[corev1.LabelOSStable] = "windows" }),
	}
	prefers := func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Effect: corev1.TaintEffectPreferNoSchedule}} }
	for name, c := range map[string]struct {
		able              []*corev1.Node
		named, placements []string
		want, nodes       string
	}{
		"none":               {nil, nil, nil, "the cluster has no node that is ready", ""},
		"one":                {[]*corev1.Node{node("b", nil)}, nil, nil, "one-node", "b"},
		"two":                {[]*corev1.Node{node("c", nil), node("b", prefers)}, nil, nil, "one-node,two-nodes", "b, c"},
		"two, one asked for": {[]*corev1.Node{node("c", nil), node("b", nil)}, nil, []string{OneNode}, "one-node", "b"},
		"two asked for":      {[]*corev1.Node{node("b", nil)}, nil, []string{TwoNodes}, `latency.placement: got "two-nodes", want one-node: of the nodes, only b`, ""},
		"named":              {[]*corev1.Node{node("b", nil), node("c", nil), node("d", nil)}, []string{"d", "b"}, nil, "one-node,two-nodes", "d, b"},
		"one named":          {[]*corev1.Node{node("b", nil), node("c", nil)}, []string{"c"}, nil, "one-node", "c"},
		"unusable named":     {[]*corev1.Node{node("b", nil)}, []string{"a-fake"}, nil, `latency.nodes: got "a-fake", want nodes that are ready, run Linux and have no taints: b`, ""},
	} {
		client := fake.NewClientset()
		for _, n := range append(c.able, unusable...) {
			if _, err := client.CoreV1().Nodes().Create(context.Background(), n, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		f := &Found{client: client}
		placements, err := f.chooseNodes(t.Context(), c.named, c.placements)
		got := list(placements)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) || nodeNames(f.Nodes) != c.nodes {
			t.Errorf("%s: %s on %q, want %s on %q", name, got, nodeNames(f.Nodes), c.want, c.nodes)
		}
	}
})

// The objects of a chain are those that were looked at once.
var _ = It("states the objects in a cluster", func() {
	t := GinkgoTB()
	s := DefaultSpec()
	s.Latency.Topology, s.Latency.Chain, s.Latency.Servers = ChainTopology, scenario.List[scenario.Duration]{1e6, 0}, 1
	s.Latency.Variants, s.Latency.Placement = []string{VariantStrict}, []string{TwoNodes}
	s.Latency.Image, s.Existing = "registry.example/scaler:1", &attach.Place{ID: "3f9a1c", Target: attach.Target{Target: existing.Target{Context: "staging"}}}
	driver := drivers.Default()
	f := &Found{Found: &attach.Found{Run: "latency-3f9a1c"}, Nodes: []corev1.Node{*node("a", nil), *node("b", nil)}, adapter: adapterOf(t, driver, "")}
	var text strings.Builder
	strict, _ := driver.Mode(VariantStrict)
	for _, v := range []*clusterVariant{{variant: VariantNone}, {variant: VariantStrict, knobs: strict.Knobs}} {
		v.plan(s, f, nil, driver.Installed.Sidecar)
		objects := v.applier.SurroundingManifests()
		for _, p := range v.pods() {
			objects = append(objects, p.manifest)
		}
		for _, o := range objects {
			document, err := yaml.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			text.WriteString("---\n" + string(document))
		}
	}
	golden.Compare(t, filepath.Join("testdata", "cluster-chain.yaml"), text.String())
})

// The name of a service's port is what Istio knows the protocol between sidecars by: with HTTP/2, one named http would
// be measured as HTTP/1.1.
var _ = It("names the ports of a cluster as each mesh needs", func() {
	t := GinkgoTB()
	driver := drivers.Default()
	for http, want := range map[int]string{1: "http", 2: "http2"} {
		s := DefaultSpec()
		s.Latency.HTTP, s.Latency.Variants, s.Latency.Placement = http, []string{VariantStrict}, []string{OneNode}
		s.Latency.Image, s.Existing = "registry.example/scaler:1", &attach.Place{ID: "3f9a1c"}
		v := &clusterVariant{variant: VariantStrict}
		f := &Found{Found: &attach.Found{Run: "latency-3f9a1c"}, Nodes: []corev1.Node{*node("a", nil)}, adapter: adapterOf(t, driver, "")}
		v.plan(s, f, nil, driver.Installed.Sidecar)
		ports := v.tiers[0][0][0].service.Ports
		if len(ports) != 1 || ports[0].Name != want {
			t.Errorf("HTTP/%d: ports %v, want one named %s", http, ports, want)
		}
	}
})

// Pods are injected by the revision that was asked for, which they name, and those without a sidecar by none.
var _ = It("runs pods of the revision that injects them", func() {
	t := GinkgoTB()
	driver := drivers.Default()
	s := DefaultSpec()
	s.Latency.Variants, s.Latency.Placement = []string{VariantStrict}, []string{OneNode}
	s.Latency.Image, s.Existing = "registry.example/scaler:1", &attach.Place{ID: "3f9a1c"}
	f := &Found{Found: &attach.Found{Run: "latency-3f9a1c"}, Nodes: []corev1.Node{*node("a", nil)}, adapter: adapterOf(t, driver, "canary")}
	for variant, want := range map[string]string{VariantStrict: "canary", VariantNone: ""} {
		v := &clusterVariant{variant: variant}
		v.plan(s, f, nil, driver.Installed.Sidecar)
		for _, p := range v.pods() {
			if got := p.manifest.Labels["istio.io/rev"]; got != want {
				t.Errorf("%s: pod %s is of revision %q, want %q", variant, p.manifest.Name, got, want)
			}
		}
	}
})

// adapterOf returns the adapter of an istiod of a revision or ("") the only one, of which only the root certificate and the
// injector can be read.
func adapterOf(t testing.TB, d controlplane.Driver, revision string) *controlplane.ControlPlane {
	t.Helper()
	injector := "istio-sidecar-injector"
	if revision != "" {
		injector += "-" + revision
	}
	mux := http.NewServeMux()
	for path, object := range map[string]any{
		"/api/v1/namespaces/istio-system/configmaps/istio-ca-root-cert":                   &corev1.ConfigMap{Data: map[string]string{"root-cert.pem": "a root"}},
		"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/" + injector: &admissionv1.MutatingWebhookConfiguration{},
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(object); err != nil {
				t.Error(err)
			}
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	a, err := d.Installed.Attach(t.Context(), controlplane.AttachOptions{REST: &rest.Config{Host: server.URL}, Installation: controlplane.Installation{Version: "1.31.0", Namespace: "istio-system", Revision: revision}})
	if err != nil {
		t.Fatal(err)
	}
	return a
}
