package istio

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/internal/ztunnel"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/scenario"
)

// replayedNodes are the ztunnels of a captured mesh.
type replayedNodes struct {
	ambient
	of *replayed
}

// Serves is part of controlplane.Nodes: of each workload the mesh says it.
func (n replayedNodes) Serves(topology.Mesh, string) (m controlplane.Membership, ok bool) {
	return m, false
}

// Wants returns the least that a ztunnel holds: the services, and the endpoints of those all of whose pods a rollout follows. Policies, and
// hosts and machines of ServiceEntries and WorkloadEntries, are not compared.
func (n replayedNodes) Wants(topology.Mesh, scenario.Settings) []convergence.Want {
	var wants []convergence.Want
	for _, v := range n.of.services {
		if v.external() {
			continue
		}
		want := convergence.Want{Key: addressOf(v.Namespace, v.host)}
		if v.certain && v.waypoint >= 0 {
			w := n.of.mesh.Waypoints[v.waypoint].Gateway
			want.Members = []string{ztunnel.WaypointMember(w.GetNamespace(), fqdn(w.GetName(), w.GetNamespace()))}
		}
		wants = append(wants, want)
		if !n.follows(v) {
			continue
		}
		for _, p := range v.Spec.Ports {
			if p.Protocol != corev1.ProtocolUDP && p.Protocol != corev1.ProtocolSCTP {
				wants = append(wants, convergence.Want{Key: ztunnel.Endpoints(v.Namespace, v.host, int(p.Port)), Service: v.Namespace + "/" + v.Name + ":" + p.Name})
			}
		}
	}
	for _, w := range n.of.mesh.Waypoints {
		namespace, name := w.Gateway.GetNamespace(), w.Gateway.GetName()
		for _, p := range ownPorts(w.Service) {
			wants = append(wants, convergence.Want{Key: ztunnel.Endpoints(namespace, fqdn(name, namespace), p.Number), Service: namespace + "/" + name + ":" + p.Name})
		}
	}
	for _, o := range n.others {
		if !slices.Contains(n.of.unseen, o.namespace) {
			wants = append(wants, convergence.Want{Key: addressOf(o.namespace, o.host)})
		}
	}
	return wants
}

// follows reports whether all endpoints of a service are pods that a rollout follows, which have all of its ports.
func (n replayedNodes) follows(v visible) bool {
	selected := false
	for i := range n.of.mesh.Workloads {
		w := &n.of.mesh.Workloads[i]
		if !capture.Selects(v.Service, w) {
			continue
		}
		if selected = true; !w.Member() || slices.ContainsFunc(v.Spec.Ports, func(p corev1.ServicePort) bool { return capture.Target(p, w) == 0 }) {
			return false
		}
	}
	return selected && !v.sliced && n.of.named[v.host] == 1 && !slices.ContainsFunc(n.of.machines, func(m machine) bool { return m.selected(v) })
}

// ServiceProbe changes a Service that selects the workload. Neither the Service nor its namespace states which endpoints clients prefer.
func (n replayedNodes) ServiceProbe(_ topology.Mesh, workload int, made bool) *controlplane.ServiceChange {
	w := &n.of.mesh.Workloads[workload]
	if slices.ContainsFunc(n.of.mesh.Namespaces, func(of capture.Namespace) bool {
		return of.Name == w.Namespace && of.Annotations[capture.TrafficDistribution] != ""
	}) {
		return nil
	}
	for _, v := range n.of.services {
		if capture.Selects(v.Service, w) && v.Annotations[capture.TrafficDistribution] == "" && v.Spec.TrafficDistribution == nil && v.Spec.InternalTrafficPolicy == nil {
			return preferClose(v.Namespace, v.Name, made)
		}
	}
	return nil
}

// Holds is not known, as that of sidecars.
func (n replayedNodes) Holds(topology.Mesh, scenario.Settings, []string) []convergence.Key {
	return nil
}

// Discovered is part of controlplane.Nodes.
func (n replayedNodes) Discovered([]string) (keys []convergence.Key, all bool) { return nil, false }
