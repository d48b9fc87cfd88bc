package istio

import (
	"fmt"
	"strconv"

	"scaler.mesh/scaler/internal/analyse/capacity"
)

// sized returns an IstioOperator that gives istiod what a plan requests.
//
// The charts of all supported releases set GOMAXPROCS themselves, from limits.cpu, which is
// that of the node without a limit (manifests/charts/istio-control/istio-discovery,
// templates/deployment.yaml). The value pilot.env comes before that in the container, so
// that it has no effect: GOMAXPROCS is set by an overlay of the Deployment.
func sized(t capacity.Target, r capacity.Request) *capacity.Install {
	type object map[string]any
	return &capacity.Install{
		How: fmt.Sprintf("For istioctl %s, as in 'istioctl install -f FILE'. The chart takes GOMAXPROCS from limits.cpu or else from the node, whatever pilot.env has: with Helm alone, patch the Deployment.", t.Version),
		Document: object{
			"apiVersion": "install.istio.io/v1alpha1", "kind": "IstioOperator",
			"spec": object{
				"values": object{"pilot": object{"autoscaleEnabled": false, "replicaCount": r.Replicas, "resources": r.Resources}},
				"components": object{"pilot": object{"k8s": object{"overlays": []object{{
					"kind": "Deployment", "name": Name,
					"patches": []object{{
						"path":  "spec.template.spec.containers.[name:discovery].env.[name:GOMAXPROCS]",
						"value": object{"name": "GOMAXPROCS", "value": strconv.Itoa(r.Processors)},
					}},
				}}}}},
			},
		},
	}
}
