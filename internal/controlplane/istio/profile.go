package istio

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/convergence"
)

// subsets are the subsets of a DestinationRule of a profile: the first selects all pods of its
// service, the second none.
var subsets = []string{"v1", "v2"}

// profileHost returns a host that is none of the cluster's services.
func profileHost(kind string, i int) string { return fmt.Sprintf("%s-%d.profile.example", kind, i) }

// profileObjects returns the objects that the profile of a mesh becomes.
func profileObjects(mesh topology.Mesh) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	p := mesh.Profile
	services := mesh.WithoutGateways()
	of := func(i int) topology.Service { return services[i%len(services)] }
	selector := func(s topology.Service) map[string]any { return map[string]any{"app": s.Name} }
	for i := range topology.Value(p.VirtualServices) {
		if i < len(services) {
			objects = append(objects, ownRoute(services[i], "canary"))
			continue
		}
		objects = append(objects, object("networking.istio.io/v1", "VirtualService", of(i).Namespace, fmt.Sprintf("route-%d", i),
			routing(profileHost("route", i), hostname(of(i)), "canary")))
	}
	for i := range topology.Value(p.DestinationRules) {
		s := of(i)
		objects = append(objects, object("networking.istio.io/v1", "DestinationRule", s.Namespace, s.Name, map[string]any{
			"host": hostname(s),
			"trafficPolicy": map[string]any{
				"connectionPool":   map[string]any{"http": map[string]any{"http2MaxRequests": int64(1000)}},
				"outlierDetection": map[string]any{"consecutive5xxErrors": int64(7), "interval": "30s"},
			},
			"subsets": []any{
				map[string]any{"name": subsets[0], "labels": selector(s)},
				map[string]any{"name": subsets[1], "labels": map[string]any{"app": s.Name, "version": subsets[1]}},
			},
		}))
	}
	for i := range topology.Value(p.ServiceEntries) {
		objects = append(objects, object("networking.istio.io/v1", "ServiceEntry", of(i).Namespace, fmt.Sprintf("external-%d", i), map[string]any{
			"hosts":      []any{profileHost("external", i)},
			"location":   "MESH_EXTERNAL",
			"resolution": "DNS",
			"ports":      []any{map[string]any{"number": int64(externalPort), "name": "tls", "protocol": "TLS"}},
		}))
	}
	for i := range topology.Value(p.EnvoyFilters) {
		s, name := of(i), fmt.Sprintf("filter-%d", i)
		objects = append(objects, object("networking.istio.io/v1alpha3", "EnvoyFilter", s.Namespace, name, map[string]any{
			"workloadSelector": map[string]any{"labels": selector(s)},
			"configPatches": []any{map[string]any{
				"applyTo": "HTTP_FILTER",
				"match": map[string]any{"context": "SIDECAR_INBOUND", "listener": map[string]any{"filterChain": map[string]any{"filter": map[string]any{
					"name": "envoy.filters.network.http_connection_manager", "subFilter": map[string]any{"name": "envoy.filters.http.router"},
				}}}},
				"patch": map[string]any{"operation": "INSERT_BEFORE", "value": map[string]any{
					"name": name,
					"typed_config": map[string]any{
						"@type":             "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua",
						"defaultSourceCode": map[string]any{"inlineString": "function envoy_on_request(handle)\n  handle:headers():add(\"x-profile\", \"" + name + "\")\nend\n"},
					},
				}},
			}},
		}))
	}
	for i := range topology.Value(p.Telemetries) {
		s := of(i)
		objects = append(objects, object("telemetry.istio.io/v1", "Telemetry", s.Namespace, s.Name, map[string]any{
			"selector":      map[string]any{"matchLabels": selector(s)},
			"accessLogging": []any{map[string]any{"providers": []any{map[string]any{"name": "envoy"}}}},
		}))
	}
	for i := range topology.Value(p.ExternalNames) {
		s := of(i)
		objects = append(objects, object("v1", "Service", s.Namespace, aliasName(i), map[string]any{
			"type": "ExternalName", "externalName": hostname(s),
			"ports": []any{map[string]any{"name": s.Ports[0].Name, "port": int64(s.Ports[0].Number), "protocol": "TCP"}},
		}))
	}
	return append(objects, gatewayObjects(mesh)...)
}

// aliasName returns the name of a Service of type ExternalName that is an alias of another Service.
func aliasName(i int) string { return fmt.Sprintf("alias-%d", i) }

// externalPort is the port of a ServiceEntry of a profile.
const externalPort = 443

// ownRoute returns the VirtualService that a profile has for a service; name is that of its
// first route.
func ownRoute(s topology.Service, name string) *unstructured.Unstructured {
	route := object("networking.istio.io/v1", "VirtualService", s.Namespace, "route-"+s.Name, routing(hostname(s), hostname(s), name))
	route.SetLabels(map[string]string{kwok.ProfileLabel: "true"})
	return route
}

// routing returns the specification of a VirtualService with two routes.
func routing(host, destination, name string) map[string]any {
	route := func() []any {
		return []any{map[string]any{"destination": map[string]any{"host": destination, "port": map[string]any{"number": int64(80)}}}}
	}
	return map[string]any{
		"hosts": []any{host},
		"http": []any{
			map[string]any{
				"name":  name,
				"match": []any{map[string]any{"headers": map[string]any{"x-canary": map[string]any{"exact": "true"}}}},
				"route": route(),
			},
			map[string]any{
				"name":    "default",
				"timeout": "10s",
				"retries": map[string]any{"attempts": int64(2), "retryOn": "connect-failure,refused-stream"},
				"route":   route(),
			},
		},
	}
}

// hasOwnRoute reports whether a profile has a VirtualService for the service with this index.
func hasOwnRoute(mesh topology.Mesh, service int) bool {
	return service < min(topology.Value(mesh.Profile.VirtualServices), len(mesh.WithoutGateways()))
}

// outboundClusters returns the names of a port's clusters: its own, and one for each subset.
func outboundClusters(mesh topology.Mesh, s topology.Service, port int) []string {
	names := []string{outboundCluster(port, hostname(s))}
	for i := range topology.Value(mesh.Profile.DestinationRules) {
		if mesh.Services[i].Name == s.Name {
			for _, subset := range subsets {
				names = append(names, subsetCluster(port, subset, hostname(s)))
			}
		}
	}
	return names
}

// profileWants returns the resources of the profile's objects that every sidecar holds that is configured
// for everything: hosts outside the cluster, with clusters and a listener, and routes to hosts
// that are none of its services or are aliases of one.
func profileWants(mesh topology.Mesh) (wants []convergence.Want, routes []string) {
	for i := range topology.Value(mesh.Profile.ServiceEntries) {
		wants = append(wants, convergence.WantOf(convergence.CDS, outboundCluster(externalPort, profileHost("external", i))))
	}
	if mesh.Profile.ServiceEntries != nil {
		wants = append(wants, convergence.WantOf(convergence.LDS, anyAddress(externalPort)))
	}
	for i := len(mesh.WithoutGateways()); i < topology.Value(mesh.Profile.VirtualServices); i++ {
		routes = append(routes, profileHost("route", i))
	}
	for i := range topology.Value(mesh.Profile.ExternalNames) {
		routes = append(routes, fqdn(aliasName(i), mesh.Services[i%len(mesh.WithoutGateways())].Namespace))
	}
	return wants, routes
}

// tcpListener returns the listener of a TCP port of a service.
func tcpListener(s topology.Service, port topology.Port) string {
	return fmt.Sprintf("%s_%d", kwok.ServiceAddress(s.Address), port.Number)
}
