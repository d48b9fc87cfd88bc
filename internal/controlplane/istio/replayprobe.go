package istio

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/scenario"
)

// replayedProbes are changes of a captured mesh. Each is an object of its own, which is deleted afterwards: no
// object of the mesh is written.
type replayedProbes struct {
	*replayed
	routes map[string]routeProbe // by host of a service
}

// routeProbe is a service that can be routed to itself without a change of traffic.
type routeProbe struct {
	service   visible
	concerned []int // workloads whose sidecars certainly have a route to it, besides its waypoint
}

// Probes are changes that the mesh can have, and why it has none of a kind.
func (c captured) Probes(mesh *capture.Mesh) (controlplane.Probes, func(controlplane.ProbeKind) string) {
	p := &replayedProbes{replayed: newReplayed(configuration(c), mesh)}
	p.findRoutes()
	return p, p.unprobed
}

// findRoutes finds the services with a port of HTTP that no object of the mesh routes, and of which it is certain, for each
// sidecar, whether it has a route to them.
func (p *replayedProbes) findRoutes() {
	p.routes = map[string]routeProbe{}
	if p.removes {
		return
	}
	hosts := map[string][]int{} // workloads with a route, by host
	unsure := map[string]bool{}
	for i := range p.mesh.Workloads {
		w, e := &p.mesh.Workloads[i], p.scopes[i]
		if !w.Spec.HasSidecar() || w.Spec.Proxy == capture.Gateway {
			continue
		}
		routed := map[string]bool{}
		for _, want := range p.Wants(topology.Mesh{}, scenario.Settings{}, i) {
			if want.Type == convergence.RDS {
				for _, host := range want.Members {
					routed[host] = true
				}
			}
		}
		for _, v := range p.services {
			switch {
			case routed[v.host]:
				hosts[v.host] = append(hosts[v.host], i)
			case e.partial || e.sees(w.Namespace, v):
				unsure[v.host] = true
			}
		}
	}
	for _, v := range p.services {
		concerned, known := hosts[v.host], v.certain && !unsure[v.host] && p.named[v.host] == 1
		if known && (concerned != nil || v.waypoint >= 0 && routedPort(v)) && p.exportedToAll(v) && !v.headless() && p.routedBy(v) == "" {
			p.routes[v.host] = routeProbe{v, concerned}
		}
	}
}

// routedPort reports whether a service has a port of HTTP.
func routedPort(v visible) bool {
	return !v.external() && slices.ContainsFunc(v.Spec.Ports, func(p corev1.ServicePort) bool { return kindOf(p) == routed })
}

// exportedToAll reports whether every namespace of the mesh sees a service, without or by its exportTo.
func (p *replayedProbes) exportedToAll(v visible) bool {
	return !slices.ContainsFunc(p.mesh.Namespaces, func(n capture.Namespace) bool { return !v.exported(n.Name) })
}

// routedBy returns the object of the mesh that routes a service; "" = there is none.
func (p *replayedProbes) routedBy(v visible) string {
	for _, o := range p.mesh.Objects {
		if capture.IsGatewayAPI(o.GroupVersionKind()) {
			if hosts, _ := routeOfService(o); slices.Contains(hosts, v.host) {
				return identity(o)
			}
			continue
		}
		if o.GetKind() != "VirtualService" {
			continue
		}
		hosts, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "hosts")
		if slices.ContainsFunc(hosts, func(host string) bool {
			return capture.HostMatches(capture.FullHost(host, o.GetNamespace(), trustDomain), v.host)
		}) {
			return identity(o)
		}
	}
	return ""
}

// Probe is part of controlplane.Probes: a VirtualService that routes a service of the workload to itself, its marker the
// route's name; an AuthorizationPolicy that denies the workload to a principal that does not exist, its marker; or an EnvoyFilter of the
// root namespace, as for a synthetic mesh. It is nil where it is not certain which sidecars have the marker. Every ztunnel has that of a policy.
func (p *replayedProbes) Probe(kind controlplane.ProbeKind, mesh topology.Mesh, _ scenario.Settings, workload int, marker string) (*unstructured.Unstructured, []int) {
	if p.removes {
		return nil, nil
	}
	name := "scaler-probe-" + mesh.Services[workload].Name
	w := &p.mesh.Workloads[workload]
	switch kind {
	case controlplane.MeshProbe:
		return meshProbe(p.root, marker), p.sidecars(func(*capture.Workload, egress) bool { return true })
	case controlplane.PolicyProbe:
		if !p.policed(workload) {
			return nil, nil
		}
		return policyProbe(w.Namespace, name, w.Spec.Labels, marker), p.sidecars(func(other *capture.Workload, _ egress) bool {
			return other.Namespace == w.Namespace && selects(w.Spec.Labels, other.Spec.Labels)
		})
	case controlplane.RouteProbe:
		for _, v := range p.services {
			if r, ok := p.routes[v.host]; ok && capture.Selects(v.Service, w) && p.onlyWaypoint(w, v.waypoint) {
				return routeObject(v.Namespace, name, v.host, marker), r.concerned
			}
		}
	}
	return nil, nil
}

