package server

import (
	"slices"
	"strconv"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"scaler.mesh/scaler/pkg/convergence"
)

// The static secrets that a proxy's bootstrap must have: its certificate with
// the key, and the roots that peers are verified against. An agent keeps them
// up to date in files; the control plane never sees a key.
const (
	CertificateSecret = "certificate"
	RootsSecret       = "roots"
)

const (
	outboundPort = 15001 // of 127.0.0.1: workloads use it as their HTTP proxy
	inboundPort  = 15006 // what is meant for the workload is redirected to it

	connectTimeout = 10 * time.Second
)

// build makes the structure of the configuration: clusters, listeners and
// routes of every workload.
func build(m Mesh) (*structure, error) {
	var b builder
	st := &structure{
		clusters:  view{own: map[string]set{}},
		listeners: view{own: map[string]set{}},
		routes:    set{},
	}
	outbound := set{} // clusters of all services
	for _, s := range m.Services {
		for _, p := range s.Ports {
			b.add(outbound, convergence.CDS, cluster(s, p))
		}
	}
	if !m.Settings.DeclaredScope {
		st.clusters.shared = outbound
		b.add(st.routes, convergence.RDS, routes(Route(false, ""), m.Services))
	}
	// Also for sidecars whose service is not known yet.
	st.listeners.shared = set{}
	if !m.Settings.DeclaredScope {
		b.add(st.listeners.shared, convergence.LDS, outboundListener(Route(false, "")))
	}
	callers := m.callers()
	for _, s := range m.Services {
		clusters, listeners := set{}, set{}
		for _, target := range s.targets() {
			b.add(clusters, convergence.CDS, inboundCluster(target))
		}
		if len(s.Ports) > 0 { // a listener without filter chains is rejected
			b.add(listeners, convergence.LDS, inboundListener(m.Settings, s, callers[s.workload()]))
		}
		if m.Settings.DeclaredScope {
			callees := m.callees(s)
			for _, callee := range callees {
				for _, p := range callee.Ports {
					name := Cluster(callee.Namespace, callee.Name, p.Name)
					clusters[name] = outbound[name]
				}
			}
			b.add(st.routes, convergence.RDS, routes(Route(true, s.workload()), callees))
			b.add(listeners, convergence.LDS, outboundListener(Route(true, s.workload())))
		}
		st.clusters.own[s.workload()], st.listeners.own[s.workload()] = clusters, listeners
	}
	for workload, h := range m.Hosts {
		b.addHost(st, m.Settings, workload, h)
	}
	return st, b.err
}

// cluster returns a service port as its callers see it. They speak mutual TLS to
// every service, whatever it accepts.
func cluster(s Service, p Port) *clusterv3.Cluster {
	identity := ""
	if s.Account != "" {
		identity = SPIFFE(s.Namespace, s.Account)
	}
	return &clusterv3.Cluster{
		Name:                 Cluster(s.Namespace, s.Name, p.Name),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads()},
		ConnectTimeout:       durationpb.New(connectTimeout),
		TransportSocket: tlsSocket(&tlsv3.UpstreamTlsContext{
			CommonTlsContext: commonTLS(identity),
			Sni:              s.Name + "." + s.Namespace,
		}),
	}
}

// inboundCluster returns the workload itself, as its own sidecar sees it.
func inboundCluster(port uint32) *clusterv3.Cluster {
	name := inboundName(port)
	return &clusterv3.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		ConnectTimeout:       durationpb.New(connectTimeout),
		LoadAssignment: &endpointv3.ClusterLoadAssignment{
			ClusterName: name,
			Endpoints: []*endpointv3.LocalityLbEndpoints{{
				LbEndpoints: []*endpointv3.LbEndpoint{lbEndpoint("127.0.0.1", port, corev3.HealthStatus_UNKNOWN)},
			}},
		},
	}
}

func inboundName(port uint32) string {
	return InboundListener + ":" + strconv.FormatUint(uint64(port), 10)
}

