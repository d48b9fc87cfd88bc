package istio

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
)

// gatewayHosts is the number of hosts of each gateway of a profile.
const gatewayHosts = 10

// makeGateway makes pods gateways: injection makes a container of this name the gateway.
func makeGateway(template *corev1.PodTemplateSpec) {
	template.Annotations = map[string]string{"inject.istio.io/templates": "gateway"}
	template.Spec.Containers[0].Name, template.Spec.Containers[0].Image = proxyContainer, "auto"
}

// hostsOf returns the hosts of a gateway of a profile.
func hostsOf(gateway topology.Service) []string {
	var hosts []string
	for i := range gatewayHosts {
		hosts = append(hosts, fmt.Sprintf("host-%d.%s.profile.example", i, gateway.Name))
	}
	return hosts
}

// gatewayObjects returns a Gateway for each gateway of a mesh, and a VirtualService for each of
// its hosts, which routes to one of the services.
func gatewayObjects(mesh topology.Mesh) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	services := mesh.WithoutGateways()
	for n, s := range mesh.Services[len(services):] {
		var hosts []any
		for i, host := range hostsOf(s) {
			hosts = append(hosts, host)
			to := services[(n*gatewayHosts+i)%len(services)]
			spec := routing(host, hostname(to), "canary")
			spec["gateways"] = []any{s.Name}
			objects = append(objects, object("networking.istio.io/v1", "VirtualService", s.Namespace, fmt.Sprintf("%s-%d", s.Name, i), spec))
		}
		objects = append(objects, object("networking.istio.io/v1", "Gateway", s.Namespace, s.Name, map[string]any{
			"selector": map[string]any{"app": s.Name},
			"servers": []any{map[string]any{
				"port":  map[string]any{"number": int64(s.Ports[0].Number), "name": "http", "protocol": "HTTP"},
				"hosts": hosts,
			}},
		}))
	}
	return objects
}

// gatewayWants returns the resources that a gateway must come to hold: a cluster and its
// endpoints for every port of every service, whatever the scope of sidecars, and one
// listener with the routes of its hosts. A gateway is sent the endpoints of headless services,
// too (convertResolution of istiod's pilot/pkg/networking/core).
func gatewayWants(mesh topology.Mesh, gateway topology.Service) []convergence.Want {
	port := gateway.Ports[0].Target
	routes := convergence.WantOf(convergence.RDS, fmt.Sprintf("http.%d", port))
	routes.Members = hostsOf(gateway)
	wants := []convergence.Want{convergence.WantOf(convergence.LDS, anyAddress(port)), routes}
	for _, s := range mesh.Services {
		for _, port := range s.Ports {
			for n, cluster := range outboundClusters(mesh, s, port.Number) {
				endpoints := convergence.WantOf(convergence.EDS, cluster)
				if n < 2 { // the last subset has none
					endpoints.Service = s.ServicePort(port)
				}
				wants = append(wants, convergence.WantOf(convergence.CDS, cluster), endpoints)
			}
		}
	}
	for i := range topology.Value(mesh.Profile.ServiceEntries) {
		wants = append(wants, convergence.WantOf(convergence.CDS, outboundCluster(externalPort, profileHost("external", i))))
	}
	return wants
}
