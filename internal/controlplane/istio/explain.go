package istio

import (
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/pkg/convergence"
)

// gatewayClusters is the setting by which gateways are sent only the clusters that their routes refer to
// (features.FilterGatewayClusterConfig of istiod's pilot/pkg/features).
const gatewayClusters = "PILOT_FILTER_GATEWAY_CLUSTER_CONFIG"

// Explain returns the object or setting that changes the resources of a name or the endpoint that differs: the WorkloadEntry or
// EndpointSlice that has the address, the setting that leaves clusters out at gateways, or an EnvoyFilter that applies to the
// sidecar and matches the resource.
func (c captured) Explain(mesh *capture.Mesh, d convergence.Difference) string {
	of, _, _ := strings.Cut(d.Sidecar, "/")
	if d.Endpoint.IsValid() {
		for _, o := range mesh.Objects {
			if o.GetKind() == "WorkloadEntry" && readMachine(o).address == d.Endpoint.Addr().String() {
				return identity(o)
			}
		}
		for i := range mesh.Slices {
			s := &mesh.Slices[i]
			if slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool {
				return (e.TargetRef == nil || e.TargetRef.Kind != "Pod") && slices.Contains(e.Addresses, d.Endpoint.Addr().String())
			}) {
				return capture.Identity(s.Kind, s.Namespace, s.Name)
			}
		}
	}
	if d.Absent && (d.Type == convergence.CDS || d.Type == convergence.EDS) && strings.HasPrefix(d.Name, "outbound|") && setting(c.opts.Resources.Env, gatewayClusters, false) &&
		slices.ContainsFunc(mesh.Workloads, func(w capture.Workload) bool {
			return w.Spec.Proxy == capture.Gateway && strings.HasPrefix(d.Sidecar, w.Namespace+"/"+w.Name+"-")
		}) {
		return "the setting " + gatewayClusters
	}
	for _, o := range mesh.Objects {
		if o.GetKind() == "EnvoyFilter" && (o.GetNamespace() == of || o.GetNamespace() == configuration(c).rootOf(mesh)) && patches(o, d.Key) {
			return identity(o)
		}
	}
	return ""
}

func identity(o *unstructured.Unstructured) string {
	return capture.Identity(o.GetKind(), o.GetNamespace(), o.GetName())
}

// patched are the types of resources that the patches of an EnvoyFilter change, by what they apply to.
var patched = map[string][]convergence.Type{
	"CLUSTER":              {convergence.CDS, convergence.EDS}, // one that is not of the type EDS has no endpoints of its own
	"LISTENER":             {convergence.LDS, convergence.RDS},
	"FILTER_CHAIN":         {convergence.LDS, convergence.RDS},
	"NETWORK_FILTER":       {convergence.LDS, convergence.RDS}, // the connection manager names the routes
	"ROUTE_CONFIGURATION":  {convergence.RDS},
	"VIRTUAL_HOST":         {convergence.RDS},
	"EXTENSION_CONFIG":     {convergence.ECDS},
	"LISTENER_FILTER":      {convergence.LDS},
	"HTTP_FILTER":          {convergence.LDS},
	"HTTP_ROUTE":           {convergence.RDS},
	"BOOTSTRAP":            nil,
	"INVALID":              nil,
	"UNSPECIFIED_APPLY_TO": nil,
}

// patches reports whether a patch of an EnvoyFilter may change a resource.
func patches(o *unstructured.Unstructured, key convergence.Key) bool {
	all, _, _ := unstructured.NestedSlice(o.Object, "spec", "configPatches")
	return slices.ContainsFunc(all, func(p any) bool {
		patch, _ := p.(map[string]any)
		applyTo, _ := patch["applyTo"].(string)
		return slices.Contains(patched[applyTo], key.Type) && matches(patch, applyTo, key)
	})
}

// matches reports whether what a patch matches does not exclude a resource.
func matches(patch map[string]any, applyTo string, key convergence.Key) bool {
	match, _, _ := unstructured.NestedMap(patch, "match")
	switch context, _ := match["context"].(string); {
	case context == "SIDECAR_INBOUND" && strings.HasPrefix(key.Name, "outbound|"), context == "SIDECAR_OUTBOUND" && strings.HasPrefix(key.Name, "inbound|"):
		return false
	}
	if applyTo == "CLUSTER" {
		name, _, _ := unstructured.NestedString(match, "cluster", "name")
		service, _, _ := unstructured.NestedString(match, "cluster", "service")
		return (name == "" || name == key.Name) && (service == "" || strings.HasSuffix(key.Name, "|"+service))
	}
	if key.Type == convergence.RDS {
		name, _, _ := unstructured.NestedString(match, "routeConfiguration", "name")
		return name == "" || name == key.Name
	}
	name, _, _ := unstructured.NestedString(match, "listener", "name")
	return name == "" || name == key.Name
}
