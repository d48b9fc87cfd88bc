package istio

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/controlplane"
)

// gatewayBundle is the release of the Gateway API whose kinds istiod is told that there are: it
// ignores kinds of releases that it holds to be too old (the minimum versions of its
// pkg/config/schema/gvk and pilot/pkg/config/kube/crdclient).
const gatewayBundle = "v1.6.0"

// gatewayDefinitions returns all kinds of the Gateway API that istiod reads, if a mesh has objects of
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
		definition := controlplane.CustomResource{Group: r.Group, Kind: r.Kind, Plural: r.Resource, Versions: own, Cluster: r.Cluster, Status: true}.Definition()
		definition.SetAnnotations(map[string]string{
			"api-approved.kubernetes.io":               "https://github.com/kubernetes-sigs/gateway-api",
			"gateway.networking.k8s.io/bundle-version": gatewayBundle,
			"gateway.networking.k8s.io/channel":        "experimental",
		})
		all = append(all, definition)
	}
	return all
}

// gatewayVersions returns the versions of a kind that istiod reads.
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
