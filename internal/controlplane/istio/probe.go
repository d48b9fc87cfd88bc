package istio

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/scenario"
)

// Probe returns a VirtualService that routes a service to itself, its marker the
// route's name, or that of the mesh's profile, its marker the name of the first route; an AuthorizationPolicy that denies a service to a principal that does not
// exist, its marker; or an EnvoyFilter of the root namespace, which applies to every
// sidecar and names the statistics of its inbound listener by the marker.
func (c configuration) Probe(kind controlplane.ProbeKind, mesh topology.Mesh, knobs scenario.Settings, service int, marker string) (*unstructured.Unstructured, []int) {
	s := mesh.Services[service]
	if c.hasZtunnels() && !c.mixed() && kind != controlplane.PolicyProbe && (kind != controlplane.RouteProbe || !c.withWaypoints()) {
		return nil, nil // a ztunnel has no routes, and no listeners to be changed
	}
	name := "scaler-probe-" + s.Name
	if kind == controlplane.MeshProbe {
		return meshProbe(namespace, marker), everyService(mesh)
	}
	if kind == controlplane.PolicyProbe {
		return policyProbe(s.Namespace, name, map[string]string{"app": s.Name}, marker), []int{service}
	}
	host := hostname(s)
	probe := routeObject(s.Namespace, name, host, marker)
	if hasOwnRoute(mesh, service) { // of two for one host the older counts
		probe = ownRoute(s, marker)
	}
	if c.withWaypoints() {
		return probe, []int{service} // its waypoint
	}
	var concerned []int
	for i := range mesh.Services {
		if slices.ContainsFunc(c.Wants(mesh, knobs, i), func(w convergence.Want) bool {
			return w.Type == convergence.RDS && slices.Contains(w.Members, host)
		}) {
			concerned = append(concerned, i)
		}
	}
	return probe, concerned
}

// meshProbe changes the inbound listener of every sidecar.
func meshProbe(root, marker string) *unstructured.Unstructured {
	return object("networking.istio.io/v1alpha3", "EnvoyFilter", root, "scaler-probe-mesh", map[string]any{
		"configPatches": []any{map[string]any{
			"applyTo": "LISTENER",
			"match":   map[string]any{"context": "SIDECAR_INBOUND", "listener": map[string]any{"name": "virtualInbound"}},
			"patch":   map[string]any{"operation": "MERGE", "value": map[string]any{"stat_prefix": marker}},
		}},
	})
}

// policyProbe denies the pods with these labels to a principal that does not exist.
func policyProbe(namespace, name string, labels map[string]string, marker string) *unstructured.Unstructured {
	selector := map[string]any{}
	for label, value := range labels {
		selector[label] = value
	}
	return object("security.istio.io/v1", "AuthorizationPolicy", namespace, name, map[string]any{
		"selector": map[string]any{"matchLabels": selector},
		"action":   "DENY",
		"rules": []any{map[string]any{"from": []any{map[string]any{
			"source": map[string]any{"principals": []any{marker}},
		}}}},
	})
}

// routeObject routes a host to itself.
func routeObject(namespace, name, host, marker string) *unstructured.Unstructured {
	return object("networking.istio.io/v1", "VirtualService", namespace, name, map[string]any{
		"hosts": []any{host},
		"http": []any{map[string]any{
			"name":  marker,
			"route": []any{map[string]any{"destination": map[string]any{"host": host}}},
		}},
	})
}

// everyService returns the services of a mesh that have sidecars.
func everyService(mesh topology.Mesh) []int {
	all := make([]int, len(mesh.WithoutGateways()))
	for i := range all {
		all[i] = i
	}
	return all
}

func object(apiVersion, kind, namespace, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion,
		"kind":       kind,
		"metadata":   map[string]any{"name": name, "namespace": namespace},
		"spec":       spec,
	}}
}
