package istio

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/topology"
)

// NamespaceLabels are what a namespace needs for its pods to be injected.
func (c *ControlPlane) NamespaceLabels() map[string]string {
	return map[string]string{"istio-injection": "enabled"}
}

// Objects are what the knobs become. Istio's defaults are the permissive mode's.
func (c *ControlPlane) Objects(topology.Mesh, controlplane.Knobs) []*unstructured.Unstructured {
	return nil
}

// Wants are the resources that every sidecar of the mesh's service with this
// index must come to hold: a cluster, and its endpoints, for every port of
// every service in scope; its own inbound cluster; the listeners; and in the
// route configuration of each HTTP port the services that have that port.
//
// Names follow BuildSubsetKey, BuildInboundSubsetKey and the outbound listener
// builder of this version's pilot/pkg.
func (c *ControlPlane) Wants(mesh topology.Mesh, _ controlplane.Knobs, service int) []convergence.Want {
	own := mesh.Services[service]
	want := func(t convergence.Type, name string) convergence.Want {
		return convergence.Want{Key: convergence.Key{Type: t, Name: name}}
	}
	wants := []convergence.Want{
		want(convergence.LDS, "virtualOutbound"),
		want(convergence.LDS, "virtualInbound"),
	}
	for _, port := range own.Ports {
		wants = append(wants, want(convergence.CDS, fmt.Sprintf("inbound|%d||", port.Target)))
	}
	hosts := map[int][]string{}
	for _, s := range mesh.Services {
		host := hostname(s)
		for _, port := range s.Ports {
			cluster := fmt.Sprintf("outbound|%d||%s", port.Number, host)
			endpoints := want(convergence.EDS, cluster)
			endpoints.Service = s.Namespace + "/" + s.Name + ":" + port.Name
			wants = append(wants, want(convergence.CDS, cluster), endpoints)
			hosts[port.Number] = append(hosts[port.Number], host)
		}
	}
	for port, members := range hosts {
		route := want(convergence.RDS, fmt.Sprint(port))
		route.Members = members
		wants = append(wants, route, want(convergence.LDS, fmt.Sprintf("0.0.0.0_%d", port)))
	}
	return wants
}

func hostname(s topology.Service) string {
	return fmt.Sprintf("%s.%s.svc.%s", s.Name, s.Namespace, trustDomain)
}

// EndpointHealth is what this version makes of an endpoint's conditions: ok is
// false for one that it does not send. Not-ready endpoints are sent as
// unhealthy (PILOT_AUTO_SEND_UNHEALTHY_ENDPOINTS is on by default), terminating
// ones are not sent (endpointHealthStatus in
// pilot/pkg/serviceregistry/kube/controller/endpointslice.go and the filter of
// pilot/pkg/xds/endpoints/endpoint_builder.go).
func (c *ControlPlane) EndpointHealth(ready, _, terminating bool) (health convergence.Health, ok bool) {
	switch {
	case ready:
		return convergence.Healthy, true
	case terminating:
		return 0, false
	default:
		return convergence.Unhealthy, true
	}
}
