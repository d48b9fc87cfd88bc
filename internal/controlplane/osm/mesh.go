package osm

import (
	"math"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/scenario"
)

// Names of resources, from pkg/envoy of its module.
const (
	inboundListener  = "inbound-listener"
	outboundListener = "outbound-listener"
	passthrough      = "passthrough-outbound" // the cluster of traffic that leaves the mesh
	inboundRoutes    = "rds-inbound."
	outboundRoutes   = "rds-outbound."
	certificate      = "service-cert:"
	inboundRoots     = "root-cert-for-mtls-inbound:"
	outboundRoots    = "root-cert-for-mtls-outbound:"
)

// routeGroup is the HTTPRouteGroup of every namespace, with the one match that allows everything.
const (
	routeGroup = "all"
	everything = "everything"
)

// Objects is part of controlplane.Mesh: where traffic needs a policy, a TrafficTarget for each
// service that is called, which lets its callers do so, and the routes that these name.
func (c *controlPlane) Objects(mesh topology.Mesh, knobs scenario.Settings) []*unstructured.Unstructured {
	if knobs.Scope != scenario.ScopeDeclared {
		return nil
	}
	var objects []*unstructured.Unstructured
	for _, namespace := range mesh.Namespaces {
		objects = append(objects, object("specs.smi-spec.io/v1alpha4", "HTTPRouteGroup", namespace, routeGroup, map[string]any{
			"matches": []any{map[string]any{"name": everything, "pathRegex": ".*", "methods": []any{"*"}}},
		}))
	}
	for i, s := range mesh.Services {
		if sources := callers(mesh, i); len(sources) > 0 {
			objects = append(objects, trafficTarget(s, sources))
		}
	}
	return objects
}

// trafficTarget lets accounts call the account of a service.
func trafficTarget(s topology.Service, sources []any) *unstructured.Unstructured {
	return object("access.smi-spec.io/v1alpha3", "TrafficTarget", s.Namespace, s.Name, map[string]any{
		"destination": subject(s),
		"sources":     sources,
		"rules":       []any{map[string]any{"kind": "HTTPRouteGroup", "name": routeGroup, "matches": []any{everything}}},
	})
}

// callers returns the subjects of the services that call one.
func callers(mesh topology.Mesh, service int) (subjects []any) {
	for _, s := range mesh.Services {
		if slices.Contains(s.Calls, service) {
			subjects = append(subjects, subject(s))
		}
	}
	return subjects
}

func subject(s topology.Service) map[string]any {
	return map[string]any{"kind": "ServiceAccount", "name": s.Account, "namespace": s.Namespace}
}

// Wants is part of controlplane.Mesh.
func (c *controlPlane) Wants(mesh topology.Mesh, knobs scenario.Settings, service int) []convergence.Want {
	own := mesh.Services[service]
	wants := []convergence.Want{
		convergence.WantOf(convergence.CDS, passthrough),
		convergence.WantOf(convergence.LDS, inboundListener),
		convergence.WantOf(convergence.LDS, outboundListener),
		convergence.WantOf(convergence.SDS, certificate+identity(own)),
		convergence.WantOf(convergence.SDS, inboundRoots+identity(own)),
	}
	for _, p := range own.Ports {
		wants = append(wants,
			convergence.WantOf(convergence.CDS, clusterName(own, p)+"|local"),
			convergence.WantOf(convergence.RDS, inboundRoutes+strconv.Itoa(p.Target), domain(own, p)))
	}
	for _, i := range reached(mesh, knobs, service) {
		wants = append(wants, outbound(mesh.Services[i])...)
	}
	return wants
}

// outbound returns the resources that a sidecar needs to call a service. The port of its pods is in the names of clusters, and
// osm-controller takes it from the endpoints (ServiceToMeshServices in its pkg/k8s): of a service
// that has none, it sends a cluster of port 0. Where policies state who may call, a service is found by
// its pods, and has no route before.
func outbound(s topology.Service) (wants []convergence.Want) {
	for _, p := range s.Ports {
		endpoints := convergence.WantOf(convergence.EDS, clusterName(s, p))
		endpoints.Service = s.ServicePort(p)
		for _, want := range []convergence.Want{
			endpoints,
			convergence.WantOf(convergence.CDS, clusterName(s, p)),
			convergence.WantOf(convergence.RDS, outboundRoutes+strconv.Itoa(p.Number), domain(s, p)),
			convergence.WantOf(convergence.SDS, outboundRoots+s.Namespace+"/"+s.Name),
		} {
			want.Since = s.ServicePort(p)
			wants = append(wants, want)
		}
	}
	return wants
}

// reached returns the services with pods that the sidecars of one are configured for: with policies, those
// whose account it may call. A service without pods is not found by its account, and has no cluster
// of its port.
func reached(mesh topology.Mesh, knobs scenario.Settings, service int) (all []int) {
	allowed := map[string]bool{}
	for _, i := range mesh.Services[service].Calls {
		allowed[identity(mesh.Services[i])] = true
	}
	for i, s := range mesh.Services {
		if s.Pods > 0 && (knobs.Scope != scenario.ScopeDeclared || allowed[identity(s)]) {
			all = append(all, i)
		}
	}
	return all
}

// Holds is part of controlplane.Mesh: the wanted resources and no others.
func (c *controlPlane) Holds(mesh topology.Mesh, knobs scenario.Settings, service int) []convergence.Key {
	seen := map[convergence.Key]bool{}
	return slices.DeleteFunc(convergence.Keys(c.Wants(mesh, knobs, service)), func(key convergence.Key) bool {
		again := seen[key]
		seen[key] = true
		return again // a want of routes is that of one service, a want of roots that of one port
	})
}

// EndpointHealth is part of controlplane.Mesh: Endpoints list the ready addresses by themselves,
// and only those are sent.
func (c *controlPlane) EndpointHealth(ready, _, _ bool) (convergence.Health, bool) {
	return convergence.Healthy, ready
}

// Probe is part of controlplane.Probes: an UpstreamTrafficSetting, which limits the requests to a service to
// more than there ever are, with a marker in a header of the answers to what is over the limit. It is in
// the inbound routes of the service's own sidecars. Nothing that a service is reached by, or that is of the whole
// mesh, can carry a marker without changing traffic.
func (c *controlPlane) Probe(kind controlplane.ProbeKind, mesh topology.Mesh, _ scenario.Settings, service int, marker string) (*unstructured.Unstructured, []int) {
	if kind != controlplane.PolicyProbe {
		return nil, nil
	}
	s := mesh.Services[service]
	return object("policy.openservicemesh.io/v1alpha1", "UpstreamTrafficSetting", s.Namespace, "scaler-probe-"+s.Name, map[string]any{
		"host": s.Name + "." + s.Namespace + ".svc." + trustDomain,
		"rateLimit": map[string]any{"local": map[string]any{"http": map[string]any{
			"requests": int64(math.MaxInt32), "unit": "second",
			"responseHeadersToAdd": []any{map[string]any{"name": "x-scaler-probe", "value": marker}},
		}}},
	}), []int{service}
}

// identity names the account of a service as secrets do.
func identity(s topology.Service) string { return s.Namespace + "/" + s.Account }

// clusterName returns the name of a service port's cluster, which has the port of its pods.
func clusterName(s topology.Service, p topology.Port) string {
	return s.Namespace + "/" + s.Name + "|" + strconv.Itoa(p.Target)
}

// domain returns one of the names by which a service port is called.
func domain(s topology.Service, p topology.Port) string {
	return s.Name + "." + s.Namespace + ".svc." + trustDomain + ":" + strconv.Itoa(p.Number)
}