// onlyWaypoint reports whether each service of a workload certainly has this waypoint.
func (p *replayedProbes) onlyWaypoint(w *capture.Workload, waypoint int) bool {
	return !slices.ContainsFunc(p.services, func(v visible) bool {
		return capture.Selects(v.Service, w) && (v.waypoint != waypoint || !v.certain)
	})
}

// policed reports whether a policy for the labels of a workload shows in the inbound listener of each sidecar that it selects.
func (p *replayedProbes) policed(workload int) bool {
	w := &p.mesh.Workloads[workload]
	if !w.Member() || len(w.Spec.Labels) == 0 || !p.stockInbound(workload) {
		return false
	}
	for i := range p.mesh.Workloads {
		other := &p.mesh.Workloads[i]
		if other.Namespace == w.Namespace && selects(w.Spec.Labels, other.Spec.Labels) && !p.stockInbound(i) {
			return false
		}
	}
	return true
}

// stockInbound reports whether the proxy of a workload, if it has one, has the stock inbound listener. Ztunnels take the place of it.
func (p *replayedProbes) stockInbound(workload int) bool {
	w, e := &p.mesh.Workloads[workload], p.scopes[workload]
	return w.Spec.Proxy != capture.Gateway && e.redirected && (!e.ingress || w.ByNode)
}

// sidecars returns the workloads that have a sidecar with the listener virtualInbound, no gateways, and for which the function is true.
func (p *replayedProbes) sidecars(is func(*capture.Workload, egress) bool) (some []int) {
	for i := range p.mesh.Workloads {
		w, e := &p.mesh.Workloads[i], p.scopes[i]
		if w.Spec.Proxy == capture.Sidecar && e.redirected && is(w, e) {
			some = append(some, i)
		}
	}
	return some
}

// unprobed states why the mesh has no change of a kind.
func (p *replayedProbes) unprobed(kind controlplane.ProbeKind) string {
	for _, o := range p.mesh.Objects {
		if o.GetKind() == "EnvoyFilter" && holdsText(o.Object["spec"], "operation", "REMOVE") {
			return fmt.Sprintf("%s removes parts of the configuration, and it is not certain which sidecars have a marker", identity(o))
		}
	}
	if kind != controlplane.RouteProbe {
		return "no workload of the mesh that is no gateway has labels of its own and, with a sidecar, the stock inbound listeners"
	}
	if p.mesh.Waypoints == nil && p.sidecars(func(*capture.Workload, egress) bool { return true }) == nil {
		return "there are no sidecars and no waypoints, and ztunnels have no routes"
	}
	for i, w := range p.mesh.Workloads {
		if w.Spec.HasSidecar() && !p.scopes[i].redirected {
			return fmt.Sprintf("no connections are redirected to the proxies of %s, and it is not certain which routes they have", w.ID())
		}
	}
	why := "no Service with a workload has a port of HTTP"
	for _, v := range p.services {
		if !routedPort(v) {
			continue
		}
		if by := p.routedBy(v); by != "" {
			return fmt.Sprintf("of its HTTP Services each is routed already, or it is not certain which proxies have a route to it, as Service %s/%s, which %s routes", v.Namespace, v.Name, by)
		}
		why = cmp.Or(fmt.Sprintf("it is not certain which proxies have a route to its HTTP Services, as Service %s/%s", v.Namespace, v.Name), why)
	}
	return why
}

// Distributed is controlplane.Captured's.
func (c captured) Distributed(mesh *capture.Mesh) func(topology.Listing) string {
	by := distributed(mesh)
	return func(l topology.Listing) string { return by(capture.FullHost(l.Service, l.Namespace, trustDomain)) }
}

// distributed returns by what a host's connections are distributed over localities: the mesh configuration, or a
// DestinationRule for the host, whoever it applies to; "" = by nothing. To a proxy in a locality that the distribution is from,
// istiod sends no endpoints of localities that it names no weight for (applyLocalityWeights of its
// pilot/pkg/networking/core/loadbalancer).
func distributed(mesh *capture.Mesh) func(host string) string {
	const field = "distribute"
	if r := mesh.Served(); r != nil && holdsField(r.MeshConfig["localityLbSetting"], field) {
		return func(string) string { return "meshConfig.localityLbSetting" }
	}
	by := map[string]string{} // objects, by the hosts that they are for
	for _, o := range mesh.Objects {
		if host, _, _ := unstructured.NestedString(o.Object, "spec", "host"); o.GetKind() == "DestinationRule" && holdsField(o.Object["spec"], field) {
			by[capture.FullHost(host, o.GetNamespace(), trustDomain)] = identity(o)
		}
	}
	return func(host string) string {
		for _, pattern := range slices.Sorted(maps.Keys(by)) {
			if capture.HostMatches(pattern, host) {
				return by[pattern]
			}
		}
		return ""
	}
}

// holdsField reports whether a field is anywhere in a value.
func holdsField(value any, field string) bool {
	switch v := value.(type) {
	case map[string]any:
		for name, of := range v {
			if name == field || holdsField(of, field) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(of any) bool { return holdsField(of, field) })
	}
	return false
}