// assignment lists the endpoints of one cluster.
func assignment(name string, endpoints []Endpoint) *endpointv3.ClusterLoadAssignment {
	endpoints = slices.SortedFunc(slices.Values(endpoints), func(a, b Endpoint) int { return a.Addr.Compare(b.Addr) })
	locality := &endpointv3.LocalityLbEndpoints{}
	for _, e := range endpoints {
		locality.LbEndpoints = append(locality.LbEndpoints, lbEndpoint(e.Addr.Addr().String(), uint32(e.Addr.Port()), statuses[e.Health]))
	}
	return &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{locality}}
}

var statuses = map[convergence.Health]corev3.HealthStatus{
	convergence.Healthy:   corev3.HealthStatus_HEALTHY,
	convergence.Unhealthy: corev3.HealthStatus_UNHEALTHY,
	convergence.Draining:  corev3.HealthStatus_DRAINING,
}

func lbEndpoint(ip string, port uint32, status corev3.HealthStatus) *endpointv3.LbEndpoint {
	return &endpointv3.LbEndpoint{
		HealthStatus:   status,
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: socketAddress(ip, port)}},
	}
}

// routes sends each service's domains to its cluster.
func routes(name string, services []Service) *routev3.RouteConfiguration {
	configuration := &routev3.RouteConfiguration{Name: name}
	for _, s := range services {
		for i, p := range s.Ports {
			to := Cluster(s.Namespace, s.Name, p.Name)
			configuration.VirtualHosts = append(configuration.VirtualHosts, &routev3.VirtualHost{
				Name:    to,
				Domains: Domains(s.Namespace, s.Name, strconv.FormatUint(uint64(p.Number), 10), i == 0),
				Routes:  []*routev3.Route{route(strings.Join(s.Routes, ","), to)},
			})
		}
	}
	return configuration
}

// route sends everything to one cluster.
func route(name, cluster string) *routev3.Route {
	return &routev3.Route{
		Name:  name,
		Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
		Action: &routev3.Route_Route{Route: &routev3.RouteAction{
			ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster},
		}},
	}
}

// commonTLS presents the workload's certificate and verifies the peer's: it
// must lead to the roots, and be for identity unless that is "".
func commonTLS(identity string) *tlsv3.CommonTlsContext {
	context := &tlsv3.CommonTlsContext{
		TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{{Name: CertificateSecret}},
		ValidationContextType: &tlsv3.CommonTlsContext_ValidationContextSdsSecretConfig{
			ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: RootsSecret},
		},
	}
	if identity != "" {
		context.ValidationContextType = &tlsv3.CommonTlsContext_CombinedValidationContext{
			CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
				DefaultValidationContext: &tlsv3.CertificateValidationContext{
					MatchTypedSubjectAltNames: []*tlsv3.SubjectAltNameMatcher{{
						SanType: tlsv3.SubjectAltNameMatcher_URI, Matcher: exactly(identity),
					}},
				},
				ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: RootsSecret},
			},
		}
	}
	return context
}

func exactly(s string) *matcherv3.StringMatcher {
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: s}}
}

func ads() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
		ResourceApiVersion:    corev3.ApiVersion_V3,
	}
}

func socketAddress(ip string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: ip, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

func tlsSocket(context proto.Message) *corev3.TransportSocket {
	return &corev3.TransportSocket{
		Name:       "envoy.transport_sockets.tls",
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: pack(context)},
	}
}

// pack encodes a message that is part of another. What is packed here are
// messages of this package's own making, all of whose strings are valid: they
// come from an API server.
func pack(m proto.Message) *anypb.Any {
	packed := &anypb.Any{}
	// Deterministic, so that the same configuration has the same version. An
	// error leaves the value out, which a proxy rejects and a test would find.
	_ = anypb.MarshalFrom(packed, m, proto.MarshalOptions{Deterministic: true})
	return packed
}
