package capture

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/output"
)

const (
	// WaypointClass is the class of Gateways that are waypoints.
	WaypointClass = "istio-waypoint"
	// GatewayName is the label of the pods that a control plane makes for a Gateway.
	GatewayName = "gateway.networking.k8s.io/gateway-name"
	// UseWaypoint and UseWaypointNamespace are the labels by which a service, or all of a namespace, has a waypoint; NoWaypoint is the value
	// by which it has none.
	UseWaypoint          = "istio.io/use-waypoint"
	UseWaypointNamespace = "istio.io/use-waypoint-namespace"
	NoWaypoint           = "none"
	// managedGateway is the label of what a control plane makes for a Gateway.
	managedGateway = "gateway.istio.io/managed"
)

// OwnWaypoint is a waypoint whose pods the control plane of a replay makes, as that of the captured mesh did.
type OwnWaypoint struct {
	Gateway  *unstructured.Unstructured
	Service  *corev1.Service // nil = the mesh has none of its name
	Replicas int             // 1 or more

	pods []Workload
}

// OwnWaypoints returns the Gateways of the mesh that are waypoints with pods.
func (m *Mesh) OwnWaypoints() (all []OwnWaypoint) {
	for _, o := range m.Objects {
		if class, _, _ := unstructured.NestedString(o.Object, "spec", "gatewayClassName"); o.GetKind() != "Gateway" || class != WaypointClass {
			continue
		}
		of := OwnWaypoint{Gateway: o}
		for _, w := range m.Workloads {
			if isPodsOf(w, o) {
				of.Replicas += w.Spec.Replicas
				of.pods = append(of.pods, w)
			}
		}
		for i := range m.Services {
			if s := &m.Services[i]; s.Namespace == o.GetNamespace() && s.Name == o.GetName() {
				of.Service = s
			}
		}
		if of.Replicas > 0 {
			all = append(all, of)
		}
	}
	return all
}

// isPodsOf reports whether a workload is the pods of a waypoint.
func isPodsOf(w Workload, gateway *unstructured.Unstructured) bool {
	return w.Spec.Proxy == Waypoint && w.Namespace == gateway.GetNamespace() && w.Spec.Labels[GatewayName] == gateway.GetName()
}

// withWaypoints takes the pods of waypoints out of the mesh, which the control plane makes, and returns what the replay does not have of them.
func (m *Mesh) withWaypoints() (without []Difference) {
	m.Waypoints = m.OwnWaypoints()
	parameters := 0
	for _, w := range m.Waypoints {
		m.Workloads = slices.DeleteFunc(slices.Clone(m.Workloads), func(of Workload) bool { return isPodsOf(of, w.Gateway) })
		if _, stated, _ := unstructured.NestedFieldNoCopy(w.Gateway.Object, "spec", "infrastructure", "parametersRef"); stated {
			parameters++
		}
	}
	if parameters == 0 {
		return nil
	}
	return []Difference{{"spec.infrastructure.parametersRef", output.Many(parameters, "waypoint"), "their pods, which are as the control plane makes them without it"}}
}

// IsWaypoint reports whether a Gateway, or a Service, is that of a waypoint whose pods the control plane of a replay makes.
func (m *Mesh) IsWaypoint(kind, namespace, name string) bool {
	return (kind == "Gateway" || kind == "Service") && slices.ContainsFunc(m.Waypoints, func(w OwnWaypoint) bool {
		return w.Gateway.GetNamespace() == namespace && w.Gateway.GetName() == name
	})
}

// Made returns the objects that a replay makes of a waypoint before it makes the mesh, for pods with these labels: its Service, its Gateway
// and, where it has several pods, a ConfigMap by which the control plane makes so many.
func (w OwnWaypoint) Made(labels map[string]string) (all []*unstructured.Unstructured) {
	if w.Service != nil {
		all = append(all, serviceObject(w.Service))
	}
	gateway := w.Gateway.DeepCopy()
	unstructured.RemoveNestedField(gateway.Object, "spec", "infrastructure", "parametersRef")
	with, _, _ := unstructured.NestedStringMap(gateway.Object, "spec", "infrastructure", "labels")
	if with == nil {
		with = map[string]string{}
	}
	for name, value := range labels {
		with[name] = value
	}
	_ = unstructured.SetNestedStringMap(gateway.Object, with, "spec", "infrastructure", "labels")
	if w.Replicas > 1 {
		parameters := named("v1", "ConfigMap", gateway.GetNamespace(), parametersPrefix+gateway.GetName())
		parameters.Object["data"] = map[string]any{"deployment": fmt.Sprintf("spec: {replicas: %d}\n", w.Replicas)}
		all = append(all, parameters)
		_ = unstructured.SetNestedMap(gateway.Object, map[string]any{"group": "", "kind": "ConfigMap", "name": parameters.GetName()}, "spec", "infrastructure", "parametersRef")
	}
	return append(all, gateway)
}

// parametersPrefix is that of the ConfigMaps of Made.
const parametersPrefix = "scaler-waypoint-"

// withoutMade removes from the specification of a captured Gateway what Made added to it.
func withoutMade(gateway *unstructured.Unstructured) {
	infrastructure, ok, _ := unstructured.NestedMap(gateway.Object, "spec", "infrastructure")
	if !ok {
		return
	}
	if with, _ := infrastructure["labels"].(map[string]any); with != nil {
		maps.DeleteFunc(with, func(name string, _ any) bool { return strings.HasPrefix(name, ownPrefix) })
		if len(with) == 0 {
			delete(infrastructure, "labels")
		}
	}
	if ref, _ := infrastructure["parametersRef"].(map[string]any); ref != nil {
		if name, _ := ref["name"].(string); strings.HasPrefix(name, parametersPrefix) {
			delete(infrastructure, "parametersRef")
		}
	}
	if len(infrastructure) == 0 {
		unstructured.RemoveNestedField(gateway.Object, "spec", "infrastructure")
		return
	}
	_ = unstructured.SetNestedMap(gateway.Object, infrastructure, "spec", "infrastructure")
}
