package workload

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What others need is made before them, whatever the order in which it is given.
func TestWaves(t *testing.T) {
	var objects []*unstructured.Unstructured
	for _, kind := range []string{"Deployment", "RoleBinding", "Role", "Service", "Sidecar", "ServiceAccount", "Namespace"} {
		o := &unstructured.Unstructured{}
		o.SetKind(kind)
		objects = append(objects, o)
	}
	var got [][]string
	for _, wave := range waves(objects) {
		var kinds []string
		for _, o := range wave {
			kinds = append(kinds, o.GetKind())
		}
		got = append(got, kinds)
	}
	want := [][]string{{"Namespace"}, {"Role", "Service", "ServiceAccount"}, {"Deployment", "RoleBinding", "Sidecar"}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("made in the order %v, want %v", got, want)
	}
}
