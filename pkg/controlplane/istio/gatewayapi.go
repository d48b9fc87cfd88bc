package istio

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/pkg/capture"
)

// gatewayBundle is the release of the Gateway API whose kinds istiod is told that there are: it
// ignores kinds of releases that it holds to be too old (the minimum versions of its
// pkg/config/schema/gvk and pilot/pkg/config/kube/crdclient).
const gatewayBundle = "v1.6.0"

// gatewayDefinitions are all kinds of the Gateway API that istiod reads, if a mesh has objects of
// one of them: istiod waits for all when it sees one. Each has the versions that istiod reads and
// those of the objects. Their content is not validated: it was, in the cluster that it is from.
func gatewayDefinitions(mesh *capture.Mesh) []*unstructured.Unstructured {
	versions := map[string][]string{}
	for _, o := range mesh.Objects {
		kind := o.GroupVersionKind()
		if !capture.IsGatewayAPI(kind) {
			continue
		}
		r, _ := capture.Configuration(kind)
		if !slices.Contains(versions[r.Resource], kind.Version) {
			versions[r.Resource] = append(versions[r.Resource], kind.Version)
		}
	}
	if len(versions) == 0 {
		return nil
	}
	var all []*unstructured.Unstructured
	for _, r := range capture.Resources() {
		if !capture.IsGatewayAPI(r.GroupVersion().WithKind(r.Kind)) {
			continue
		}
		own := versions[r.Resource]
		for _, version := range gatewayVersions(r.Resource) {
			if !slices.Contains(own, version) {
				own = append(own, version)
			}
		}
		all = append(all, definition(r, own))
	}
	return all
}

// gatewayVersions are those of a kind that istiod reads.
func gatewayVersions(plural string) []string {
	switch plural {
	case "tcproutes":
		return []string{"v1", "v1alpha2"}
	case "udproutes":
		return []string{"v1alpha2"}
	case "referencegrants":
		return []string{"v1beta1", "v1"}
	case "tlsroutes":
		return []string{"v1", "v1alpha2", "v1alpha3"}
	case "gateways", "gatewayclasses", "httproutes":
		return []string{"v1", "v1beta1"}
	default:
		return []string{"v1"}
	}
}

// definition is a CustomResourceDefinition without a schema.
func definition(r capture.Resource, versions []string) *unstructured.Unstructured {
	scope := "Namespaced"
	if r.Cluster {
		scope = "Cluster"
	}
	var served []any
	for i, version := range versions {
		served = append(served, map[string]any{
			"name": version, "served": true, "storage": i == 0,
			"subresources": map[string]any{"status": map[string]any{}},
			"schema":       map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{
			"name": r.Resource + "." + r.Group,
			"annotations": map[string]any{
				"api-approved.kubernetes.io":               "https://github.com/kubernetes-sigs/gateway-api",
				"gateway.networking.k8s.io/bundle-version": gatewayBundle,
				"gateway.networking.k8s.io/channel":        "experimental",
			},
		},
		"spec": map[string]any{
			"group": r.Group, "scope": scope, "versions": served,
			"names": map[string]any{"kind": r.Kind, "listKind": r.Kind + "List", "plural": r.Resource, "singular": strings.ToLower(r.Kind)},
		},
	}}
}
