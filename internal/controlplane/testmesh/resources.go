package testmesh

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	outboundPort   = 15001
	inboundPort    = 15003
	connectTimeout = 10 * time.Second
)

// snapshot is the whole configuration of one sidecar. The certificate is nil before
// the sidecar has requested it.
func (m *mesh) snapshot(w workload, rootPEM []byte, certificate *tlsv3.Secret) (*cachev3.Snapshot, error) {
	own := m.own(w)
	routes := &routev3.RouteConfiguration{Name: outboundRoutes}
	listeners := []types.Resource{outbound()}
	var clusters, assignments, secrets []types.Resource
	for _, s := range m.scope(w) {
		for _, p := range s.ports {
			clusters = append(clusters, remote(w, s, p))
			assignments = append(assignments, assignment(s, p))
			to := clusterName(s.namespace, s.name, int(p.number))
			routes.VirtualHosts = append(routes.VirtualHosts, host(to, domain(s.namespace, s.name, int(p.number)), route(s.route, to)))
		}
		secrets = append(secrets, roots(rootName("outbound", s.namespace, s.name), rootPEM))
	}
	all := []types.Resource{routes}
	if len(own.ports) > 0 { // a listener without filter chains is rejected
		inbound := &routev3.RouteConfiguration{Name: inboundRoutes}
		for _, p := range own.ports {
			clusters = append(clusters, local(own, p))
			inbound.VirtualHosts = append(inbound.VirtualHosts,
				host(localName(own.namespace, own.name, int(p.number)), domain(own.namespace, own.name, int(p.number)), route("", localName(own.namespace, own.name, int(p.number)))))
		}
		listeners = append(listeners, m.inbound(w, own))
		secrets = append(secrets, roots(rootName("inbound", own.namespace, own.name), rootPEM))
		all = append(all, inbound)
	}
	if certificate != nil {
		secrets = append(secrets, certificate)
	}
	snapshot := &cachev3.Snapshot{}
	for t, resources := range map[types.ResponseType][]types.Resource{
		types.Cluster: clusters, types.Endpoint: assignments, types.Listener: listeners, types.Route: all, types.Secret: secrets,
	} {
		version, err := versionOf(resources)
		if err != nil {
			return nil, err
		}
		snapshot.Resources[t] = cachev3.NewResources(version, resources)
	}
	return snapshot, nil
}

// versionOf is the same for the same resources, also after a restart.
func versionOf(resources []types.Resource) (string, error) {
	digest := sha256.New()
	for _, r := range resources {
		text, err := proto.MarshalOptions{Deterministic: true}.Marshal(r)
		if err != nil {
			return "", fmt.Errorf("encoding %s: %w", cachev3.GetResourceName(r), err)
		}
		digest.Write(text)
	}
	return hex.EncodeToString(digest.Sum(nil)[:8]), nil
}

// remote is a service port as its callers see it.
func remote(w workload, s service, p port) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name:                 clusterName(s.namespace, s.name, int(p.number)),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads()},
		ConnectTimeout:       durationpb.New(connectTimeout),
		TransportSocket: socket(&tlsv3.UpstreamTlsContext{
			CommonTlsContext: secured(w, rootName("outbound", s.namespace, s.name)), Sni: s.name + "." + s.namespace,
		}),
	}
}

// local is a service port as its own sidecars see it.
func local(s service, p port) *clusterv3.Cluster {
	name := localName(s.namespace, s.name, int(p.number))
	return &clusterv3.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		ConnectTimeout:       durationpb.New(connectTimeout),
		LoadAssignment: &endpointv3.ClusterLoadAssignment{
			ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{endpoint("127.0.0.1", p.target)}}},
		},
	}
}

// assignment lists the endpoints of a service port.
func assignment(s service, p port) *endpointv3.ClusterLoadAssignment {
	locality := &endpointv3.LocalityLbEndpoints{}
	for _, e := range p.endpoints {
		locality.LbEndpoints = append(locality.LbEndpoints, endpoint(e.Addr().String(), uint32(e.Port())))
	}
	return &endpointv3.ClusterLoadAssignment{
		ClusterName: clusterName(s.namespace, s.name, int(p.number)), Endpoints: []*endpointv3.LocalityLbEndpoints{locality},
	}
}

func endpoint(ip string, port uint32) *endpointv3.LbEndpoint {
	return &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: address(ip, port)}}}
}

// outbound is the listener for what the workload sends.
func outbound() *listenerv3.Listener {
	return &listenerv3.Listener{
		Name:             outboundListener,
		Address:          address("0.0.0.0", outboundPort),
		TrafficDirection: corev3.TrafficDirection_OUTBOUND,
		FilterChains:     []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{manager(outboundRoutes)}}},
	}
}

