package controlplane

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// served has one resource more each time that it is asked, and no group before the first.
type served struct {
	discovery.ServerResourcesInterface
	resources []string
	asked     []string
}

func (s *served) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	s.asked = append(s.asked, version)
	if len(s.asked) == 1 {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, version)
	}
	list := &metav1.APIResourceList{}
	for _, name := range s.resources[:min(len(s.asked)-2, len(s.resources))] {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	return list, nil
}

func TestAwaitDefinitions(t *testing.T) {
	definition := CustomResource{Group: "g.io", Kind: "Thing", Plural: "things", Versions: []string{"v1", "v1beta1"}}.Definition()
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	versions[1].(map[string]any)["served"] = false
	_ = unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions")
	other := &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap"}}
	s := &served{resources: []string{"others", "things"}}
	if err := AwaitDefinitions(t.Context(), s, []*unstructured.Unstructured{other, definition}); err != nil {
		t.Fatal(err)
	}
	// Not found, an empty group, the other resource, both.
	if len(s.asked) != 4 || s.asked[3] != "g.io/v1" {
		t.Errorf("asked for %v", s.asked)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := AwaitDefinitions(ctx, &served{}, []*unstructured.Unstructured{definition}); err == nil {
		t.Error("a definition that is not served was not waited for")
	}
}
