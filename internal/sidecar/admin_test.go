package sidecar

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/ginkgo/v2"

	"scaler.mesh/scaler/pkg/convergence"
)

// dumped is an Envoy's dump, shortened to one of each that matters.
const dumped = `{"configs": [
 {"@type": "type.googleapis.com/envoy.admin.v3.BootstrapConfigDump", "bootstrap": {"node": {"id": "x"}}},
 {"@type": "type.googleapis.com/envoy.admin.v3.ClustersConfigDump",
  "static_clusters": [{"cluster": {"name": "xds-grpc"}}],
  "dynamic_active_clusters": [
   {"cluster": {"name": "outbound|80||a", "type": "EDS"}, "last_updated": "2026-11-21T12:00:02.500Z"},
   {"cluster": {"name": "BlackHoleCluster", "type": "STATIC"}, "last_updated": "2026-11-21T12:00:01.250Z"}],
  "dynamic_warming_clusters": [{"cluster": {"name": "warming", "type": "EDS"}}]},
 {"@type": "type.googleapis.com/envoy.admin.v3.EndpointsConfigDump",
  "dynamic_endpoint_configs": [
   {"endpoint_config": {"cluster_name": "outbound|80||a", "endpoints": [{"lb_endpoints": [
     {"endpoint": {"address": {"socket_address": {"address": "10.0.0.1", "port_value": 8080}}}, "health_status": "HEALTHY"},
     {"endpoint": {"address": {"socket_address": {"address": "10.0.0.2", "port_value": 8080}}}, "health_status": "UNHEALTHY"},
     {"endpoint": {"address": {"envoy_internal_address": {"server_listener_name": "inner"}}}}]}]}},
   {"endpoint_config": {"cluster_name": "BlackHoleCluster"}}]},
 {"@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump",
  "dynamic_listeners": [
   {"name": "virtualInbound", "active_state": {"listener": {"name": "virtualInbound", "traffic_direction": "INBOUND",
     "filter_chains": [
      {"filter_chain_match": {"destination_port": 8080}, "transport_socket": {"typed_config": {"require_client_certificate": true}},
       "filters": [{"typed_config": {"http_filters": [{"typed_config": {
         "rules": {"policies": {"allow-a": {}}}, "shadow_rules": {"policies": {"dry": {}}}}}]}}]},
      {"filter_chain_match": {"destination_port": 9090}}]}, "last_updated": "2026-11-21T12:00:03Z"}},
   {"name": "0.0.0.0_81", "warming_state": {"listener": {"name": "0.0.0.0_81"}}},
   {"name": "0.0.0.0_80", "error_state": {"details": "cannot bind"}}]},
 {"@type": "type.googleapis.com/envoy.admin.v3.RoutesConfigDump",
  "dynamic_route_configs": [{"route_config": {"name": "80", "virtual_hosts": [{"domains": ["b", "a"]}]}}]},
 {"@type": "type.googleapis.com/envoy.admin.v3.SecretsConfigDump",
  "dynamic_active_secrets": [{"name": "ROOTCA", "last_updated": "2026-11-21T12:00:00Z"}, {"name": "default", "last_updated": "2026-11-21T12:00:01Z"},
   {"name": "service-cert:a/b", "last_updated": "2026-11-21T12:00:02Z"}]}
]}`

var _ = It("reads the configuration that Envoy dumps", func() {
	t := GinkgoTB()
	got, err := ParseDump([]byte(dumped), "default", func(name string) bool { return name == "service-cert:a/b" })
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string) time.Time {
		v, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	resource := func(kind convergence.Type, name string, c convergence.Content) convergence.Resource {
		return convergence.Resource{Key: convergence.Key{Type: kind, Name: name}, Content: &c}
	}
	want := Configuration{
		Held: []convergence.Resource{
			resource(convergence.CDS, "outbound|80||a", convergence.Content{}),
			resource(convergence.CDS, "BlackHoleCluster", convergence.Content{}),
			resource(convergence.EDS, "outbound|80||a", convergence.Content{Endpoints: convergence.Endpoints{
				netip.MustParseAddrPort("10.0.0.1:8080"): convergence.Healthy,
				netip.MustParseAddrPort("10.0.0.2:8080"): convergence.Unhealthy,
			}}),
			resource(convergence.LDS, "virtualInbound", convergence.Content{Members: []string{
				convergence.MutualTLSMember(8080), convergence.PlaintextMember(9090), convergence.PolicyMember("allow-a"),
			}}),
			resource(convergence.RDS, "80", convergence.Content{Members: []string{"a", "b"}}),
			resource(convergence.SDS, "service-cert:a/b", convergence.Content{}),
		},
		Warming:     true,
		Refused:     []Refusal{{"LDS 0.0.0.0_80", "cannot bind"}},
		First:       at("2026-11-21T12:00:01.250Z"),
		Certificate: at("2026-11-21T12:00:01Z"),
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.AddrPort{}, convergence.Type{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	// Envoy 1.40 that refused a filter whose type it does not have.
	const answer = "Failed to convert protobuf message to JSON string: INVALID_ARGUMENT: could not find @type 'type.googleapis.com/stats.PluginConfig'"
	_, err = ParseDump([]byte(answer), "", nil)
	if cannot, ok := errors.AsType[*UnreadableError](err); !ok || cannot.Answer != answer {
		t.Errorf("what is no dump: %v", err)
	}
})

func FuzzParseDump(f *testing.F) {
	f.Add([]byte(dumped))
	f.Add([]byte(`{"configs": [{"dynamic_listeners": [{"active_state": {"listener": {"traffic_direction": "INBOUND", "filter_chains": [{"filters": 3}]}}}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := ParseDump(text, "", nil); err != nil && len(c.Held) > 0 {
			t.Errorf("%d resources with an error", len(c.Held))
		}
	})
}
