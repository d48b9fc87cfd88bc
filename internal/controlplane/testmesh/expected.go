package testmesh

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
)

// Objects is part of controlplane.Mesh: the mesh's settings where they are not the
// defaults.
func (a *adapter) Objects(_ topology.Mesh, knobs controlplane.Knobs) []*unstructured.Unstructured {
	if knobs.Scope != isolationNamespace {
		return nil
	}
	return []*unstructured.Unstructured{config(meshConfig, Namespace, "mesh", map[string]any{"isolation": isolationNamespace})}
}

func config(kind, namespace, name string, data map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"namespace": namespace, "name": name, "labels": map[string]any{configLabel: kind}},
		"data":     data,
	}}
}

// Wants is part of controlplane.Mesh.
func (a *adapter) Wants(mesh topology.Mesh, knobs controlplane.Knobs, service int) []convergence.Want {
	own := mesh.Services[service]
	wants := []convergence.Want{
		convergence.WantOf(convergence.LDS, outboundListener),
		convergence.WantOf(convergence.LDS, inboundListener),
		convergence.WantOf(convergence.SDS, certificateName(own.Namespace, own.Account)),
		convergence.WantOf(convergence.SDS, rootName("inbound", own.Namespace, own.Name)),
	}
	inbound, outbound := convergence.WantOf(convergence.RDS, inboundRoutes), convergence.WantOf(convergence.RDS, outboundRoutes)
	for _, p := range own.Ports {
		wants = append(wants, convergence.WantOf(convergence.CDS, localName(own.Namespace, own.Name, p.Number)))
		inbound.Members = append(inbound.Members, domain(own.Namespace, own.Name, p.Number))
	}
	for _, i := range inScope(mesh, knobs, service) {
		s := mesh.Services[i]
		wants = append(wants, convergence.WantOf(convergence.SDS, rootName("outbound", s.Namespace, s.Name)))
		for _, p := range s.Ports {
			endpoints := convergence.WantOf(convergence.EDS, clusterName(s.Namespace, s.Name, p.Number))
			endpoints.Service = s.ServicePort(p)
			wants = append(wants, convergence.WantOf(convergence.CDS, clusterName(s.Namespace, s.Name, p.Number)), endpoints)
			outbound.Members = append(outbound.Members, domain(s.Namespace, s.Name, p.Number))
		}
	}
	return append(wants, inbound, outbound)
}

// inScope are the services that the sidecars of one are configured for.
func inScope(mesh topology.Mesh, knobs controlplane.Knobs, service int) (all []int) {
	for i, s := range mesh.Services {
		if knobs.Scope != isolationNamespace || s.Namespace == mesh.Services[service].Namespace {
			all = append(all, i)
		}
	}
	return all
}

// Holds is part of controlplane.Mesh: the wanted resources and no others.
func (a *adapter) Holds(mesh topology.Mesh, knobs controlplane.Knobs, service int) []convergence.Key {
	return convergence.Keys(a.Wants(mesh, knobs, service))
}

// EndpointHealth is part of controlplane.Mesh: only endpoints that are ready are sent.
func (a *adapter) EndpointHealth(ready, _, _ bool) (convergence.Health, bool) {
	return convergence.Healthy, ready
}

// Probe is part of controlplane.Probes: a marker in the name of a service's route, or
// of its policy. It has no setting of the whole mesh that carries one.
func (a *adapter) Probe(kind controlplane.ProbeKind, mesh topology.Mesh, knobs controlplane.Knobs, service int, marker string) (*unstructured.Unstructured, []int) {
	if kind == controlplane.MeshProbe {
		return nil, nil
	}
	s := mesh.Services[service]
	data := map[string]any{"service": s.Name, "marker": marker}
	if kind == controlplane.PolicyProbe {
		return config(policyConfig, s.Namespace, "policy-"+s.Name, data), []int{service}
	}
	var concerned []int
	for i := range mesh.Services {
		if slices.Contains(inScope(mesh, knobs, i), service) {
			concerned = append(concerned, i)
		}
	}
	return config(routeConfig, s.Namespace, "route-"+s.Name, data), concerned
}
