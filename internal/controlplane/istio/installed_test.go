package istio

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
)

// installation returns the objects of an istiod of a revision.
func installation(revision string, ready int32) []runtime.Object {
	suffix := ""
	if revision != "default" {
		suffix = "-" + revision
	}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name + suffix, Namespace: namespace, Labels: map[string]string{"app": "istiod", revisionLabel: revision}}
	}
	replicas := int32(2)
	return []runtime.Object{
		&corev1.Service{ObjectMeta: meta("istiod")},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "istio" + suffix, Namespace: namespace}, Data: map[string]string{"mesh": "trustDomain: cluster.local\n"}},
		&appsv1.Deployment{
			ObjectMeta: meta("istiod"),
			Spec: appsv1.DeploymentSpec{
				Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{revisionLabel: revision}},
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: discoveryContainer, Image: "docker.io/istio/pilot:1.29.1-distroless", Args: []string{"discovery", "--keepaliveMaxServerConnectionAge", "30m"},
					Env: []corev1.EnvVar{{Name: "PILOT_DEBOUNCE_AFTER", Value: "200ms"}, {Name: "REVISION", Value: revision}},
				}}}},
			},
			Status: appsv1.DeploymentStatus{ReadyReplicas: ready},
		},
		&corev1.Pod{ObjectMeta: meta("istiod-1"), Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}},
		&corev1.Pod{ObjectMeta: meta("istiod-2")},
		&autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Name: "istiod" + suffix, Namespace: namespace},
			Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "istiod" + suffix}, MaxReplicas: 5},
		},
	}
}

func TestFindInstallation(t *testing.T) {
	client := fake.NewClientset(installation("default", 1)...)
	i, err := findWith(t.Context(), client, namespace, "")
	if err != nil {
		t.Fatal(err)
	}
	if text := i.Describe(); text != "istio-system/istiod, 1 of 2 replicas ready, version 1.29.1, scaled from 1 to 5 replicas by an autoscaler" {
		t.Errorf("found %q", text)
	}
	if len(i.Pods) != 1 || i.Pods[0] != "istiod-1" {
		t.Errorf("pods %v, want the ready one", i.Pods)
	}
	if i.Settings["PILOT_DEBOUNCE_AFTER"] != "200ms" || i.Settings["keepaliveMaxServerConnectionAge"] != "30m" || i.Settings["REVISION"] != "" {
		t.Errorf("settings %v", i.Settings)
	}
	if why := checkInstallation(i, controlplane.Modes["strict"]); !strings.Contains(why, "1 of 2") {
		t.Errorf("a replica that is not ready: %q", why)
	}
	if _, err := findWith(t.Context(), client, namespace, "canary"); err == nil || !strings.Contains(err.Error(), `place.revision: got "canary", want one that the cluster has: default`) {
		t.Errorf("error %v", err)
	}
	if _, err := findWith(t.Context(), fake.NewClientset(), namespace, ""); err == nil || !strings.Contains(err.Error(), "app=istiod") {
		t.Errorf("error %v", err)
	}
}

func TestFindRevisions(t *testing.T) {
	client := fake.NewClientset(append(installation("1-29-1", 2), installation("1-31-0", 2)...)...)
	if _, err := findWith(t.Context(), client, namespace, ""); err == nil || !strings.Contains(err.Error(), "1-29-1, 1-31-0") {
		t.Errorf("error %v, want one that names the revisions", err)
	}
	i, err := findWith(t.Context(), client, namespace, "1-31-0")
	if err != nil {
		t.Fatal(err)
	}
	if i.Deployment != "istiod-1-31-0" || i.Revision != "1-31-0" || checkInstallation(i, controlplane.Modes["strict"]) != "" {
		t.Errorf("found %+v", i)
	}
}

// Another trust domain, or a mesh that does not see the run's namespaces, is refused.
func TestMeshThatIsRefused(t *testing.T) {
	for field, mesh := range map[string]string{
		"trustDomain": "trustDomain: example.org", "rootNamespace": "rootNamespace: root", "discoverySelectors": "discoverySelectors: [{matchLabels: {a: b}}]",
	} {
		objects := installation("default", 2)
		objects[1].(*corev1.ConfigMap).Data["mesh"] = mesh
		if _, err := findWith(t.Context(), fake.NewClientset(objects...), namespace, ""); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: error %v", field, err)
		}
	}
}

// An istiod in another namespace is found there, and its mesh must have that namespace as root.
func TestFindInNamespace(t *testing.T) {
	objects := installation("default", 2)
	for _, o := range objects {
		o.(metav1.Object).SetNamespace("mesh")
	}
	client := fake.NewClientset(objects...)
	if _, err := findWith(t.Context(), client, namespace, ""); err == nil || !strings.Contains(err.Error(), "place.namespace") {
		t.Errorf("looking in %s: error %v, want one that names the field", namespace, err)
	}
	if _, err := findWith(t.Context(), client, "mesh", ""); err == nil || !strings.Contains(err.Error(), "rootNamespace is istio-system: want mesh") {
		t.Errorf("with another root namespace: error %v", err)
	}
	objects[1].(*corev1.ConfigMap).Data["mesh"] = "rootNamespace: mesh"
	i, err := findWith(t.Context(), fake.NewClientset(objects...), "mesh", "")
	if err != nil {
		t.Fatal(err)
	}
	if i.Namespace != "mesh" || len(i.Pods) != 1 || i.Autoscaler == nil || i.Settings["ConfigMap"] != "mesh/istio" {
		t.Errorf("found %+v", i)
	}
	for _, tc := range []struct{ namespace, revision, webhook, server string }{
		{"", "", "istio-sidecar-injector", "istiod.istio-system.svc"},
		{"istio-system", "canary", "istio-sidecar-injector-canary", "istiod-canary.istio-system.svc"},
		{"mesh", "", "istio-sidecar-injector-mesh", "istiod.mesh.svc"},
		{"mesh", "canary", "istio-sidecar-injector-canary-mesh", "istiod-canary.mesh.svc"},
	} {
		c := &ControlPlane{home: tc.namespace, opts: controlplane.StartOptions{Revision: tc.revision}}
		if c.mutatingWebhook() != tc.webhook || c.serverName() != tc.server {
			t.Errorf("%+v: %s and %s", tc, c.mutatingWebhook(), c.serverName())
		}
	}
}

// No object of a run in an existing cluster is of the root namespace, where it would reach the
// cluster's own workloads.
func TestObjectsStayInNamespacesOfTheRun(t *testing.T) {
	mesh := topology.Build(topology.Spec{Pods: 20, Services: 4, Namespaces: 2, Shape: topology.Layers, FanOut: 2, Seed: 1})
	a := attached{configuration: configuration{&ControlPlane{}}}
	for mode, knobs := range controlplane.Modes {
		authentications := 0
		for _, o := range a.Objects(mesh, knobs) {
			if o.GetNamespace() == namespace || o.GetNamespace() == "" {
				t.Errorf("%s: %s %s is in namespace %q", mode, o.GetKind(), o.GetName(), o.GetNamespace())
			}
			if o.GetKind() == "PeerAuthentication" {
				authentications++
			}
		}
		if authentications != 2 {
			t.Errorf("%s: %d PeerAuthentications, want one for each namespace", mode, authentications)
		}
	}
}
