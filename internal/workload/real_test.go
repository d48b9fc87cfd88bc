package workload

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
)

// A service with pods on real nodes has two Deployments, whose pods its Service selects, and only those of one tolerate
// fake nodes.
func TestManifestsOfRealPods(t *testing.T) {
	ports := []topology.Port{{Name: "http", Number: 80, Target: 8080}}
	a := &Applier{Run: "run", RealImage: "echo:1", Mesh: topology.Mesh{Namespaces: []string{"mesh"}, Services: []topology.Service{
		{Name: "a", Namespace: "mesh", Account: "a", Pods: 5, Real: 2, Ports: ports}, {Name: "b", Namespace: "mesh", Account: "b", Pods: 3, Ports: ports},
	}}}
	replicas := map[string]int32{}
	for _, object := range a.Manifests() {
		d, ok := object.(*appsv1.Deployment)
		if !ok {
			continue
		}
		replicas[d.Name] = *d.Spec.Replicas
		pod := d.Spec.Template
		for name, value := range d.Spec.Selector.MatchLabels {
			if pod.Labels[name] != value {
				t.Errorf("%s does not select its own pods: %s", d.Name, name)
			}
		}
		if pod.Labels["app"] != pod.Labels[kwok.ServiceLabel] || pod.Labels[kwok.RunLabel] != "run" {
			t.Errorf("%s: labels %v", d.Name, pod.Labels)
		}
		real := d.Name == "a-real"
		if got := pod.Labels[kwok.RealLabel] != ""; got != real || d.Labels[kwok.RealLabel] != pod.Labels[kwok.RealLabel] {
			t.Errorf("%s: labels %v, of its pods %v", d.Name, d.Labels, pod.Labels)
		}
		if (len(pod.Spec.Tolerations) == 0) != real || (pod.Spec.NodeSelector[corev1.LabelOSStable] == "linux") != real {
			t.Errorf("%s: tolerations %v, node selector %v", d.Name, pod.Spec.Tolerations, pod.Spec.NodeSelector)
		}
		if image := pod.Spec.Containers[0].Image; (image == "echo:1") != real {
			t.Errorf("%s: image %s", d.Name, image)
		}
	}
	if replicas["a"] != 3 || replicas["a-real"] != 2 || replicas["b"] != 3 || len(replicas) != 3 {
		t.Errorf("replicas %v", replicas)
	}
}
