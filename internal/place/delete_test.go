package place

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

func named(group, name string) resource {
	return resource{schema.GroupVersionResource{Group: group, Version: "v1", Resource: name}, true}
}

func object(namespace, name, controller string) metav1.PartialObjectMetadata {
	o := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)}}
	if controller != "" {
		o.OwnerReferences = []metav1.OwnerReference{{Name: controller, Controller: new(true)}}
	}
	return o
}

// Owners go before what they own, pods before nodes, all before namespaces.
func TestOrderOfDeletion(t *testing.T) {
	d := &deletion{seen: map[string]map[string]bool{}}
	var all []found
	all = append(all, d.sort(named("", "namespaces"), metav1.ListOptions{}, []metav1.PartialObjectMetadata{object("", "a", "")})...)
	all = append(all, d.sort(named("", "nodes"), metav1.ListOptions{}, []metav1.PartialObjectMetadata{object("", "n1", ""), object("", "n2", "")})...)
	all = append(all, d.sort(named("", "pods"), metav1.ListOptions{}, []metav1.PartialObjectMetadata{
		object("a", "p1", "r"), object("b", "p1", "r"), object("b", "alone", ""),
	})...)
	all = append(all, d.sort(named("apps", "deployments"), metav1.ListOptions{}, []metav1.PartialObjectMetadata{object("a", "d", "")})...)
	all = append(all, d.sort(named("apps", "deployments"), metav1.ListOptions{}, []metav1.PartialObjectMetadata{object("a", "d", "")})...) // seen again
	ending := object("", "ending", "")
	ending.DeletionTimestamp = new(metav1.Now())
	all = append(all, d.sort(named("", "namespaces"), metav1.ListOptions{}, []metav1.PartialObjectMetadata{ending})...) // is left to its controller
	got := map[string]int{}
	for _, f := range all {
		if f.rank() < 0 || f.rank() >= ranks {
			t.Errorf("rank %d of %s", f.rank(), f.resource)
		}
		got[f.namespace+"/"+f.resource.String()] = f.rank()
	}
	for name, want := range map[string]int{"a/deployments.apps": 0, "b/pods": 0, "a/pods": 1, "/nodes": 2, "/namespaces": 3} {
		if got[name] != want {
			t.Errorf("%s is deleted in step %d, want %d", name, got[name], want)
		}
	}
	deleted := d.deleted()
	if deleted["deployments.apps"] != 1 || deleted["pods"] != 3 || deleted.Total() != 7 {
		t.Errorf("counted %v, want 1 deployment, 3 pods, 7 in all", deleted)
	}
	left := slices.DeleteFunc(all, func(f found) bool { return f.rank() < 2 })
	if text := describe(left); text != "1 namespaces, 2 nodes" {
		t.Errorf("left: %q", text)
	}
}
