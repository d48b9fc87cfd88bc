package controlplane

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The rules of references are those of the API's EnvVar.
func TestEnvironmentOf(t *testing.T) {
	from := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "m", Name: "p"},
		Spec: corev1.PodSpec{
			NodeName: "node-1", InitContainers: []corev1.Container{{Name: "init"}},
			Containers: []corev1.Container{{Name: "app"}, {Name: "proxy", Env: []corev1.EnvVar{
				{Name: "ns", ValueFrom: from("metadata.namespace")},
				{Name: "node", ValueFrom: from("spec.nodeName")},
				{Name: "both", Value: `{"ns":"$(ns)", "node":"$(node)"}`},
				{Name: "escaped", Value: "$$(ns) $ns $"},
				{Name: "unknown", Value: "$(later) $()"},
				{Name: "later", Value: "x"},
				{Name: "secret", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}},
				{Name: "other", ValueFrom: from("metadata.labels['a']")},
			}}},
		},
	}
	if Injected(pod, "init") != &pod.Spec.InitContainers[0] || Injected(pod, "none") != nil {
		t.Error("containers are not found by their names")
	}
	env := EnvironmentOf(pod, Injected(pod, "proxy"))
	for name, want := range map[string]string{
		"both": `{"ns":"m", "node":"node-1"}`, "escaped": "$(ns) $ns $", "unknown": "$(later) $()", "later": "x", "secret": "", "other": "",
	} {
		if got, ok := env[name]; got != want || !ok {
			t.Errorf("%s is %q, %v, want %q", name, got, ok, want)
		}
	}
}
