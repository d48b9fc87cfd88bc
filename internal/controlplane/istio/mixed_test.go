package istio

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
)

// mixed returns an istiod of a mesh with both sidecars and ztunnels.
func mixed() *ControlPlane {
	c := ambiently().ControlPlane
	c.opts.Dataplane = mixedName
	return c
}

// The first, third and every other namespace have sidecars, the others ztunnels.
func TestMixedNamespaces(t *testing.T) {
	mesh := topology.Build(topology.Spec{Pods: 8, Services: 4, Namespaces: 4, FanOut: 1})
	for _, c := range []struct {
		of     *ControlPlane
		served []string
		mixed  bool
	}{
		{mixed(), []string{"mesh-1", "mesh-3"}, true},
		{ambiently().ControlPlane, mesh.Namespaces, false},
	} {
		parts := &controlplane.ControlPlane{Nodes: &controlplane.NodeProxies{Nodes: ambient{c.of}}}
		served := slices.DeleteFunc(slices.Clone(mesh.Namespaces), func(n string) bool { return !parts.ServedByNode(mesh, topology.Service{Namespace: n}) })
		if !slices.Equal(served, c.served) || parts.Mixed(mesh) != c.mixed {
			t.Errorf("ztunnels serve %v, mixed %v; want %v, %v", served, parts.Mixed(mesh), c.served, c.mixed)
		}
	}
	nodes := ambient{mixed()}
	if m, ok := nodes.Serves(mesh, "mesh-0"); ok || m.NamespaceLabels != nil || m.PodAnnotations != nil {
		t.Errorf("a namespace with sidecars has %+v", m)
	}
	if m, _ := nodes.Serves(mesh, "mesh-1"); m.NamespaceLabels["istio.io/dataplane-mode"] != "ambient" || m.PodAnnotations[redirection] != "enabled" {
		t.Errorf("a namespace with ztunnels has %+v", m)
	}
	// What limits the scope of sidecars is where there are some.
	var scoped []string
	for _, o := range (configuration{mixed()}).Objects(mesh, controlplane.Modes["strict"]) {
		if o.GetKind() == "Sidecar" {
			scoped = append(scoped, o.GetNamespace())
		}
	}
	if !slices.Equal(scoped, []string{"mesh-0", "mesh-2"}) {
		t.Errorf("there are Sidecars in %v", scoped)
	}
}

// Sidecars next to ztunnels have in addition what tunnels need, and only they.
func TestMixedSidecars(t *testing.T) {
	mesh := topology.Build(topology.Spec{Pods: 2, Services: 2, Namespaces: 2, FanOut: 1})
	names := func(c *ControlPlane) []string {
		var names []string
		for _, key := range (configuration{c}).Holds(mesh, controlplane.Modes["permissive"], 0) {
			names = append(names, key.String())
		}
		return names
	}
	alone := ambiently().ControlPlane
	alone.opts.Dataplane = ""
	more := slices.DeleteFunc(names(mixed()), func(name string) bool { return slices.Contains(names(alone), name) })
	slices.Sort(more)
	if diff := cmp.Diff([]string{"CDS connect_originate", "CDS main_internal", "LDS connect_originate", "LDS connect_terminate", "LDS main_internal"}, more); diff != "" {
		t.Errorf("in addition they hold (-want +got):\n%s", diff)
	}

	keys, all := ambient{mixed()}.Discovered([]string{"mesh-1/p"})
	want := []convergence.Key{{Type: workloadType, Name: "Kubernetes/discovery.k8s.io/EndpointSlice/default/kubernetes/10.0.0.1"}, {Type: workloadType, Name: "Kubernetes//Pod/mesh-1/p"}}
	if !slices.Equal(keys, want) || all {
		t.Errorf("they discover %v, all %v", keys, all)
	}
	unscoped := mixed()
	unscoped.opts.Resources.Env = []string{scopedSetting + "=false"}
	if _, all := (ambient{unscoped}).Discovered(nil); !all {
		t.Error("they lack workloads although pushes of addresses are not scoped")
	}
	if keys, all := ambiently().Discovered([]string{"mesh-1/p"}); keys != nil || !all {
		t.Errorf("without sidecars %v are discovered", keys)
	}
}

func TestMixedDriver(t *testing.T) {
	d, err := Driver().Of(mixedName, "")
	if err != nil {
		t.Fatal(err)
	}
	if !d.Mixed || d.Modes[1].Knobs.Scope != "declared" || d.Proxy.CheckVersion == nil || d.Latency != nil || !d.Revisions {
		t.Errorf("it is %+v", d)
	}
	for _, name := range []string{"Address", "Authorization", "CDS", "EDS", "LDS", "RDS"} {
		if d.Metrics.Counters.Responses[convergence.TypeOf(name)] == "" {
			t.Errorf("istiod's count of %s is not read", name)
		}
	}
	if _, err := Driver().Of(mixedName, controlplane.NamespaceWaypoints); err == nil || !strings.Contains(err.Error(), "mesh.dataplane mixed") {
		t.Errorf("with waypoints the error is %v", err)
	}
}

// Sidecars are injected with what the ambient profile has for them, and their agents act on it.
func TestMixedMetadata(t *testing.T) {
	config := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"mesh": "defaultConfig:\n  discoveryAddress: istiod:15012\nenablePrometheusMerge: true\n"}}}
	if err := mixed().adaptMeshConfig(config); err != nil {
		t.Fatal(err)
	}
	text, _, _ := unstructured.NestedString(config.Object, "data", "mesh")
	want := "defaultConfig:\n  discoveryAddress: istiod:15012\n  proxyMetadata:\n    ISTIO_META_ENABLE_HBONE: \"true\"\nenablePrometheusMerge: true\n"
	if text != want {
		t.Errorf("the mesh configuration is\n%s", text)
	}
	if value := mixed().Describe().Settings["meshConfig.defaultConfig.proxyMetadata.ISTIO_META_ENABLE_HBONE"]; value != "true" {
		t.Errorf("the record says %q", value)
	}

	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "mesh-0", Name: "p", Labels: map[string]string{"app": "svc-0"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: proxyContainer, Env: []corev1.EnvVar{{Name: hboneSetting, Value: "true"}}}}},
		Status:     corev1.PodStatus{PodIP: "10.64.0.1"},
	}
	spec, err := mixed().Spec(pod)
	if err != nil {
		t.Fatal(err)
	}
	if spec.Node != "" || spec.Metadata["ENABLE_HBONE"] != "true" || spec.Metadata["METADATA_DISCOVERY"] != "true" {
		t.Errorf("a sidecar is %+v", spec)
	}
	pod.Spec.Containers[0].Env = nil
	if spec, err = mixed().Spec(pod); err != nil || spec.Metadata["METADATA_DISCOVERY"] != "false" {
		t.Errorf("a sidecar without it is %+v, %v", spec, err)
	}
	ztunnel := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ztunnel-x", Labels: map[string]string{"app": ztunnelName}},
		Spec:       corev1.PodSpec{NodeName: "node-3"}, Status: corev1.PodStatus{PodIP: "10.64.0.9"},
	}
	if spec, err = mixed().Spec(ztunnel); err != nil || spec.Node != "node-3" {
		t.Errorf("a ztunnel is %+v, %v", spec, err)
	}
}
