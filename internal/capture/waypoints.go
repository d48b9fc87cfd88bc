package capture

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
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
	// UseWaypoint is the label with the name of the waypoint of a service, or of all in a namespace.
	UseWaypoint = "istio.io/use-waypoint"
	// UseWaypointNamespace is the label with the namespace of that waypoint, where it is another one.
	UseWaypointNamespace = "istio.io/use-waypoint-namespace"
	// NoWaypoint is the value of UseWaypoint by which there is none.
	NoWaypoint = "none"
	// ManagedGateway is the label of what a control plane makes for a Gateway.
	ManagedGateway = "gateway.istio.io/managed"
)

// OwnWaypoint is a waypoint whose pods the control plane of a replay makes, as the captured control plane did.
type OwnWaypoint struct {
	Gateway  *unstructured.Unstructured
	Service  *corev1.Service // nil = the mesh has no Service of the Gateway's name
	Replicas int             // 1 or more

	pods []Workload
}

// OwnWaypoints returns the Gateways of the mesh that are waypoints with pods, without those that its control plane does not see, or
// does not make pods for.
func (m *Mesh) OwnWaypoints() (all []OwnWaypoint) {
	pods := map[[2]string][]int{} // workloads, by namespace and Gateway
	for i, w := range m.Workloads {
		if at := w.ofGateway(); at != [2]string{} {
			pods[at] = append(pods[at], i)
		}
	}
	if len(pods) == 0 {
		return nil
	}
	var unseen []string
	if r := m.Served(); r != nil {
		unseen = r.Undiscovered
	}
	for _, o := range m.Objects {
		if class, _, _ := unstructured.NestedString(o.Object, "spec", "gatewayClassName"); o.GetKind() != "Gateway" || class != WaypointClass || slices.Contains(unseen, o.GetNamespace()) {
			continue
		}
		addresses, _, _ := unstructured.NestedSlice(o.Object, "spec", "addresses")
		if version, err := strconv.Atoi(cmp.Or(o.GetAnnotations()[controllerVersion], "0")); err != nil || version > ownVersion || len(addresses) > 0 {
			continue
		}
		of := OwnWaypoint{Gateway: o}
		for _, i := range pods[[2]string{o.GetNamespace(), o.GetName()}] {
			of.Replicas += m.Workloads[i].Spec.Replicas
			of.pods = append(of.pods, m.Workloads[i])
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

// ofGateway returns namespace and name of the Gateway that a workload is a waypoint for; zero values for any other.
func (w Workload) ofGateway() (at [2]string) {
	if name := w.Spec.Labels[GatewayName]; w.Spec.Proxy == Waypoint && name != "" {
		at = [2]string{w.Namespace, name}
	}
	return at
}

const (
	// controllerVersion is the annotation of a Gateway with the version of the rules by which a control plane made its pods. A control plane
	// whose rules have a lower version leaves the Gateway alone (ManagedGatewayControllerVersion of Istio's
	// pilot/pkg/config/kube/gatewaycommon). Istio 1.27 to 1.31 have ownVersion, and leave Gateways with otherVersion alone.
	controllerVersion = "gateway.istio.io/controller-version"
	ownVersion        = 5
	otherVersion      = "1000"
	// keptVersion is the annotation with the captured controllerVersion, where the replay has otherVersion.
	keptVersion = ownPrefix + "controller-version"
)

// LeftAlone returns a Gateway for which the control plane of a replay makes no pods: the mesh has them.
func LeftAlone(gateway *unstructured.Unstructured) *unstructured.Unstructured {
	to := gateway.DeepCopy()
	annotations := map[string]string{}
	maps.Copy(annotations, to.GetAnnotations())
	if version := annotations[controllerVersion]; version != "" {
		annotations[keptVersion] = version
	}
	annotations[controllerVersion] = otherVersion
	to.SetAnnotations(annotations)
	return to
}

// withWaypoints takes the pods of waypoints out of the mesh, which the control plane makes, and returns what the replay does not have of them.
func (m *Mesh) withWaypoints() (without []Difference) {
	m.Waypoints = m.OwnWaypoints()
	parameters, own := 0, map[[2]string]bool{}
	for _, w := range m.Waypoints {
		own[[2]string{w.Gateway.GetNamespace(), w.Gateway.GetName()}] = true
		if _, stated, _ := unstructured.NestedFieldNoCopy(w.Gateway.Object, "spec", "infrastructure", "parametersRef"); stated {
			parameters++
		}
	}
	m.Workloads = slices.DeleteFunc(slices.Clone(m.Workloads), func(w Workload) bool { return own[w.ofGateway()] })
	if parameters == 0 {
		return nil
	}
	return []Difference{{"spec.infrastructure.parametersRef", output.Many(parameters, "waypoint"), "their pods, which are as the control plane makes them without it"}}
}

// WaypointNamed returns the index in Waypoints of the waypoint whose Gateway, and so its Service, has this name; -1 = there is none.
func (m *Mesh) WaypointNamed(namespace, name string) int {
	return slices.IndexFunc(m.Waypoints, func(w OwnWaypoint) bool {
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
	own, stated, _ := unstructured.NestedStringMap(gateway.Object, "spec", "infrastructure", "labels")
	if !stated { // then pods have the labels of the Gateway
		own = gateway.GetLabels()
	}
	with := map[string]string{}
	maps.Copy(with, own)
	maps.Copy(with, labels)
	_ = unstructured.SetNestedStringMap(gateway.Object, with, "spec", "infrastructure", "labels")
	if w.Replicas > 1 {
		parameters := named("v1", "ConfigMap", gateway.GetNamespace(), parametersPrefix+gateway.GetName())
		parameters.Object["data"] = map[string]any{"deployment": fmt.Sprintf("spec: {replicas: %d}\n", w.Replicas)}
		all = append(all, parameters)
		_ = unstructured.SetNestedMap(gateway.Object, map[string]any{"group": "", "kind": "ConfigMap", "name": parameters.GetName()}, "spec", "infrastructure", "parametersRef")
	}
	return append(all, gateway)
}

// parametersPrefix begins the names of the ConfigMaps that Made returns.
const parametersPrefix = "scaler-waypoint-"

// withoutMade removes from the specification of a captured Gateway what Made added to it.
func withoutMade(gateway *unstructured.Unstructured) {
	infrastructure, ok, _ := unstructured.NestedMap(gateway.Object, "spec", "infrastructure")
	if !ok {
		return
	}
	if with, _ := infrastructure["labels"].(map[string]any); with != nil {
		before := len(with)
		maps.DeleteFunc(with, func(name string, _ any) bool { return strings.HasPrefix(name, ownPrefix) })
		if len(with) < before && maps.Equal(with, untyped(gateway.GetLabels())) { // those of the Gateway itself
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
