package istio

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/convergence"
)

// replayedWaypoints are the waypoints of a captured mesh.
type replayedWaypoints struct{ of *replayed }

// List is part of controlplane.Waypoints. A waypoint serves the workloads that its services select.
func (r replayedWaypoints) List(mesh topology.Mesh) (all []controlplane.Waypoint) {
	n := 0
	label := func() string {
		for {
			n++
			text := fmt.Sprintf("waypoint.%d", n)
			if !slices.ContainsFunc(mesh.Services, func(s topology.Service) bool { return s.Name == text }) {
				return text
			}
		}
	}
	for _, of := range r.of.mesh.Waypoints {
		all = append(all, controlplane.Waypoint{Namespace: of.Gateway.GetNamespace(), Name: of.Gateway.GetName(), Label: label(), Pods: of.Replicas, Ports: ownPorts(of.Service)})
	}
	for _, v := range r.of.services {
		if v.waypoint < 0 || !v.certain {
			continue
		}
		for i := range r.of.mesh.Workloads {
			if w := &all[v.waypoint]; capture.Selects(v.Service, &r.of.mesh.Workloads[i]) && !slices.Contains(w.Services, i) {
				w.Services = append(w.Services, i)
			}
		}
	}
	return all
}

// Labels is part of controlplane.Waypoints: the objects of the mesh have theirs.
func (r replayedWaypoints) Labels(string, string) map[string]string { return nil }

// Objects is part of controlplane.Waypoints.
func (r replayedWaypoints) Objects(mesh topology.Mesh, run string) []*unstructured.Unstructured {
	objects := waypointsOnFakeNodes(r.of.systemNamespace(), run)
	for i, w := range r.List(mesh) {
		for _, o := range r.of.mesh.Waypoints[i].Made(map[string]string{kwok.RunLabel: run, kwok.ServiceLabel: w.Label}) {
			kwok.SetRun(o, run)
			if o.GetKind() == "Gateway" {
				r.of.own(o)
			}
			objects = append(objects, o)
		}
	}
	return objects
}

// Wants returns the least that a waypoint holds: of each HTTP port of a service that it certainly serves the cluster and its endpoints.
func (r replayedWaypoints) Wants(_ topology.Mesh, w controlplane.Waypoint) []convergence.Want {
	at := r.of.mesh.WaypointNamed(w.Namespace, w.Name)
	if r.of.removes {
		return nil
	}
	var wants []convergence.Want
	for _, v := range r.of.services {
		if !v.certain || v.waypoint != at || v.headless() {
			continue
		}
		for _, p := range v.Spec.Ports {
			if kindOf(p) != routed {
				continue
			}
			cluster := inboundVIP(int(p.Port), "http", v.host)
			wants = append(wants, convergence.WantOf(convergence.CDS, cluster))
			if r.of.isChosen(v.host) {
				continue
			}
			endpoints := convergence.WantOf(convergence.EDS, cluster)
			if !v.some() && !v.sliced {
				endpoints.Service = controlplane.Listed(v.Namespace + "/" + v.Name + ":" + p.Name)
			}
			wants = append(wants, endpoints)
		}
	}
	if wants == nil {
		return nil
	}
	return append(wants, wantTunnels()...)
}

// Holds is not known, as of sidecars.
func (r replayedWaypoints) Holds(topology.Mesh, controlplane.Waypoint, []string) []convergence.Key {
	return nil
}

const (
	waypointFor     = "istio.io/waypoint-for"    // label of a waypoint: what it serves
	managedWaypoint = "istio.io-mesh-controller" // value of capture.ManagedGateway of what istiod makes for a waypoint
)

// waypointOf returns the index of the waypoint of the mesh that serves a service, -1 if none does, by the service's labels, or else those of
// its namespace (fetchWaypointForService of istiod's pilot/pkg/serviceregistry/ambient); and whether that is certain.
func (r *replayed) waypointOf(v visible) (index int, certain bool) {
	if r.mesh.Waypoints == nil || v.external() || v.Labels[capture.ManagedGateway] == managedWaypoint {
		return -1, true
	}
	if r.mesh.WaypointNamed(v.Namespace, v.Name) >= 0 {
		return -1, false // istiod knows it by that label
	}
	labels := v.Labels
	if _, stated := labels[capture.UseWaypoint]; !stated {
		labels = nil
		for _, n := range r.mesh.Namespaces {
			if n.Name == v.Namespace {
				labels = n.Labels
			}
		}
	}
	name, namespace := labels[capture.UseWaypoint], v.Namespace
	if name == "" || name == capture.NoWaypoint {
		return -1, true
	}
	if other := labels[capture.UseWaypointNamespace]; other != "" {
		namespace = other
	}
	if index = r.mesh.WaypointNamed(namespace, name); index < 0 {
		return -1, false // it may be one of a Gateway that has no pods
	}
	gateway := r.mesh.Waypoints[index].Gateway
	switch gateway.GetLabels()[waypointFor] {
	case "", "service", "all":
	default:
		return -1, true
	}
	return index, takes(gateway, v.Namespace)
}

// takes reports whether a waypoint certainly serves what is in a namespace: the listeners of its Gateway allow it.
func takes(gateway *unstructured.Unstructured, namespace string) bool {
	listeners, _, _ := unstructured.NestedSlice(gateway.Object, "spec", "listeners")
	for _, l := range listeners {
		listener, _ := l.(map[string]any)
		if listener["protocol"] != "HBONE" {
			return false
		}
		from, _, _ := unstructured.NestedString(listener, "allowedRoutes", "namespaces", "from")
		switch from {
		case "", "Same":
			if namespace != gateway.GetNamespace() {
				return false
			}
		case "All":
		default:
			return false
		}
	}
	return len(listeners) > 0
}

// ownPorts returns the ports of a waypoint's Service.
func ownPorts(s *corev1.Service) (all []topology.Port) {
	if s == nil { // istiod makes it
		return waypointPorts()
	}
	for _, p := range s.Spec.Ports {
		all = append(all, topology.Port{Name: p.Name, Number: int(p.Port), Target: int(p.Port), TCP: true})
	}
	return all
}