// inbound is the listener for what the workload is sent: mutual TLS always, and from
// callers of its own namespace alone where the mesh is isolated.
func (m *mesh) inbound(w workload, s service) *listenerv3.Listener {
	l := &listenerv3.Listener{
		Name: inboundListener, Address: address("0.0.0.0", inboundPort), TrafficDirection: corev3.TrafficDirection_INBOUND,
	}
	callers := &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_Any{Any: true}}
	if m.isolated {
		callers.Identifier = &rbacconfigv3.Principal_Authenticated_{Authenticated: &rbacconfigv3.Principal_Authenticated{
			PrincipalName: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: identityPrefix(s.namespace)}},
		}}
	}
	policy := &rbacv3.RBAC{Rules: &rbacconfigv3.RBAC{Policies: map[string]*rbacconfigv3.Policy{
		"callers" + s.policy: {
			Permissions: []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_Any{Any: true}}},
			Principals:  []*rbacconfigv3.Principal{callers},
		},
	}}}
	seen := map[uint32]bool{}
	for _, p := range s.ports {
		if seen[p.target] {
			continue
		}
		seen[p.target] = true
		l.FilterChains = append(l.FilterChains, &listenerv3.FilterChain{
			FilterChainMatch: &listenerv3.FilterChainMatch{DestinationPort: wrapperspb.UInt32(p.target), TransportProtocol: "tls"},
			Filters:          []*listenerv3.Filter{manager(inboundRoutes, filter("envoy.filters.http.rbac", policy))},
			TransportSocket: socket(&tlsv3.DownstreamTlsContext{
				CommonTlsContext: secured(w, rootName("inbound", s.namespace, s.name)), RequireClientCertificate: wrapperspb.Bool(true),
			}),
		})
	}
	return l
}

// host sends a domain somewhere.
func host(name, domain string, to *routev3.Route) *routev3.VirtualHost {
	return &routev3.VirtualHost{Name: name, Domains: []string{domain}, Routes: []*routev3.Route{to}}
}

func route(name, cluster string) *routev3.Route {
	return &routev3.Route{
		Name:   name,
		Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
		Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}}},
	}
}

func manager(routes string, filters ...*hcmv3.HttpFilter) *listenerv3.Filter {
	return &listenerv3.Filter{
		Name: "envoy.filters.network.http_connection_manager",
		ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(&hcmv3.HttpConnectionManager{
			StatPrefix:     routes,
			RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: ads(), RouteConfigName: routes}},
			HttpFilters:    append(filters, filter("envoy.filters.http.router", &routerv3.Router{})),
		})},
	}
}

func filter(name string, config proto.Message) *hcmv3.HttpFilter {
	return &hcmv3.HttpFilter{Name: name, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(config)}}
}

// secured is a TLS context whose certificate and roots come over SDS.
func secured(w workload, roots string) *tlsv3.CommonTlsContext {
	return &tlsv3.CommonTlsContext{
		TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{{Name: certificateName(w.namespace, w.account), SdsConfig: ads()}},
		ValidationContextType: &tlsv3.CommonTlsContext_ValidationContextSdsSecretConfig{
			ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: roots, SdsConfig: ads()},
		},
	}
}

// roots is a secret with roots.
func roots(name string, rootPEM []byte) *tlsv3.Secret {
	return &tlsv3.Secret{Name: name, Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: inline(rootPEM)}}}
}

// certificateSecret is a secret with a certificate and its key.
func certificateSecret(w workload, chainPEM, keyPEM []byte) *tlsv3.Secret {
	return &tlsv3.Secret{Name: certificateName(w.namespace, w.account), Type: &tlsv3.Secret_TlsCertificate{
		TlsCertificate: &tlsv3.TlsCertificate{CertificateChain: inline(chainPEM), PrivateKey: inline(keyPEM)},
	}}
}

func inline(b []byte) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: b}}
}

func ads() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}, ResourceApiVersion: corev3.ApiVersion_V3,
	}
}

func address(ip string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: ip, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

func socket(context proto.Message) *corev3.TransportSocket {
	return &corev3.TransportSocket{Name: "envoy.transport_sockets.tls", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: pack(context)}}
}

// pack encodes a message that is part of another.
func pack(m proto.Message) *anypb.Any {
	packed := &anypb.Any{}
	_ = anypb.MarshalFrom(packed, m, proto.MarshalOptions{Deterministic: true}) // all strings are valid: they come from an API server
	return packed
}
