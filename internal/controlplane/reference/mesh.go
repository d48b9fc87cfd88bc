package reference

import (
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/reference/server"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/scenario"
)

// Objects returns one ConfigMap with the knobs, and one for each service that says
// who its pods are and whom they call: the reference control plane's own rules,
// see server.ConfigLabel. At the most permissive knobs there is nothing to say.
func (c *ControlPlane) Objects(mesh topology.Mesh, knobs scenario.Settings) []*unstructured.Unstructured {
	if knobs == controlplane.Modes["permissive"] {
		return nil
	}
	objects := []*unstructured.Unstructured{config(server.MeshConfig, server.Namespace, "mesh", map[string]any{
		"mtls": knobs.MTLS, "scope": knobs.Scope, "authz": knobs.Authz,
	})}
	for _, s := range mesh.Services {
		var calls []string
		for _, callee := range s.Calls {
			calls = append(calls, server.Workload(mesh.Services[callee].Namespace, mesh.Services[callee].Name))
		}
		objects = append(objects, config(server.WorkloadConfig, s.Namespace, s.Name, map[string]any{
			"account": s.Account, "calls": strings.Join(calls, " "),
		}))
	}
	return objects
}

func config(kind, namespace, name string, data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata": map[string]any{
			"namespace": namespace, "name": name,
			"labels": map[string]any{server.ConfigLabel: kind},
		},
		"data": data,
	}}
}

// Wants returns the resources that every sidecar of the mesh's service with this
// index must come to hold: a cluster, and its endpoints, for every port of
// every service in scope; its own inbound clusters; both listeners; and the
// route configuration with the domains of the services in scope.
func (c *ControlPlane) Wants(mesh topology.Mesh, knobs scenario.Settings, service int) []convergence.Want {
	own := mesh.Services[service]
	wants := []convergence.Want{
		convergence.WantOf(convergence.LDS, server.OutboundListener),
		convergence.WantOf(convergence.LDS, server.InboundListener),
	}
	inbound := map[int]bool{}
	for _, p := range own.Ports {
		if !inbound[p.Target] {
			wants = append(wants, convergence.WantOf(convergence.CDS, server.InboundListener+":"+strconv.Itoa(p.Target)))
		}
		inbound[p.Target] = true
	}
	route := convergence.WantOf(convergence.RDS, server.Route(knobs.Scope == scenario.ScopeDeclared, server.Workload(own.Namespace, own.Name)))
	for _, i := range scope(mesh, knobs, service) {
		s := mesh.Services[i]
		for n, p := range s.Ports {
			cluster := server.Cluster(s.Namespace, s.Name, p.Name)
			endpoints := convergence.WantOf(convergence.EDS, cluster)
			endpoints.Service = s.ServicePort(p)
			wants = append(wants, convergence.WantOf(convergence.CDS, cluster), endpoints)
			route.Members = append(route.Members, server.Domains(s.Namespace, s.Name, strconv.Itoa(p.Number), n == 0)...)
		}
	}
	return append(wants, route)
}

// Holds returns the keys of the wanted resources: the server sends no others.
func (c *ControlPlane) Holds(mesh topology.Mesh, knobs scenario.Settings, service int) []convergence.Key {
	return convergence.Keys(c.Wants(mesh, knobs, service))
}

// scope returns the services that the sidecars of one are configured for.
func scope(mesh topology.Mesh, knobs scenario.Settings, service int) []int {
	if knobs.Scope == scenario.ScopeDeclared {
		return mesh.Services[service].Calls
	}
	return every(mesh)
}

// every returns the services of a mesh.
func every(mesh topology.Mesh) []int {
	all := make([]int, len(mesh.Services))
	for i := range all {
		all[i] = i
	}
	return all
}

// EndpointHealth returns the health that the server sends for an endpoint with these conditions.
func (c *ControlPlane) EndpointHealth(ready, serving, terminating bool) (health convergence.Health, ok bool) {
	return server.Health(ready, serving, terminating)
}

// Probe names the route to a service, a policy of it that is not enforced, or such a
// policy of all services.
func (c *ControlPlane) Probe(kind controlplane.ProbeKind, mesh topology.Mesh, knobs scenario.Settings, service int, marker string) (*unstructured.Unstructured, []int) {
	s := mesh.Services[service]
	data := map[string]any{"service": s.Name, "name": marker}
	if kind == controlplane.MeshProbe {
		data["service"] = server.EveryService
		return config(server.PolicyConfig, server.Namespace, "probe-mesh", data), every(mesh)
	}
	if kind == controlplane.PolicyProbe {
		return config(server.PolicyConfig, s.Namespace, "probe-policy-"+s.Name, data), []int{service}
	}
	var concerned []int
	for i := range mesh.Services {
		if slices.Contains(scope(mesh, knobs, i), service) {
			concerned = append(concerned, i)
		}
	}
	return config(server.RouteConfig, s.Namespace, "probe-route-"+s.Name, data), concerned
}
