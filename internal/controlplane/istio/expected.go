package istio

import (
	"fmt"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/scenario"
)

// configuration has what istiod makes of the objects and the configuration of a mesh.
type configuration struct{ *ControlPlane }

// membership returns the labels by which pods are injected: the label of their namespace or, where there are
// revisions, that of the pod, which counts only in a namespace without labels of Istio's.
func (c *ControlPlane) membership() controlplane.Membership {
	if c.opts.Revision != "" {
		return controlplane.Membership{PodLabels: map[string]string{revisionLabel: c.opts.Revision}}
	}
	return controlplane.Membership{NamespaceLabels: map[string]string{"istio-injection": "enabled"}}
}

const (
	virtualInbound  = "virtualInbound"
	virtualOutbound = "virtualOutbound"
)

// Wants returns the resources that every sidecar of the mesh's service with this
// index must come to hold: a cluster, and its endpoints, for every port of
// every service in scope; its own inbound cluster; the listeners, the inbound
// one with the policies and the mutual TLS that the knobs ask for; and in the
// route configuration of each HTTP port the services in scope that have it.
//
// Names follow BuildSubsetKey, BuildInboundSubsetKey and the outbound listener
// builder of this version's pilot/pkg.
func (c configuration) Wants(mesh topology.Mesh, knobs scenario.Settings, service int) []convergence.Want {
	own := mesh.Services[service]
	if own.Gateway {
		return gatewayWants(mesh, own)
	}
	wants := []convergence.Want{
		convergence.WantOf(convergence.LDS, virtualOutbound),
		c.wantInbound(mesh, knobs, service),
	}
	for _, key := range c.tunnels() {
		wants = append(wants, convergence.Want{Key: key})
	}
	for _, port := range own.Ports {
		wants = append(wants, convergence.WantOf(convergence.CDS, inboundCluster(port)))
	}
	hosts := map[int][]string{}
	for _, s := range scope(mesh, knobs, service) {
		host := hostname(s)
		for _, port := range s.Ports {
			for n, cluster := range outboundClusters(mesh, s, port.Number) {
				wants = append(wants, convergence.WantOf(convergence.CDS, cluster))
				if s.Headless { // a connection goes to the address that it is for
					continue
				}
				endpoints := convergence.WantOf(convergence.EDS, cluster)
				if n < 2 { // the last subset has none
					endpoints.Service = s.ServicePort(port)
				}
				wants = append(wants, endpoints)
			}
			if port.TCP {
				wants = append(wants, convergence.WantOf(convergence.LDS, tcpListener(s, port)))
				continue
			}
			hosts[port.Number] = append(hosts[port.Number], host)
		}
	}
	if knobs.Scope != scenario.ScopeDeclared {
		more, routes := profileWants(mesh)
		wants = append(wants, more...)
		if len(routes) > 0 {
			hosts[80] = append(hosts[80], routes...)
		}
	}
	for port, members := range hosts {
		route := convergence.WantOf(convergence.RDS, fmt.Sprint(port))
		route.Members = members
		wants = append(wants, route, convergence.WantOf(convergence.LDS, anyAddress(port)))
	}
	return wants
}

// wantInbound returns the listener of what reaches a workload. Its members distinguish the
// generation of the policies that it carries.
func (c configuration) wantInbound(mesh topology.Mesh, knobs scenario.Settings, service int) convergence.Want {
	own, inbound := mesh.Services[service], convergence.WantOf(convergence.LDS, virtualInbound)
	for _, port := range own.Ports {
		if knobs.MTLS == "strict" {
			inbound.Members = append(inbound.Members, convergence.MutualTLSMember(port.Target))
		} else {
			inbound.Members = append(inbound.Members, convergence.PlaintextMember(port.Target))
		}
	}
	if knobs.Authz == "declared" {
		for _, p := range policiesOf(mesh, service, callers(mesh)[service]) {
			inbound.Members = append(inbound.Members, convergence.PolicyMember(p.ruleName(own)))
		}
	}
	return inbound
}

// scope returns the services of the mesh that a service's sidecars are configured
// for. With scope all that is every one, its own included.
func scope(mesh topology.Mesh, knobs scenario.Settings, service int) []topology.Service {
	if knobs.Scope != scenario.ScopeDeclared {
		return mesh.Services
	}
	var services []topology.Service
	for _, callee := range mesh.Services[service].Calls {
		services = append(services, mesh.Services[callee])
	}
	return services
}

func hostname(s topology.Service) string { return fqdn(s.Name, s.Namespace) }

func fqdn(service, namespace string) string {
	return fmt.Sprintf("%s.%s.svc.%s", service, namespace, trustDomain)
}

func outboundCluster(port int, host string) string {
	return fmt.Sprintf("outbound|%d||%s", port, host)
}

func inboundCluster(port topology.Port) string { return fmt.Sprintf("inbound|%d||", port.Target) }

// anyAddress returns the listener that takes an HTTP port of all services.
func anyAddress(port int) string { return fmt.Sprintf("0.0.0.0_%d", port) }

// EndpointHealth returns the health that this version sends for an endpoint with these conditions; ok is
// false for one that it does not send. Not-ready endpoints are sent as
// unhealthy where sendsUnready, terminating
// ones are not sent (endpointHealthStatus in
// pilot/pkg/serviceregistry/kube/controller/endpointslice.go and the filter of
// pilot/pkg/xds/endpoints/endpoint_builder.go).
func (c configuration) EndpointHealth(ready, _, terminating bool) (health convergence.Health, ok bool) {
	switch {
	case ready:
		return convergence.Healthy, true
	case terminating || !c.sendsUnready:
		return 0, false
	default:
		return convergence.Unhealthy, true
	}
}
