package capture

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is one that capture reads.
type Resource struct {
	schema.GroupVersionResource
	Kind string
	// Cluster reports that its objects have no namespace.
	Cluster bool

	namespace string // in which its objects are listed; "" = in all
}

func resource(group, version, plural, kind string) Resource {
	return Resource{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version, Resource: plural}, Kind: kind}
}

func (r Resource) ofCluster() Resource {
	r.Cluster = true
	return r
}

// Groups of the kinds of configuration.
const gatewayAPI = "gateway.networking.k8s.io"

// basics are the resources from which services and workloads are gathered.
var basics = []Resource{
	resource("", "v1", "namespaces", "Namespace").ofCluster(),
	resource("", "v1", "nodes", "Node").ofCluster(),
	resource("", "v1", "services", "Service"),
	resource("", "v1", "pods", "Pod"),
	resource("apps", "v1", "deployments", "Deployment"),
	resource("apps", "v1", "statefulsets", "StatefulSet"),
	resource("apps", "v1", "daemonsets", "DaemonSet"),
	webhooks,
	endpointSlices,
}

// configuration lists the kinds of a mesh's configuration.
var configuration = []Resource{
	resource("networking.istio.io", "v1", "destinationrules", "DestinationRule"),
	resource("networking.istio.io", "v1alpha3", "envoyfilters", "EnvoyFilter"),
	resource("networking.istio.io", "v1", "gateways", "Gateway"),
	resource("networking.istio.io", "v1beta1", "proxyconfigs", "ProxyConfig"),
	resource("networking.istio.io", "v1", "serviceentries", "ServiceEntry"),
	resource("networking.istio.io", "v1", "sidecars", "Sidecar"),
	resource("networking.istio.io", "v1", "virtualservices", "VirtualService"),
	resource("networking.istio.io", "v1", "workloadentries", "WorkloadEntry"),
	resource("networking.istio.io", "v1", "workloadgroups", "WorkloadGroup"),
	resource("security.istio.io", "v1", "authorizationpolicies", "AuthorizationPolicy"),
	resource("security.istio.io", "v1", "peerauthentications", "PeerAuthentication"),
	resource("security.istio.io", "v1", "requestauthentications", "RequestAuthentication"),
	resource("telemetry.istio.io", "v1", "telemetries", "Telemetry"),
	resource("extensions.istio.io", "v1alpha1", "wasmplugins", "WasmPlugin"),
	resource("extensions.istio.io", "v1alpha1", "trafficextensions", "TrafficExtension"),
	resource(gatewayAPI, "v1", "gatewayclasses", "GatewayClass").ofCluster(),
	resource(gatewayAPI, "v1", "gateways", "Gateway"),
	resource(gatewayAPI, "v1", "httproutes", "HTTPRoute"),
	resource(gatewayAPI, "v1", "grpcroutes", "GRPCRoute"),
	resource(gatewayAPI, "v1", "tlsroutes", "TLSRoute"),
	resource(gatewayAPI, "v1alpha2", "tcproutes", "TCPRoute"),
	resource(gatewayAPI, "v1alpha2", "udproutes", "UDPRoute"),
	resource(gatewayAPI, "v1beta1", "referencegrants", "ReferenceGrant"),
	resource(gatewayAPI, "v1", "backendtlspolicies", "BackendTLSPolicy"),
	resource(gatewayAPI, "v1", "listenersets", "ListenerSet"),
}

// Resources returns everything that is listed in all of a cluster. Of the namespaces of the control plane its
// autoscalers are listed, and its ConfigMaps are read by their names. Nothing else is requested, in
// particular no Secrets.
func Resources() []Resource { return append(append([]Resource(nil), basics...), configuration...) }

// Configuration returns the resource of a kind of a mesh's configuration, of any version.
func Configuration(of schema.GroupVersionKind) (Resource, bool) { return resourceOf(of, configuration) }

// resourceOf returns the resource of a kind, of any version, in lists of resources.
func resourceOf(of schema.GroupVersionKind, lists ...[]Resource) (Resource, bool) {
	for _, list := range lists {
		for _, r := range list {
			if r.Group == of.Group && r.Kind == of.Kind {
				return r, true
			}
		}
	}
	return Resource{}, false
}

// IsGatewayAPI reports whether a kind is one of the Kubernetes Gateway API.
func IsGatewayAPI(of schema.GroupVersionKind) bool { return of.Group == gatewayAPI }

// name returns the name of a resource as `kubectl get` takes it.
func (r Resource) name() string { return r.GroupResource().String() }
