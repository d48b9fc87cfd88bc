package linkerd

import (
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/linkerd/linkerdproxy"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/scenario"
)

// Objects is part of controlplane.Mesh: there is nothing to configure.
func (c *controlPlane) Objects(topology.Mesh, scenario.Settings) []*unstructured.Unstructured {
	return nil
}

// Wants is part of controlplane.Mesh: the profiles of a service's own ports, which its proxies look up for
// what they receive, and for each port that it calls the profile and the endpoints.
func (c *controlPlane) Wants(mesh topology.Mesh, _ scenario.Settings, service int) []convergence.Want {
	own := mesh.Services[service]
	var wants []convergence.Want
	for _, p := range own.Ports {
		wants = append(wants, convergence.WantOf(linkerdproxy.Profile, name(own, p)))
	}
	for _, i := range own.Calls {
		s := mesh.Services[i]
		for _, p := range s.Ports {
			endpoints := convergence.WantOf(linkerdproxy.Addresses, name(s, p))
			endpoints.Service = s.ServicePort(p)
			wants = append(wants, convergence.WantOf(linkerdproxy.Profile, name(s, p)), endpoints)
		}
	}
	return wants
}

// Holds is part of controlplane.Mesh: the wanted resources and no others.
func (c *controlPlane) Holds(mesh topology.Mesh, knobs scenario.Settings, service int) []convergence.Key {
	return convergence.Keys(c.Wants(mesh, knobs, service))
}

// EndpointHealth is part of controlplane.Mesh: Endpoints list the ready addresses by themselves,
// and only those are sent.
func (c *controlPlane) EndpointHealth(ready, _, _ bool) (convergence.Health, bool) {
	return convergence.Healthy, ready
}

// Probe is part of controlplane.Probes: a ServiceProfile with one route, of a path that nobody calls,
// whose name is the marker. It concerns those who call the service, and the service.
func (c *controlPlane) Probe(kind controlplane.ProbeKind, mesh topology.Mesh, _ scenario.Settings, service int, marker string) (*unstructured.Unstructured, []int) {
	if kind != controlplane.RouteProbe {
		return nil, nil // this release has no policies
	}
	s := mesh.Services[service]
	concerned := []int{service}
	for i, o := range mesh.Services {
		if slices.Contains(o.Calls, service) {
			concerned = append(concerned, i)
		}
	}
	slices.Sort(concerned)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "linkerd.io/v1alpha2", "kind": "ServiceProfile",
		"metadata": map[string]any{"namespace": s.Namespace, "name": host(s)},
		"spec": map[string]any{"routes": []any{map[string]any{
			"name": marker, "condition": map[string]any{"method": "GET", "pathRegex": "/scaler\\.mesh/probe"},
		}}},
	}}, concerned
}

// host returns the name of a service.
func host(s topology.Service) string { return s.Name + "." + s.Namespace + ".svc." + trustDomain }

// name returns the name of a service port.
func name(s topology.Service, p topology.Port) string { return host(s) + ":" + strconv.Itoa(p.Number) }
