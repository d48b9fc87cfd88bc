package workload

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

// A DaemonSet keeps the labels and annotations of its template, and has those of the patch and a new time of its restart in addition.
func TestRestartPatch(t *testing.T) {
	client := fake.NewClientset(&appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "ztunnel", Namespace: "istio-system"},
		Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{"app": "ztunnel"}, Annotations: map[string]string{"istio.io/rev": "1-29-1", restartedAt: "before"},
		}}},
	})
	at := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	patch, err := RestartPatch(map[string]string{"more": "labels"}, map[string]string{"istio.io/rev": "1-31-0"}, at)
	if err != nil {
		t.Fatal(err)
	}
	moved, err := client.AppsV1().DaemonSets("istio-system").Patch(t.Context(), "ztunnel", types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	of := moved.Spec.Template
	if of.Labels["app"] != "ztunnel" || of.Labels["more"] != "labels" || of.Annotations["istio.io/rev"] != "1-31-0" || of.Annotations[restartedAt] != "2026-11-28T12:00:00Z" {
		t.Errorf("got %v, %v", of.Labels, of.Annotations)
	}
}
