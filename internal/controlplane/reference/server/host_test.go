package server

import (
	"math"
	"net/netip"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	. "github.com/onsi/ginkgo/v2"
)

// Envoy's own bounds would refuse, or end, what is to be measured.
var _ = It("lifts Envoy's bounds for workloads of the host", func() {
	t := GinkgoTB()
	h := Host{
		Address: "127.0.1.1", ListenPort: 7000, AppPort: 7001,
		Egress: []HostService{{Name: "one/b", Host: "b.one.host", Port: 7002, Endpoints: []netip.AddrPort{netip.MustParseAddrPort("127.0.1.2:7003")}}},
	}
	for _, c := range []*clusterv3.Cluster{hostLocal(h), hostCluster("host|one/b", h.Egress[0])} {
		for _, bound := range c.GetCircuitBreakers().GetThresholds() {
			for name, value := range map[string]uint32{
				"connections": bound.GetMaxConnections().GetValue(), "pending requests": bound.GetMaxPendingRequests().GetValue(),
				"requests": bound.GetMaxRequests().GetValue(), "retries": bound.GetMaxRetries().GetValue(),
			} {
				if value != math.MaxUint32 {
					t.Errorf("cluster %s has a bound of %d %s: want none", c.GetName(), value, name)
				}
			}
		}
		if len(c.GetCircuitBreakers().GetThresholds()) != 1 {
			t.Errorf("cluster %s has Envoy's own bounds", c.GetName())
		}
	}
	routes := hostRoutes(h)
	listeners := []*listenerv3.Listener{hostInbound(Settings{}, h), hostOutbound(routes[7002], h.Address, 7002)}
	for _, l := range listeners {
		for _, chain := range l.GetFilterChains() {
			manager := new(hcmv3.HttpConnectionManager)
			if err := chain.GetFilters()[0].GetTypedConfig().UnmarshalTo(manager); err != nil {
				t.Fatal(err)
			}
			for _, virtual := range manager.GetRouteConfig().GetVirtualHosts() {
				checkPatient(t, l.GetName(), virtual.GetRoutes())
			}
		}
	}
})

func checkPatient(t testing.TB, listener string, routes []*routev3.Route) {
	t.Helper()
	if len(routes) != 1 {
		t.Errorf("%s has %d routes: want 1", listener, len(routes))
	}
	for _, r := range routes {
		if limit := r.GetRoute().GetTimeout(); limit == nil || limit.AsDuration() != 0 {
			t.Errorf("%s waits %v for an answer: want as long as it takes", listener, limit)
		}
	}
}
