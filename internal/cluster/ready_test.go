package cluster

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// A first pod that KWOK did not take is replaced, so that a cluster starts all the same.
func TestFirstPodIsReplaced(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: firstPod, Namespace: metav1.NamespaceDefault, CreationTimestamp: metav1.NewTime(time.Now().Add(-firstPodTimeout + 10*time.Second))},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	client := fake.NewClientset(pod)
	pods := client.CoreV1().Pods(metav1.NamespaceDefault)
	f := first{client}
	if err := f.runs(t.Context()); err == nil {
		t.Error("it runs, and is Pending")
	}
	if _, err := pods.Get(t.Context(), firstPod, metav1.GetOptions{}); err != nil {
		t.Errorf("it is replaced too early: %v", err)
	}
	pod.CreationTimestamp = metav1.NewTime(time.Now().Add(-firstPodTimeout - time.Second))
	if _, err := pods.Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := f.runs(t.Context()); err == nil {
		t.Error("it runs, and is Pending")
	}
	if _, err := pods.Get(t.Context(), firstPod, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is there still: %v", err)
	}
	if err := f.runs(t.Context()); err == nil {
		t.Error("another one runs at once")
	}
	another, err := pods.Get(t.Context(), firstPod, metav1.GetOptions{})
	if err != nil {
		t.Fatalf("there is no other one: %v", err)
	}
	another.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"}
	if _, err := pods.UpdateStatus(t.Context(), another, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := f.runs(t.Context()); err != nil {
		t.Error(err)
	}
}
