package server

import (
	"fmt"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	originaldstv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/original_dst/v3"
	tlsinspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// outboundListener takes what the workload sends.
func outboundListener(route string) *listenerv3.Listener {
	return &listenerv3.Listener{
		Name:             OutboundListener,
		Address:          socketAddress("127.0.0.1", outboundPort),
		TrafficDirection: corev3.TrafficDirection_OUTBOUND,
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{manager(&hcmv3.HttpConnectionManager{
			StatPrefix: OutboundListener,
			RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{
				ConfigSource: ads(), RouteConfigName: route,
			}},
			HttpFilters: []*hcmv3.HttpFilter{router()},
		})}}},
	}
}

// inboundListener takes what the workload is sent: mutual TLS, and plaintext
// too unless the mesh is strict. callers are those that may call it
// where authorization is declared.
func inboundListener(settings Settings, s Service, callers []string) *listenerv3.Listener {
	l := &listenerv3.Listener{
		Name:             InboundListener,
		Address:          socketAddress("127.0.0.1", inboundPort), // nothing is sent to it from elsewhere, as there is no network
		TrafficDirection: corev3.TrafficDirection_INBOUND,
		ListenerFilters: []*listenerv3.ListenerFilter{
			listenerFilter("envoy.filters.listener.original_dst", &originaldstv3.OriginalDst{}),
			tlsInspector(),
		},
	}
	var filters []*hcmv3.HttpFilter
	if f := authorization(settings, s, callers); f != nil {
		filters = append(filters, f)
	}
	filters = append(filters, router())
	for _, port := range s.targets() {
		chain := func(protocol string) *listenerv3.FilterChain {
			return &listenerv3.FilterChain{
				Name: protocol + ":" + strconv.FormatUint(uint64(port), 10),
				FilterChainMatch: &listenerv3.FilterChainMatch{
					DestinationPort: wrapperspb.UInt32(port), TransportProtocol: protocol,
				},
				Filters: []*listenerv3.Filter{inboundManager(port, filters, route("", inboundName(port)))},
			}
		}
		secure := chain("tls")
		secure.TransportSocket = tlsSocket(&tlsv3.DownstreamTlsContext{
			CommonTlsContext:         commonTLS(""),
			RequireClientCertificate: wrapperspb.Bool(true),
		})
		l.FilterChains = append(l.FilterChains, secure)
		if !settings.StrictMTLS {
			l.FilterChains = append(l.FilterChains, chain("raw_buffer"))
		}
	}
	return l
}

// inboundManager sends every request to the workload by one route.
func inboundManager(port uint32, filters []*hcmv3.HttpFilter, to *routev3.Route) *listenerv3.Filter {
	name := inboundName(port)
	return manager(&hcmv3.HttpConnectionManager{
		StatPrefix: fmt.Sprintf("%s_%d", InboundListener, port),
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			Name: name,
			VirtualHosts: []*routev3.VirtualHost{{
				Name: name, Domains: []string{"*"}, Routes: []*routev3.Route{to},
			}},
		}},
		HttpFilters:                 filters,
		ForwardClientCertDetails:    hcmv3.HttpConnectionManager_SANITIZE_SET,
		SetCurrentClientCertDetails: &hcmv3.HttpConnectionManager_SetCurrentClientCertDetails{Uri: true},
	})
}

// authorization returns the filter that says who may call, nil if there is nothing
// to say. A list without callers lets nobody in.
func authorization(settings Settings, s Service, callers []string) *hcmv3.HttpFilter {
	rules := &rbacv3.RBAC{}
	if settings.DeclaredAuthz {
		rules.Rules = &rbacconfigv3.RBAC{Action: rbacconfigv3.RBAC_ALLOW, Policies: map[string]*rbacconfigv3.Policy{}}
		var principals []*rbacconfigv3.Principal
		for _, caller := range callers {
			principals = append(principals, &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_Authenticated_{
				Authenticated: &rbacconfigv3.Principal_Authenticated{PrincipalName: exactly(caller)},
			}})
		}
		if len(principals) > 0 {
			rules.Rules.Policies["declared"] = policy(principals)
		}
	}
	if len(s.Policies) > 0 {
		rules.ShadowRules = &rbacconfigv3.RBAC{Action: rbacconfigv3.RBAC_ALLOW, Policies: map[string]*rbacconfigv3.Policy{}}
		for _, name := range s.Policies {
			rules.ShadowRules.Policies[name] = policy([]*rbacconfigv3.Principal{{Identifier: &rbacconfigv3.Principal_Any{Any: true}}})
		}
	}
	if rules.Rules == nil && rules.ShadowRules == nil {
		return nil
	}
	return httpFilter("envoy.filters.http.rbac", rules)
}

// policy lets principals do everything.
func policy(principals []*rbacconfigv3.Principal) *rbacconfigv3.Policy {
	return &rbacconfigv3.Policy{
		Permissions: []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_Any{Any: true}}},
		Principals:  principals,
	}
}

func manager(m *hcmv3.HttpConnectionManager) *listenerv3.Filter {
	return &listenerv3.Filter{
		Name:       "envoy.filters.network.http_connection_manager",
		ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(m)},
	}
}

func router() *hcmv3.HttpFilter { return httpFilter("envoy.filters.http.router", &routerv3.Router{}) }

func httpFilter(name string, config proto.Message) *hcmv3.HttpFilter {
	return &hcmv3.HttpFilter{Name: name, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(config)}}
}

func tlsInspector() *listenerv3.ListenerFilter {
	return listenerFilter("envoy.filters.listener.tls_inspector", &tlsinspectorv3.TlsInspector{})
}

func listenerFilter(name string, config proto.Message) *listenerv3.ListenerFilter {
	return &listenerv3.ListenerFilter{Name: name, ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: pack(config)}}
}
