package server

import (
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"strconv"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"scaler.mesh/scaler/pkg/convergence"
)

// HostConfig is the ConfigLabel of a workload that is no pod but runs on the
// proxies' own host, with the ConfigMap's namespace and name. Its key "host" is
// a Host in JSON.
const HostConfig = "host"

// Host are the listeners of a workload of the proxies' host, and where they
// lead. Nothing is intercepted there: they are bound to its address.
type Host struct {
	Address    string
	ListenPort uint32        // where it is called; 0 = nowhere
	AppPort    uint32        // of 127.0.0.1, where its application listens
	HTTP2      bool          // what its application speaks; false = HTTP/1.1
	Strict     bool          // plaintext, and every caller but Callers, is refused whatever the mesh's settings are
	Callers    []string      // identities
	Egress     []HostService // called in plain text at Address and their port
}

// HostService is a service of such workloads.
type HostService struct {
	Name      string // "namespace/name"
	Host      string // that requests name
	Port      uint32
	Account   string // identity of its workloads
	HTTP2     bool
	Endpoints []netip.AddrPort
}

// HostWorkload returns the node cluster of such a workload's proxy.
func HostWorkload(namespace, name string) string { return "host/" + namespace + "/" + name }

// parseHost reads a ConfigMap's Host.
func parseHost(text string) (Host, error) {
	var h Host
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		return Host{}, fmt.Errorf("reading a workload of the host: %w", err)
	}
	return h, nil
}

// addHost adds the resources of one workload.
func (b *builder) addHost(st *structure, settings Settings, workload string, h Host) {
	clusters, listeners := set{}, set{}
	if h.ListenPort > 0 {
		b.add(clusters, convergence.CDS, hostLocal(h))
		b.add(listeners, convergence.LDS, hostInbound(settings, h))
	}
	for _, e := range h.Egress {
		b.add(clusters, convergence.CDS, hostCluster(hostName(e), e))
	}
	for port, configuration := range hostRoutes(h) {
		b.add(listeners, convergence.LDS, hostOutbound(configuration, h.Address, port))
	}
	st.clusters.own[workload], st.listeners.own[workload] = clusters, listeners
}

func hostName(s HostService) string { return "host|" + s.Name }

// hostLocal returns the workload itself, as its own sidecar sees it.
func hostLocal(h Host) *clusterv3.Cluster {
	local := inboundCluster(h.AppPort)
	local.TypedExtensionProtocolOptions = http2Options(h.HTTP2)
	local.CircuitBreakers = unlimited()
	return local
}

// hostRoutes returns the routes to the services that a workload calls, by port.
func hostRoutes(h Host) map[uint32]*routev3.RouteConfiguration {
	routes := map[uint32]*routev3.RouteConfiguration{}
	for _, e := range h.Egress {
		name, port := hostName(e), strconv.FormatUint(uint64(e.Port), 10)
		if routes[e.Port] == nil {
			routes[e.Port] = &routev3.RouteConfiguration{Name: OutboundListener + ":" + port}
		}
		routes[e.Port].VirtualHosts = append(routes[e.Port].VirtualHosts, &routev3.VirtualHost{
			Name: name, Domains: []string{e.Host, e.Host + ":" + port}, Routes: []*routev3.Route{patient(route("", name))},
		})
	}
	return routes
}

func hostInbound(settings Settings, h Host) *listenerv3.Listener {
	filters := []*hcmv3.HttpFilter{router()}
	if h.Strict {
		filters = []*hcmv3.HttpFilter{authorization(Settings{DeclaredAuthz: true}, Service{}, h.Callers), router()}
	}
	chain := func(protocol string) *listenerv3.FilterChain {
		return &listenerv3.FilterChain{
			Name:             protocol,
			FilterChainMatch: &listenerv3.FilterChainMatch{TransportProtocol: protocol},
			Filters:          []*listenerv3.Filter{inboundManager(h.AppPort, filters, patient(route("", inboundName(h.AppPort))))},
		}
	}
	secure := chain("tls")
	secure.TransportSocket = tlsSocket(&tlsv3.DownstreamTlsContext{
		CommonTlsContext:         http2TLS(commonTLS("")),
		RequireClientCertificate: wrapperspb.Bool(true),
	})
	l := &listenerv3.Listener{
		Name: InboundListener, Address: socketAddress(h.Address, h.ListenPort), TrafficDirection: corev3.TrafficDirection_INBOUND,
		ListenerFilters: []*listenerv3.ListenerFilter{tlsInspector()},
		FilterChains:    []*listenerv3.FilterChain{secure},
	}
	if !settings.StrictMTLS && !h.Strict {
		l.FilterChains = append(l.FilterChains, chain("raw_buffer"))
	}
	return l
}

func hostOutbound(routes *routev3.RouteConfiguration, ip string, port uint32) *listenerv3.Listener {
	return &listenerv3.Listener{
		Name: routes.Name, Address: socketAddress(ip, port), TrafficDirection: corev3.TrafficDirection_OUTBOUND,
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{manager(&hcmv3.HttpConnectionManager{
			StatPrefix:     OutboundListener,
			RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: routes},
			HttpFilters:    []*hcmv3.HttpFilter{router()},
		})}}},
	}
}

func hostCluster(name string, s HostService) *clusterv3.Cluster {
	locality := &endpointv3.LocalityLbEndpoints{}
	for _, e := range s.Endpoints {
		locality.LbEndpoints = append(locality.LbEndpoints, lbEndpoint(e.Addr().String(), uint32(e.Port()), corev3.HealthStatus_UNKNOWN))
	}
	tls := commonTLS(s.Account)
	if s.HTTP2 {
		tls = http2TLS(tls)
	}
	return &clusterv3.Cluster{
		Name:                          name,
		ClusterDiscoveryType:          &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		ConnectTimeout:                durationpb.New(connectTimeout),
		LoadAssignment:                &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{locality}},
		TransportSocket:               tlsSocket(&tlsv3.UpstreamTlsContext{CommonTlsContext: tls}),
		TypedExtensionProtocolOptions: http2Options(s.HTTP2),
		CircuitBreakers:               unlimited(),
	}
}

// unlimited lifts Envoy's own bounds on a cluster (1024 connections, and as many
// requests that wait or are under way), as Istio does: what many requests pay for
// is to be measured, not refused.
func unlimited() *clusterv3.CircuitBreakers {
	most := wrapperspb.UInt32(math.MaxUint32)
	return &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
		MaxConnections: most, MaxPendingRequests: most, MaxRequests: most, MaxRetries: most,
	}}}
}

// patient has a route wait for its answer as long as the client does, as Istio's
// do; Envoy's own bound is 15 s.
func patient(r *routev3.Route) *routev3.Route {
	r.GetRoute().Timeout = durationpb.New(0)
	return r
}

// http2TLS offers HTTP/2 to the peer, and HTTP/1.1.
func http2TLS(context *tlsv3.CommonTlsContext) *tlsv3.CommonTlsContext {
	context.AlpnProtocols = []string{"h2", "http/1.1"}
	return context
}

// http2Options are those of a cluster that is spoken HTTP/2 to; nil = HTTP/1.1.
func http2Options(http2 bool) map[string]*anypb.Any {
	if !http2 {
		return nil
	}
	return map[string]*anypb.Any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": pack(&httpv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &corev3.Http2ProtocolOptions{}},
		}},
	})}
}
