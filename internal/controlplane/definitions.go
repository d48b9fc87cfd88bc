package controlplane

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
)

// CustomResource is a kind of objects of a control plane. It has no schema: what an object may be is
// left to the program that reads it.
type CustomResource struct {
	Group, Kind, Plural string
	Versions            []string // that are served, at least one; the first is stored
	Cluster             bool     // its objects have no namespace
	Status              bool     // their status is a resource of its own
}

// Name returns the name of its definition.
func (r CustomResource) Name() string { return r.Plural + "." + r.Group }

// Definition returns its CustomResourceDefinition.
func (r CustomResource) Definition() *unstructured.Unstructured {
	var versions []any
	for i, name := range r.Versions {
		version := map[string]any{
			"name": name, "served": true, "storage": i == 0,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		}
		if r.Status {
			version["subresources"] = map[string]any{"status": map[string]any{}}
		}
		versions = append(versions, version)
	}
	scope := "Namespaced"
	if r.Cluster {
		scope = "Cluster"
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": r.Name()},
		"spec": map[string]any{
			"group": r.Group, "scope": scope, "versions": versions,
			"names": map[string]any{"kind": r.Kind, "listKind": r.Kind + "List", "plural": r.Plural, "singular": strings.ToLower(r.Kind)},
		},
	}}
}

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// CreateDefinitions makes the definitions of these kinds, unless they are there, and returns once the API
// server serves them.
func CreateDefinitions(ctx context.Context, client dynamic.Interface, served discovery.ServerResourcesInterface, kinds []CustomResource) error {
	var all []*unstructured.Unstructured
	for _, kind := range kinds {
		one := kind.Definition()
		all = append(all, one)
		if _, err := client.Resource(definitions).Create(ctx, one, metav1.CreateOptions{}); Created(err) != nil {
			return fmt.Errorf("creating %s: %w", kind.Name(), err)
		}
	}
	return AwaitDefinitions(ctx, served, all)
}

// AwaitDefinitions returns once the API server serves what the CustomResourceDefinitions among the
// objects define. It waits up to a minute for each.
func AwaitDefinitions(ctx context.Context, client discovery.ServerResourcesInterface, objects []*unstructured.Unstructured) error {
	for _, o := range objects {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(o.Object, "spec", "names", "plural")
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		for _, v := range versions {
			version, _ := v.(map[string]any)
			if version["served"] != true {
				continue
			}
			err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
				served, err := client.ServerResourcesForGroupVersion(fmt.Sprintf("%s/%s", group, version["name"]))
				if apierrors.IsNotFound(err) {
					return false, nil
				}
				return err == nil && slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == plural }), err
			})
			if err != nil {
				return fmt.Errorf("waiting for %s to be served in version %s: %w", o.GetName(), version["name"], err)
			}
		}
	}
	return nil
}
