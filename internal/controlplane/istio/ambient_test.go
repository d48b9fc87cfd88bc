package istio

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
)

// ambiently returns an istiod with ztunnels, and one service besides the mesh's.
func ambiently() ambient {
	return ambient{&ControlPlane{
		opts: controlplane.StartOptions{Dataplane: Ambient}, report: component.Report{Version: "1.31.0", Text: "1.31.0"},
		others:  []otherService{{namespace: "default", host: "kubernetes.default.svc.cluster.local"}},
		podless: []string{"Kubernetes/discovery.k8s.io/EndpointSlice/default/kubernetes/10.0.0.1"},
	}}
}

func TestAmbientExpectations(t *testing.T) {
	mesh := topology.Build(topology.Spec{Pods: 2, Services: 2, Namespaces: 1, FanOut: 1})
	for _, c := range []struct {
		mode  string
		extra []string
	}{
		{"permissive", nil},
		{"strict", []string{
			"Authorization istio-system/istio_converted_static_strict",
			"Authorization mesh-0/nobody-to-svc-0",
			"Authorization mesh-0/svc-0-to-svc-1",
		}},
	} {
		mode, ok := ambientDataplane().Mode(c.mode)
		if !ok {
			t.Fatalf("there is no mode %s", c.mode)
		}
		var wants []string
		for _, w := range ambiently().Wants(mesh, mode.Knobs) {
			text := w.String()
			if w.Service != "" {
				text += " of " + w.Service
			}
			wants = append(wants, text)
		}
		slices.Sort(wants)
		expected := append([]string{
			"Address default/kubernetes.default.svc.cluster.local",
			"Address endpoints of mesh-0/svc-0.mesh-0.svc.cluster.local:80 of mesh-0/svc-0:http",
			"Address endpoints of mesh-0/svc-1.mesh-0.svc.cluster.local:80 of mesh-0/svc-1:http",
			"Address mesh-0/svc-0.mesh-0.svc.cluster.local",
			"Address mesh-0/svc-1.mesh-0.svc.cluster.local",
			"Address workloads without a service of pods without a service:",
		}, c.extra...)
		slices.Sort(expected)
		if diff := cmp.Diff(expected, wants); diff != "" {
			t.Errorf("%s: wants (-want +got):\n%s", c.mode, diff)
		}
		var holds []string
		for _, key := range ambiently().Holds(mesh, mode.Knobs, []string{"mesh-0/p"}) {
			holds = append(holds, key.String())
		}
		slices.Sort(holds)
		expected = append([]string{
			"Address Kubernetes//Pod/mesh-0/p",
			"Address Kubernetes/discovery.k8s.io/EndpointSlice/default/kubernetes/10.0.0.1",
			"Address default/kubernetes.default.svc.cluster.local",
			"Address mesh-0/svc-0.mesh-0.svc.cluster.local",
			"Address mesh-0/svc-1.mesh-0.svc.cluster.local",
		}, c.extra...)
		slices.Sort(expected)
		if diff := cmp.Diff(expected, holds); diff != "" {
			t.Errorf("%s: holds (-want +got):\n%s", c.mode, diff)
		}
	}
}

func TestAmbientNode(t *testing.T) {
	spec, err := ambiently().Spec(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ztunnel-x", UID: "1", Labels: map[string]string{"app": ztunnelName}},
		Spec:       corev1.PodSpec{NodeName: "node-3", ServiceAccountName: ztunnelName},
		Status:     corev1.PodStatus{PodIP: "10.64.0.9"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := "ztunnel~10.64.0.9~ztunnel-x.istio-system~istio-system.svc.cluster.local"; spec.NodeID != want {
		t.Errorf("its node is %s, want %s", spec.NodeID, want)
	}
	if spec.Node != "node-3" || spec.Metadata["NODE_NAME"] != "node-3" || spec.Token.ServiceAccount != ztunnelName || spec.Token.Audience != tokenAudience {
		t.Errorf("it is %+v", spec)
	}
}

// Runs with sidecars have none of ambient mode's settings.
func TestSidecarsHaveNoAmbientSettings(t *testing.T) {
	if slices.Contains(new(ControlPlane).environment("istiod"), ambientSetting+"=true") {
		t.Errorf("%s is set without ambient mode", ambientSetting)
	}
	c := ambiently().ControlPlane
	if !slices.Contains(c.environment("istiod"), ambientSetting+"=true") {
		t.Errorf("%s is not set in ambient mode", ambientSetting)
	}
	if parts := (&ControlPlane{first: &instance{}}).Parts(); parts.Nodes != nil {
		t.Error("nodes have proxies without ambient mode")
	}
	if _, err := Driver().Of("other", ""); err == nil {
		t.Error("a data plane that there is not is one of the driver's")
	}
	if d, err := Driver().Of(controlplane.Sidecars, controlplane.NoWaypoints); err != nil || d.Modes[1].Knobs.Scope != "declared" {
		t.Errorf("with sidecars the driver is another: %v", err)
	}
}
