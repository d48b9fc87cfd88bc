package istio

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
)

func configMap(name string, data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": data}}
}

// The configuration of the mesh is that of the captured control plane, but for where the replay's own is; what differs from a
// stock installation is described.
func TestMeshConfigIsTakenOver(t *testing.T) {
	c := &ControlPlane{opts: controlplane.StartOptions{As: &capture.Revision{Name: "default", MeshConfig: map[string]any{
		"accessLogFile": "/dev/stdout", "outboundTrafficPolicy": map[string]any{"mode": "REGISTRY_ONLY"}, "rootNamespace": "mesh-system",
		"defaultConfig": map[string]any{"concurrency": int64(2), "discoveryAddress": "istiod.elsewhere.svc:15012"}, "trustDomain": "corp.example",
	}}}}
	o := configMap("istio", map[string]any{"mesh": "defaultConfig: {discoveryAddress: 'istiod.istio-system.svc:15012'}\nenablePrometheusMerge: true\nrootNamespace: istio-system\ntrustDomain: cluster.local\n"})
	if err := c.takeOver(o); err != nil {
		t.Fatal(err)
	}
	text, _, _ := unstructured.NestedString(o.Object, "data", "mesh")
	want := `accessLogFile: /dev/stdout
defaultConfig:
  concurrency: 2
  discoveryAddress: istiod.istio-system.svc:15012
outboundTrafficPolicy:
  mode: REGISTRY_ONLY
rootNamespace: mesh-system
trustDomain: cluster.local
`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Error(diff)
	}
	settings := c.Describe().Settings
	for name, value := range map[string]string{
		"meshConfig.accessLogFile": "/dev/stdout", "meshConfig.outboundTrafficPolicy.mode": "REGISTRY_ONLY", "meshConfig.defaultConfig.concurrency": "2",
		"meshConfig.rootNamespace": "mesh-system", "meshConfig.enablePrometheusMerge": "none",
	} {
		if settings[name] != value {
			t.Errorf("%s is described as %q, want %q", name, settings[name], value)
		}
	}
	if _, there := settings["meshConfig.trustDomain"]; there {
		t.Error("what is as in a stock installation is described")
	}
	stock := &ControlPlane{}
	if o := configMap("istio", map[string]any{"mesh": want}); stock.takeOver(o) != nil || stock.configured != nil {
		t.Error("a stock installation takes something over")
	}
}

// An istiod of the captured one's line injects with its templates and values; another one with those of its own version, and
// the templates that are nobody else's.
func TestInjectionIsTakenOver(t *testing.T) {
	injection := &capture.Injection{
		Config:    map[string]any{"policy": "disabled", "defaultTemplates": []any{"sidecar"}, "neverInjectSelector": []any{map[string]any{"matchLabels": map[string]any{"a": "b"}}}},
		Templates: map[string]string{"sidecar": "captured", "team-tuning": "team"},
		Values:    map[string]any{"global": map[string]any{"multiCluster": map[string]any{"clusterName": "west"}, "proxy": map[string]any{"image": "vendor"}}, "pilot": map[string]any{"env": map[string]any{"PILOT_ENABLE_AMBIENT": true}}},
	}
	for _, test := range []struct{ captured, sidecar, image, described string }{
		{"1.31.4", "captured", "vendor", "sidecar,team-tuning"},
		{"1.29.1", "stock", "proxyv2", "team-tuning"},
		{"", "stock", "proxyv2", "team-tuning"},
	} {
		c := &ControlPlane{opts: controlplane.StartOptions{As: &capture.Revision{Name: "default", Version: test.captured, Injection: injection}}, report: component.Report{Version: "1.31.0"}}
		o := configMap("istio-sidecar-injector", map[string]any{
			"config": "policy: enabled\ndefaultTemplates: [sidecar]\ntemplates: {sidecar: stock, gateway: stock}\n",
			"values": `{"global": {"multiCluster": {"clusterName": ""}, "proxy": {"image": "proxyv2"}}, "pilot": {}}`,
		})
		if err := c.takeOver(o); err != nil {
			t.Fatal(err)
		}
		config, err := yamlOf(o, "config")
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{
			"policy": "enabled", "defaultTemplates": []any{"sidecar"}, "neverInjectSelector": []any{}, "alwaysInjectSelector": []any{},
			"templates": map[string]any{"sidecar": test.sidecar, "gateway": "stock", "team-tuning": "team"},
		}
		if diff := cmp.Diff(want, config); diff != "" {
			t.Errorf("%q: %s", test.captured, diff)
		}
		values, err := yamlOf(o, "values")
		if err != nil {
			t.Fatal(err)
		}
		image, _, _ := unstructured.NestedString(values, "global", "proxy", "image")
		cluster, _, _ := unstructured.NestedString(values, "global", "multiCluster", "clusterName")
		_, ambient, _ := unstructured.NestedMap(values, "pilot", "env")
		if image != test.image || cluster != "" || ambient {
			t.Errorf("%q: values have image %q, cluster %q, settings %t", test.captured, image, cluster, ambient)
		}
		if got := c.Describe().Settings["injection.templates"]; got != test.described {
			t.Errorf("%q: described as %q, want %q", test.captured, got, test.described)
		}
	}
}

