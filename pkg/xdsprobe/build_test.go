package xdsprobe

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

// What follows builds resources as control planes make them.

func viaADS() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		ResourceApiVersion:    corev3.ApiVersion_V3,
		InitialFetchTimeout:   durationpb.New(0),
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	}
}

// edsCluster returns a cluster whose endpoints are those of a load assignment;
// assignment "" means one of the cluster's own name. generation distinguishes
// versions of it.
func edsCluster(name, assignment string, generation int) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name:                 name,
		AltStatName:          fmt.Sprint(generation),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig:     &clusterv3.Cluster_EdsClusterConfig{EdsConfig: viaADS(), ServiceName: assignment},
	}
}

func staticCluster(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}}
}

func address(host string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: host, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

func endpoint(host string, port uint32, health corev3.HealthStatus) *endpointv3.LbEndpoint {
	return &endpointv3.LbEndpoint{
		HealthStatus:   health,
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: address(host, port)}},
	}
}

func assignment(name string, endpoints ...*endpointv3.LbEndpoint) *endpointv3.ClusterLoadAssignment {
	a := &endpointv3.ClusterLoadAssignment{ClusterName: name}
	for _, e := range endpoints { // a locality for each
		a.Endpoints = append(a.Endpoints, &endpointv3.LocalityLbEndpoints{LbEndpoints: []*endpointv3.LbEndpoint{e}})
	}
	return a
}

func pack(m proto.Message) *anypb.Any {
	a, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	return a
}

// manager returns a network filter that names a route configuration and, by
// name, HTTP filters that are discovered.
func manager(route string, extensions ...string) *listenerv3.Filter {
	m := &hcmv3.HttpConnectionManager{StatPrefix: "test", RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{
		Rds: &hcmv3.Rds{ConfigSource: viaADS(), RouteConfigName: route},
	}}
	for _, name := range extensions {
		m.HttpFilters = append(m.HttpFilters, &hcmv3.HttpFilter{Name: name, ConfigType: &hcmv3.HttpFilter_ConfigDiscovery{
			ConfigDiscovery: &corev3.ExtensionConfigSource{ConfigSource: viaADS(), TypeUrls: []string{"test"}},
		}})
	}
	return &listenerv3.Filter{Name: "hcm", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(m)}}
}

// listener returns a listener with a filter chain for each filter.
func listener(name string, filters ...*listenerv3.Filter) *listenerv3.Listener {
	l := &listenerv3.Listener{Name: name, Address: address("127.0.0.1", 15001)}
	for _, f := range filters {
		l.FilterChains = append(l.FilterChains, &listenerv3.FilterChain{Filters: []*listenerv3.Filter{f}})
	}
	return l
}

func route(name string, domains ...string) *routev3.RouteConfiguration {
	r := &routev3.RouteConfiguration{Name: name}
	for i, d := range domains {
		r.VirtualHosts = append(r.VirtualHosts, &routev3.VirtualHost{
			Name: fmt.Sprint(i), Domains: []string{d},
			Routes: []*routev3.Route{{
				Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
				Action: &routev3.Route_Route{Route: &routev3.RouteAction{
					ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: "outbound|80||" + d},
				}},
			}},
		})
	}
	return r
}

func extension(name string) *corev3.TypedExtensionConfig {
	return &corev3.TypedExtensionConfig{Name: name, TypedConfig: pack(durationpb.New(1))}
}
