package xdsprobe

import (
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	httprbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	networkrbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"scaler.mesh/scaler/pkg/convergence"
)

// enforcedByObject returns the content that scanning must find, taken from the unmarshalled object.
func enforcedByObject(l *listenerv3.Listener) *convergence.Content {
	if l.GetTrafficDirection() != corev3.TrafficDirection_INBOUND {
		return nil
	}
	var members []string
	policies := func(rules *rbacv3.RBAC) {
		for name := range rules.GetPolicies() {
			members = append(members, convergence.PolicyMember(name))
		}
	}
	filter := func(a *anypb.Any) {
		var h httprbacv3.RBAC
		var n networkrbacv3.RBAC
		switch a.GetTypeUrl() {
		case httpRBACURL:
			if proto.Unmarshal(a.GetValue(), &h) == nil {
				policies(h.GetRules())
			}
		case networkRBACURL:
			if proto.Unmarshal(a.GetValue(), &n) == nil {
				policies(n.GetRules())
			}
		}
	}
	open := map[int]bool{}
	chains := slices.Clone(l.GetFilterChains())
	if c := l.GetDefaultFilterChain(); c != nil {
		chains = append(chains, c)
	}
	manager := func(a *anypb.Any) {
		var m hcmv3.HttpConnectionManager
		if a.GetTypeUrl() == managerURL && proto.Unmarshal(a.GetValue(), &m) == nil {
			for _, hf := range m.GetHttpFilters() {
				filter(hf.GetTypedConfig())
			}
		}
	}
	for _, c := range chains {
		for _, f := range c.GetFilters() {
			filter(f.GetTypedConfig())
			manager(f.GetTypedConfig())
		}
		var tls tlsv3.DownstreamTlsContext
		socket := c.GetTransportSocket().GetTypedConfig()
		demanding := socket.GetTypeUrl() == downstreamTLSURL && proto.Unmarshal(socket.GetValue(), &tls) == nil && tls.GetRequireClientCertificate().GetValue()
		port := int(c.GetFilterChainMatch().GetDestinationPort().GetValue())
		open[port] = open[port] || !demanding
	}
	manager(l.GetApiListener().GetApiListener())
	for port, is := range open {
		if is {
			members = append(members, convergence.PlaintextMember(port))
		} else {
			members = append(members, convergence.MutualTLSMember(port))
		}
	}
	slices.Sort(members)
	return &convergence.Content{Members: slices.Compact(members)}
}

// enforcing returns an inbound listener: a chain for each socket on port 8080,
// with HTTP and network filters that hold these policies.
func enforcing(policies []string, sockets ...proto.Message) *listenerv3.Listener {
	rules := &rbacv3.RBAC{Policies: map[string]*rbacv3.Policy{}}
	for _, name := range policies {
		rules.Policies[name] = &rbacv3.Policy{}
	}
	shadow := &rbacv3.RBAC{Policies: map[string]*rbacv3.Policy{"shadow": {}}}
	l := listener("virtualInbound")
	l.TrafficDirection = corev3.TrafficDirection_INBOUND
	for _, socket := range sockets {
		c := &listenerv3.FilterChain{
			FilterChainMatch: &listenerv3.FilterChainMatch{DestinationPort: wrapperspb.UInt32(8080)},
			Filters: []*listenerv3.Filter{
				{Name: "network", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(&networkrbacv3.RBAC{Rules: rules, ShadowRules: shadow})}},
				{Name: "hcm", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(&hcmv3.HttpConnectionManager{HttpFilters: []*hcmv3.HttpFilter{
					{Name: "http", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(&httprbacv3.RBAC{Rules: rules})}},
				}})}},
			},
		}
		if socket != nil {
			c.TransportSocket = &corev3.TransportSocket{ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: pack(socket)}}
		}
		l.FilterChains = append(l.FilterChains, c)
	}
	return l
}

var _ = It("scans what a listener enforces", func() {
	t := GinkgoTB()
	mutual := &tlsv3.DownstreamTlsContext{RequireClientCertificate: wrapperspb.Bool(true)}
	oneSided := &tlsv3.DownstreamTlsContext{}
	outbound := enforcing([]string{"a"}, mutual)
	outbound.TrafficDirection = corev3.TrafficDirection_OUTBOUND
	fallback := enforcing(nil, mutual)
	fallback.DefaultFilterChain = &listenerv3.FilterChain{}
	for _, c := range []struct {
		name     string
		listener *listenerv3.Listener
		want     []string // nil: no content
	}{
		{"strict", enforcing([]string{"b", "a"}, mutual, mutual), []string{"mutual TLS 8080", "policy a", "policy b"}},
		{"permissive", enforcing(nil, mutual, nil), []string{"plaintext 8080"}},
		{"one-sided TLS", enforcing(nil, oneSided), []string{"plaintext 8080"}},
		{"another socket", enforcing(nil, wrapperspb.Bool(true)), []string{"plaintext 8080"}},
		{"default chain", fallback, []string{"mutual TLS 8080", "plaintext 0"}},
		{"nothing", enforcing(nil), []string{}},
		{"outbound", outbound, nil},
	} {
		By(c.name, func() {
			b, err := proto.Marshal(c.listener)
			if err != nil {
				t.Fatal(err)
			}
			checkScan(t, convergence.LDS, b)
			got, err := scan(convergence.LDS, b)
			if err != nil {
				t.Fatal(err)
			}
			if (got.Content == nil) != (c.want == nil) {
				t.Fatalf("content is %+v, want %q", got.Content, c.want)
			}
			if c.want != nil && !slices.Equal(got.Content.Members, c.want) {
				t.Errorf("(-want +got):\n%s", cmp.Diff(c.want, got.Content.Members))
			}
			// merged: the same listener twice over is one listener
			checkScan(t, convergence.LDS, append(slices.Clone(b), b...))
			for i := range b { // and cut, and spoiled
				checkScan(t, convergence.LDS, b[:i])
				spoiled := slices.Clone(b)
				spoiled[i] ^= 1 << (i % 8)
				checkScan(t, convergence.LDS, spoiled)
			}
		})
	}
})