// What sidecars must hold follows from the captured configuration of the mesh: its root namespace, the namespaces that it
// discovers, and to whom services are visible that do not say so.
func TestReplayedMeshConfig(t *testing.T) {
	const sidecar = "---\napiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {name: default, namespace: root}\nspec: {egress: [{hosts: [\"./*\"]}]}\n"
	const cluster, port = "CDS outbound|80||web.b.svc.cluster.local", "RDS 80: peers.b.svc.cluster.local web.b.svc.cluster.local"
	root := strings.ReplaceAll(meshNamespace, "NAME", "root")
	wants := func(revision, objects string, workload int, env ...string) string {
		t.Helper()
		head := strings.Replace(meshHead, "kind: Mesh\n", "kind: Mesh\ncontrolPlane: {revisions: [{name: default, "+revision+"}]}\n", 1)
		mesh, err := capture.Read("mesh.yaml", strings.NewReader(head+objects))
		if err != nil {
			t.Fatal(err)
		}
		c := &ControlPlane{opts: controlplane.StartOptions{Resources: controlplane.Resources{Env: env}}}
		return strings.Join(textsOf(newReplayed(configuration{c}, &mesh), workload), "\n")
	}
	const client, gateway = 0, 1
	for _, test := range []struct {
		name, revision, objects string
		workload                int
		env                     string
		holds                   string // of all that is expected
		not                     string
	}{
		{"nothing is known", "version: 1.31.0", "", client, "", cluster, "x"},
		{"a Sidecar of the root namespace", "meshConfig: {rootNamespace: root}", root + sidecar, client, "", "LDS virtualInbound", cluster},
		{"one of another namespace", "meshConfig: {rootNamespace: elsewhere}", root + sidecar, client, "", cluster, "x"},
		{"services that are visible in their namespace", `meshConfig: {defaultServiceExportTo: ["."]}`, "", client, "", "LDS virtualInbound", cluster},
		{"namespaces that are left out", "undiscovered: [b]", "", client, "", "LDS virtualInbound", cluster},
		{"configuration of one that is left out", "undiscovered: [root], meshConfig: {rootNamespace: root}", root + sidecar, client, "", cluster, "x"},
		{"gateways", "version: 1.31.0", "", gateway, "", cluster, port},
		{"gateways with what they route alone", "version: 1.31.0", "", gateway, "PILOT_FILTER_GATEWAY_CLUSTER_CONFIG=true", "", cluster},
	} {
		got := wants(test.revision, test.objects, test.workload, strings.Fields(test.env)...)
		if !strings.Contains(got, test.holds) || strings.Contains(got, test.not) {
			t.Errorf("%s: want %q and not %q in\n%s", test.name, test.holds, test.not, got)
		}
	}
}
