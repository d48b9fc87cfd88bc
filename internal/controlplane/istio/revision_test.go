package istio

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/controlplane"
)

// The label of a pod says which revision injected it. ztunnels and waypoints, which nobody injects, have an annotation.
func TestServes(t *testing.T) {
	of := aRevision{&ControlPlane{opts: controlplane.StartOptions{Revision: "1-31-0"}}}
	for name, c := range map[string]struct {
		meta metav1.ObjectMeta
		want bool
	}{
		"label":            {metav1.ObjectMeta{Labels: map[string]string{revisionLabel: "1-31-0"}}, true},
		"annotation":       {metav1.ObjectMeta{Annotations: map[string]string{revisionLabel: "1-31-0"}}, true},
		"the label counts": {metav1.ObjectMeta{Labels: map[string]string{revisionLabel: "1-29-1"}, Annotations: map[string]string{revisionLabel: "1-31-0"}}, false},
		"neither":          {metav1.ObjectMeta{}, false},
	} {
		if got := of.Serves(&corev1.Pod{ObjectMeta: c.meta}); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
	_, daemons := ambient(of).Objects()
	if !of.Serves(&corev1.Pod{ObjectMeta: daemons.Spec.Template.ObjectMeta}) {
		t.Errorf("its ztunnels are not its own: %v", daemons.Spec.Template.Annotations)
	}
	gateway := &unstructured.Unstructured{Object: map[string]any{}}
	of.own(gateway)
	if gateway.GetLabels()[revisionLabel] != "1-31-0" {
		t.Errorf("got %v", gateway.GetLabels())
	}
	alone := &ControlPlane{}
	if alone.own(gateway); gateway.GetLabels()[revisionLabel] != "1-31-0" {
		t.Errorf("without revisions it changed %v", gateway.GetLabels())
	}
}
