package diff

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	wasmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/wasm/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

var update = flag.Bool("update", false, "write the golden files anew")

// mesh is a small configuration that tests change: services with pods, of which each sidecar has an outbound cluster with
// its endpoints for every service, an outbound listener, its own inbound one, and a route configuration.
type mesh struct {
	services int
	pods     int // of each service
	offset   int // of addresses and generated names, which differ in each cluster

	cluster  func(service int, c *clusterv3.Cluster)
	endpoint func(service int, a *endpointv3.ClusterLoadAssignment)
	outbound func(l *listenerv3.Listener)
	inbound  func(service int, l *listenerv3.Listener)
	route    func(service int, r *routev3.RouteConfiguration)
	// holds states whether a sidecar of a service holds a resource; nil = all.
	holds func(service int, kind, name string) bool
}

func (m mesh) service(n int) string { return fmt.Sprintf("svc-%d", n) }
func (m mesh) address(service, pod int) string {
	return fmt.Sprintf("10.64.%d.%d", service, 1+(pod+m.offset)%250)
}
func (m mesh) name(service, pod int) string {
	return fmt.Sprintf("svc-%d-%x-%04x", service, 0xb76f+m.offset, pod*7+m.offset)
}
func (m mesh) host(n int) string { return m.service(n) + ".mesh.svc.cluster.local" }

// configuration returns what all sidecars of the mesh hold.
func (m mesh) configuration(t testing.TB) *record.Configuration {
	t.Helper()
	c := new(record.Configuration)
	index := map[string]int{}
	add := func(by *record.HeldBy, service int, kind, name string, message proto.Message) {
		if m.holds != nil && !m.holds(service, kind, name) {
			return
		}
		encoded, err := proto.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		key := kind + name + string(encoded)
		at, known := index[key]
		if !known {
			at = len(c.Resources)
			index[key] = at
			c.Resources = append(c.Resources, record.HeldResource{Type: kind, Name: name, Message: encoded})
		}
		by.Resources = append(by.Resources, at)
	}
	for s := range m.services {
		c.Objects = append(c.Objects, record.AddressedObject{Kind: "Service", Namespace: "mesh", Name: m.service(s), Addresses: []string{fmt.Sprintf("10.0.%d.%d", m.offset, 10+s)}})
		for p := range m.pods {
			c.Objects = append(c.Objects, record.AddressedObject{Kind: "Pod", Namespace: "mesh", Name: m.name(s, p), Workload: m.service(s), Addresses: []string{m.address(s, p)}})
		}
	}
	clusters, assignments := m.clusters()
	for s := range m.services {
		inbound := m.listener(t, "virtualInbound", "0.0.0.0", 15006)
		if m.inbound != nil {
			m.inbound(s, inbound)
		}
		outbound := m.listener(t, "0.0.0.0_80", "0.0.0.0", 80)
		if m.outbound != nil {
			m.outbound(outbound)
		}
		routes := m.routes(s)
		for p := range m.pods {
			by := record.HeldBy{Namespace: "mesh", Workload: m.service(s), Pod: m.name(s, p)}
			for i, cluster := range clusters {
				add(&by, s, "CDS", cluster.Name, cluster)
				add(&by, s, "EDS", cluster.Name, assignments[i])
			}
			add(&by, s, "LDS", "virtualInbound", inbound)
			add(&by, s, "LDS", "0.0.0.0_80", outbound)
			add(&by, s, "LDS", fmt.Sprintf("10.0.%d.10_443", m.offset), m.listener(t, fmt.Sprintf("10.0.%d.10_443", m.offset), fmt.Sprintf("10.0.%d.10", m.offset), 443))
			add(&by, s, "RDS", "80", routes)
			c.Sidecars = append(c.Sidecars, by)
		}
	}
	return c
}

func (m mesh) clusters() (clusters []*clusterv3.Cluster, assignments []*endpointv3.ClusterLoadAssignment) {
	for s := range m.services {
		cluster := &clusterv3.Cluster{Name: "outbound|80||" + m.host(s), ConnectTimeout: durationpb.New(10e9), CommonLbConfig: &clusterv3.Cluster_CommonLbConfig{}}
		if m.cluster != nil {
			m.cluster(s, cluster)
		}
		clusters = append(clusters, cluster)
		assignment := &endpointv3.ClusterLoadAssignment{ClusterName: cluster.Name, Endpoints: []*endpointv3.LocalityLbEndpoints{{}}}
		for p := range m.pods {
			assignment.Endpoints[0].LbEndpoints = append(assignment.Endpoints[0].LbEndpoints, &endpointv3.LbEndpoint{
				HealthStatus:   corev3.HealthStatus_HEALTHY,
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: socket(m.address(s, p), 8080)}},
			})
		}
		if m.endpoint != nil {
			m.endpoint(s, assignment)
		}
		assignments = append(assignments, assignment)
	}
	return clusters, assignments
}

func socket(address string, port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

func pack(t testing.TB, m proto.Message) *anypb.Any {
	t.Helper()
	packed, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func (m mesh) listener(t testing.TB, name, address string, port uint32) *listenerv3.Listener {
	manager := &hcmv3.HttpConnectionManager{StatPrefix: "x", HttpFilters: []*hcmv3.HttpFilter{
		{Name: "envoy.filters.http.router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(t, &routerv3.Router{})}},
	}}
	chain := func(name string) *listenerv3.FilterChain {
		return &listenerv3.FilterChain{Name: name, Filters: []*listenerv3.Filter{
			{Name: "envoy.filters.network.http_connection_manager", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(t, manager)}},
		}}
	}
	return &listenerv3.Listener{Name: name, Address: socket(address, port), FilterChains: []*listenerv3.FilterChain{chain("plain"), chain("tls")}}
}

func (m mesh) routes(service int) *routev3.RouteConfiguration {
	r := &routev3.RouteConfiguration{Name: "80"}
	for s := range m.services {
		r.VirtualHosts = append(r.VirtualHosts, &routev3.VirtualHost{
			Name: m.host(s) + ":80", Domains: []string{m.host(s), m.service(s), fmt.Sprintf("10.0.%d.%d", m.offset, 10+s)},
			Routes: []*routev3.Route{{Name: "default", Action: &routev3.Route_Route{Route: &routev3.RouteAction{Timeout: durationpb.New(0)}}}},
		})
	}
	if m.route != nil {
		m.route(service, r)
	}
	return r
}

// changeManager changes the HTTP connection manager of a filter chain.
func changeManager(t *testing.T, chain *listenerv3.FilterChain, change func(*hcmv3.HttpConnectionManager)) {
	t.Helper()
	var manager hcmv3.HttpConnectionManager
	if err := chain.Filters[0].GetTypedConfig().UnmarshalTo(&manager); err != nil {
		t.Fatal(err)
	}
	change(&manager)
	chain.Filters[0].ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: pack(t, &manager)}
}

var plain = mesh{services: 4, pods: 3}

// one is a group in the words of a test.
type one struct {
	effect    Effect
	what      string // class, path and op
	values    string
	sidecars  int
	resources int
}

func shown(r *Result) (all []one) {
	for _, g := range r.Groups {
		var values []string
		for _, v := range g.Values {
			values = append(values, v.From+" > "+v.To)
		}
		all = append(all, one{g.Effect, strings.TrimSpace(g.Class+" "+g.Path) + " " + string(g.Op), strings.Join(values, ", "), g.Sidecars, len(g.Resources)})
	}
	return all
}

func compare(t *testing.T, from, to mesh, o Options) *Result {
	t.Helper()
	r, err := Compare(from.configuration(t), to.configuration(t), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A planted edit is found exactly: on the sidecars and resources that it is in, and nothing else.
func TestEdits(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(from, m *mesh)
		want []one
	}{
		"nothing": {func(_, _ *mesh) {}, nil},
		"addresses, names and order": {func(_, m *mesh) {
			m.offset = 90
			m.route = func(_ int, r *routev3.RouteConfiguration) {
				slices.Reverse(r.VirtualHosts)
				slices.Reverse(r.VirtualHosts[0].Domains)
			}
			m.inbound = func(_ int, l *listenerv3.Listener) { slices.Reverse(l.FilterChains) }
			m.endpoint = func(_ int, a *endpointv3.ClusterLoadAssignment) { slices.Reverse(a.Endpoints[0].LbEndpoints) }
		}, nil},
		"the panic threshold of every cluster": {func(_, m *mesh) {
			m.cluster = func(_ int, c *clusterv3.Cluster) { c.CommonLbConfig.HealthyPanicThreshold = &typev3.Percent{} }
		}, []one{{ClusterWarmed, "outbound cluster common_lb_config.healthy_panic_threshold added", " > 0%", 12, 4}}},
		"a timeout of one cluster, which sidecars of two services hold": {func(from, m *mesh) {
			m.cluster = func(s int, c *clusterv3.Cluster) {
				if s == 1 {
					c.ConnectTimeout = durationpb.New(5e9)
				}
			}
			m.holds = func(service int, kind, name string) bool {
				return name != "outbound|80||svc-1.mesh.svc.cluster.local" || service < 2
			}
			from.holds = m.holds
		}, []one{{ClusterWarmed, "outbound cluster connect_timeout changed", "10s > 5s", 6, 1}}},
		"an endpoint that is not ready": {func(_, m *mesh) {
			m.endpoint = func(s int, a *endpointv3.ClusterLoadAssignment) {
				if s == 2 {
					a.Endpoints[0].LbEndpoints[1].HealthStatus = corev3.HealthStatus_UNHEALTHY
				}
			}
		}, []one{{EndpointsChanged, "outbound endpoint list endpoints[*].lb_endpoints[*].health_status changed", "HEALTHY > UNHEALTHY", 12, 1}}},
		"an endpoint less": {func(_, m *mesh) {
			m.endpoint = func(s int, a *endpointv3.ClusterLoadAssignment) {
				if s == 2 {
					a.Endpoints[0].LbEndpoints = a.Endpoints[0].LbEndpoints[1:]
				}
			}
		}, []one{{EndpointsChanged, "outbound endpoint list endpoints[*].lb_endpoints[*] removed",
			`{endpoint: {address: {socket_address: {address: "pod(svc-2.mesh)", port_value: 8080}}}, health_status: HEALTHY} > `, 12, 1}}},
		"a limit in the connection manager of one service's sidecars": {func(_, m *mesh) {
			m.inbound = func(s int, l *listenerv3.Listener) {
				if s == 3 {
					changeManager(t, l.FilterChains[0], func(h *hcmv3.HttpConnectionManager) { h.MaxRequestHeadersKb = wrapperspb.UInt32(60) })
				}
			}
		}, []one{{ChainDrained, "listener virtualInbound filter_chains[*].filters[envoy.filters.network.http_connection_manager].typed_config.max_request_headers_kb added", " > 60", 3, 1}}},
		"a filter before the router": {func(_, m *mesh) {
			m.outbound = func(l *listenerv3.Listener) {
				for _, chain := range l.FilterChains {
					changeManager(t, chain, func(h *hcmv3.HttpConnectionManager) {
						h.HttpFilters = slices.Insert(h.HttpFilters, 0, &hcmv3.HttpFilter{Name: "istio.alpn"})
					})
				}
			}
		}, []one{{ChainDrained, "listener filter_chains[*].filters[envoy.filters.network.http_connection_manager].typed_config.http_filters[istio.alpn] added", ` > {name: "istio.alpn"}`, 12, 1}}},
		"a field of the listener itself": {func(_, m *mesh) {
			m.outbound = func(l *listenerv3.Listener) { l.PerConnectionBufferLimitBytes = wrapperspb.UInt32(32768) }
		}, []one{{ListenerDrained, "listener per_connection_buffer_limit_bytes added", " > 32768", 12, 1}}},
		"a filter chain more": {func(_, m *mesh) {
			m.outbound = func(l *listenerv3.Listener) {
				l.FilterChains = append(l.FilterChains, &listenerv3.FilterChain{Name: "new"})
			}
		}, []one{{InPlace, "listener filter_chains[*] added", ` > {name: "new"}`, 12, 1}}},
		"a limit in one of two filter chains of the same name": {func(from, m *mesh) {
			named := func(l *listenerv3.Listener) {
				for i, chain := range l.FilterChains {
					chain.Name = "virtualInbound"
					chain.FilterChainMatch = &listenerv3.FilterChainMatch{TransportProtocol: []string{"raw_buffer", "tls"}[i]}
				}
			}
			from.inbound = func(_ int, l *listenerv3.Listener) { named(l) }
			m.inbound = func(_ int, l *listenerv3.Listener) {
				named(l)
				for _, chain := range l.FilterChains {
					changeManager(t, chain, func(h *hcmv3.HttpConnectionManager) { h.MaxRequestHeadersKb = wrapperspb.UInt32(60) })
				}
			}
		}, []one{{ChainDrained, "listener virtualInbound filter_chains[*].filters[envoy.filters.network.http_connection_manager].typed_config.max_request_headers_kb added", " > 60", 12, 1}}},
		"no filter chain but the default one": {func(_, m *mesh) {
			m.outbound = func(l *listenerv3.Listener) { l.FilterChains = nil }
		}, []one{{ListenerDrained, "listener filter_chains removed", "[{filters: ...", 12, 1}}},
		"a retry policy of every route": {func(_, m *mesh) {
			m.route = func(_ int, r *routev3.RouteConfiguration) {
				for _, h := range r.VirtualHosts {
					h.Routes[0].GetRoute().RetryPolicy = &routev3.RetryPolicy{RetryOn: "connect-failure"}
				}
			}
		}, []one{{InPlace, "route configuration virtual_hosts[*].routes[*].route.retry_policy added", ` > {retry_on: "connect-failure"}`, 12, 1}}},
		"routes in another order": {func(_, m *mesh) {
			m.route = func(s int, r *routev3.RouteConfiguration) {
				if s == 0 {
					r.VirtualHosts[0].Routes = []*routev3.Route{{Name: "first"}, r.VirtualHosts[0].Routes[0]}
				}
			}
		}, []one{{InPlace, "route configuration virtual_hosts[*].routes[*] added", ` > {name: "first"}`, 3, 1}}},
		"a resource less": {func(_, m *mesh) {
			m.holds = func(_ int, kind, name string) bool { return kind != "LDS" || name != "0.0.0.0_80" }
		}, []one{{ResourceRemoved, "listener removed", "", 12, 1}}},
		"another service": {func(_, m *mesh) {
			m.services = 5
			m.route = func(_ int, r *routev3.RouteConfiguration) {
				r.VirtualHosts = slices.DeleteFunc(r.VirtualHosts, func(h *routev3.VirtualHost) bool { return strings.HasPrefix(h.Name, "svc-4") })
			}
		}, []one{
			{ResourceAdded, "outbound cluster added", "", 12, 1},
			{ResourceAdded, "outbound endpoint list added", "", 12, 1},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := plain, plain
			test.edit(&from, &to)
			got := shown(compare(t, from, to, Options{}))
			for i := range min(len(got), len(test.want)) {
				if begin, long := strings.CutSuffix(test.want[i].values, "..."); long && strings.HasPrefix(got[i].values, begin) {
					got[i].values = test.want[i].values
				}
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got\n%v\nwant\n%v", got, test.want)
			}
		})
	}
}

// The pods of a workload may differ among themselves, and have no order that lasts.
func TestSidecarsArePaired(t *testing.T) {
	from := plain.configuration(t)
	to := mesh{services: 4, pods: 3, offset: 7}.configuration(t)
	// One sidecar of svc-0 lacks a cluster on either side: the first here, the last there.
	without := func(c *record.Configuration, sidecar int) {
		s := &c.Sidecars[sidecar]
		s.Resources = slices.DeleteFunc(slices.Clone(s.Resources), func(i int) bool { return c.Resources[i].Name == "outbound|80||svc-3.mesh.svc.cluster.local" })
	}
	without(from, 0)
	without(to, 2)
	r, err := Compare(from, to, Options{})
	if err != nil || len(r.Groups) > 0 || r.Sidecars != 12 {
		t.Fatalf("%v, %+v", err, r)
	}
	without(to, 1)
	if r, err = Compare(from, to, Options{}); err != nil || r.Changed != 1 || len(r.Groups) != 2 || r.Groups[0].Sidecars != 1 || r.Groups[0].Workloads[0] != (Workload{"mesh", "svc-0", 1, 3}) {
		t.Errorf("%v, %+v", err, r)
	}
}

// Addresses that istiod chose for hosts count as these: the listeners of two hosts that changed places are the same.
func TestAssignedAddresses(t *testing.T) {
	side := func(first, second string) *record.Configuration {
		c := plain.configuration(t)
		for host, address := range map[string]string{"a.example": first, "b.example": second} {
			encoded, err := proto.Marshal(&listenerv3.Listener{Name: address + "_443", Address: socket(address, 443), StatPrefix: host})
			if err != nil {
				t.Fatal(err)
			}
			c.Sidecars[0].Resources = append(c.Sidecars[0].Resources, len(c.Resources))
			c.Resources = append(c.Resources, record.HeldResource{Type: "LDS", Name: address + "_443", Message: encoded})
			c.Objects = append(c.Objects, record.AddressedObject{Kind: "ServiceEntry", Namespace: "mesh", Name: host, Addresses: []string{address}})
		}
		return c
	}
	from, to := side("240.240.0.1", "240.240.0.2"), side("240.240.0.2", "240.240.0.1")
	if r, err := Compare(from, to, Options{}); err != nil || len(r.Groups) > 0 {
		t.Errorf("%v, %v", err, shown(r))
	}
	if r, err := Compare(from, to, Options{KeepNoise: []string{addresses}}); err != nil || len(r.Groups) == 0 {
		t.Errorf("without the rule: %v, %v", err, r)
	}
}

// Sidecars that one side alone has are listed and not compared.
func TestOtherSidecars(t *testing.T) {
	from, to := plain, plain
	to.pods = 4
	to.endpoint = func(s int, a *endpointv3.ClusterLoadAssignment) {
		a.Endpoints[0].LbEndpoints = a.Endpoints[0].LbEndpoints[:3]
	}
	r := compare(t, from, to, Options{})
	if r.Sidecars != 12 || len(r.Groups) != 0 || len(r.OnlyTo) != 4 || r.OnlyTo[0] != (Workload{"mesh", "svc-0", 1, 4}) {
		t.Errorf("%+v", r)
	}
}

// Gateways are compared as sidecars are, and counted; proxies that a replay does not have are named with their numbers.
func TestGatewaysAndWhatIsNotAsked(t *testing.T) {
	from, to := plain.configuration(t), plain.configuration(t)
	for _, side := range []*record.Configuration{from, to} {
		for i := range side.Sidecars {
			if side.Sidecars[i].Workload == "svc-1" {
				side.Sidecars[i].Kind = record.OfGateway
			}
		}
		side.Unasked = []record.UnaskedProxies{{Kind: "ztunnel", Pods: 40}, {Kind: "waypoint", Pods: 1}}
	}
	for i, r := range to.Resources {
		if r.Name == "virtualInbound" { // of each service one
			var l listenerv3.Listener
			if err := proto.Unmarshal(r.Message, &l); err != nil {
				t.Fatal(err)
			}
			l.PerConnectionBufferLimitBytes = wrapperspb.UInt32(1)
			to.Resources[i].Message, _ = proto.Marshal(&l)
		}
	}
	r, err := Compare(from, to, Options{})
	if err != nil || r.Gateways != 3 || r.Sidecars != 12 || len(r.Groups) != 1 || !slices.Contains(r.Groups[0].Workloads, Workload{"mesh", "svc-1", 3, 3}) {
		t.Fatalf("%v, %+v", err, r)
	}
	var text strings.Builder
	if err := Print(&text, "table", r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"12 of 12 sidecars change, in 1 way. Of these 12, 3 are gateways.", "Not compared: 40 ztunnels and 1 waypoint of the mesh, which a replay does not have."} {
		if strings.Count(text.String(), want) != 1 {
			t.Errorf("want %q once in:\n%s", want, &text)
		}
	}
}

// A resource whose content has another name was renamed.
func TestRenamed(t *testing.T) {
	from, to := plain.configuration(t), plain.configuration(t)
	for i, r := range to.Resources {
		if r.Name == "outbound|80||svc-2.mesh.svc.cluster.local" {
			to.Resources[i].Name = "outbound|80||other.mesh.svc.cluster.local"
			to.Resources[i].Message = []byte(strings.ReplaceAll(string(r.Message), "svc-2.mesh", "other.mesh"))
		}
	}
	r, err := Compare(from, to, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []one{
		{ResourceRemoved, "outbound cluster renamed", "outbound|80||svc-2.mesh.svc.cluster.local > outbound|80||other.mesh.svc.cluster.local", 12, 1},
		{ResourceRemoved, "outbound endpoint list renamed", "outbound|80||svc-2.mesh.svc.cluster.local > outbound|80||other.mesh.svc.cluster.local", 12, 1},
	}
	if got := shown(r); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}

// Each rule removes something, and without it that is a difference.
func TestRules(t *testing.T) {
	to := plain
	to.offset = 90
	to.route = func(_ int, r *routev3.RouteConfiguration) { slices.Reverse(r.VirtualHosts[0].Domains) }
	versioned := func(m *mesh, version string) {
		m.inbound = func(_ int, l *listenerv3.Listener) {
			l.FilterChains[0].Filters = append(l.FilterChains[0].Filters, &listenerv3.Filter{Name: "module", ConfigType: &listenerv3.Filter_TypedConfig{
				TypedConfig: pack(t, &wasmv3.EnvironmentVariables{KeyValues: map[string]string{versionKey: version, "MODE": "a"}}),
			}})
		}
	}
	named := func(m *mesh) *mesh {
		m.endpoint = func(s int, a *endpointv3.ClusterLoadAssignment) {
			for p, e := range a.Endpoints[0].LbEndpoints {
				e.GetEndpoint().Hostname = m.name(s, p)
			}
		}
		return m
	}
	from := plain
	versioned(&from, "533")
	versioned(&to, "565")
	if r := compare(t, *named(&from), *named(&to), Options{}); len(r.Groups) != 0 {
		t.Fatalf("with all rules: %v", shown(r))
	}
	for _, rule := range Rules {
		if rule.Name == nodes || rule.Name == peers { // TestZtunnels has these
			continue
		}
		r := compare(t, from, to, Options{KeepNoise: []string{rule.Name}})
		if len(r.Groups) == 0 || slices.Contains(r.Rules, rule) {
			t.Errorf("without %s: %v, rules %v", rule.Name, shown(r), r.Rules)
		}
	}
}

// Values that differ by resource are one group: 40 clusters with another timeout each.
func TestValuesByResource(t *testing.T) {
	from := mesh{services: 40, pods: 1}
	to := from
	to.cluster = func(s int, c *clusterv3.Cluster) {
		c.ConnectTimeout = durationpb.New(1e9 * 1e0)
		c.AltStatName = fmt.Sprint("stat-", s)
	}
	r := compare(t, from, to, Options{})
	if len(r.Groups) != 2 || len(r.Groups[0].Values)*len(r.Groups[1].Values) != 40 || len(r.Groups[0].Resources) != 40 {
		t.Errorf("%v", shown(r))
	}
}

func TestUnreadable(t *testing.T) {
	for _, r := range []record.HeldResource{
		{Type: "CDS", Name: "x", Message: []byte{0xff}},
	} {
		c := &record.Configuration{Resources: []record.HeldResource{r}, Sidecars: []record.HeldBy{{Pod: "p", Resources: []int{0}}}}
		if _, err := Compare(c, c, Options{}); err == nil || !strings.Contains(err.Error(), "CDS x") {
			t.Errorf("%v", err)
		}
	}
	// A type that is not known is compared as bytes.
	c := func(b byte) *record.Configuration {
		return &record.Configuration{Resources: []record.HeldResource{{Type: "XDS", Name: "x", Message: []byte{b}}}, Sidecars: []record.HeldBy{{Workload: "w", Pod: "p", Resources: []int{0}}}}
	}
	r, err := Compare(c(1), c(2), Options{})
	if err != nil || len(r.Groups) != 1 || !slices.Equal(r.Opaque, []string{"XDS"}) {
		t.Errorf("%v, %+v", err, r)
	}
}

// A path of the rules names a list that there is.
func TestRulesNameFields(t *testing.T) {
	for path := range unordered {
		at := strings.LastIndex(path, ".")
		if strings.HasPrefix(path, "istio.") { // TestWorkloadTypes has these
			continue
		}
		m, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(path[:at]))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if f := m.Descriptor().Fields().ByName(protoreflect.Name(path[at+1:])); f == nil || !f.IsList() {
			t.Errorf("%s is no list", path)
		}
	}
	for kind := range kinds {
		if _, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(kind)); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for kind, message := range messages {
		if strings.HasPrefix(string(message), "istio.") { // TestWorkloadTypes has these
			continue
		}
		if _, err := protoregistry.GlobalTypes.FindMessageByName(message); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestPrint(t *testing.T) {
	to := plain
	to.offset = 3
	to.cluster = func(_ int, c *clusterv3.Cluster) { c.CommonLbConfig.HealthyPanicThreshold = &typev3.Percent{} }
	to.outbound = func(l *listenerv3.Listener) { l.PerConnectionBufferLimitBytes = wrapperspb.UInt32(32768) }
	to.holds = func(service int, _, name string) bool { return service != 2 || name != "virtualInbound" }
	r := compare(t, plain, to, Options{KeepNoise: []string{podNames}})
	r.From.Name, r.To.Name = "istiod 1.29.1", "istiod 1.31.0"
	r.To.NotQuiet = true
	same := compare(t, plain, plain, Options{})
	same.From.Name, same.To.Name = "istiod 1.31.0", "istiod 1.31.0, controlPlane.env A=b"
	for _, format := range output.Formats {
		var b strings.Builder
		if err := Print(&b, format, r); err != nil {
			t.Fatal(err)
		}
		if format == "table" || format == "wide" {
			if err := Print(&b, format, same); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join("testdata", format+".golden")
		if *update {
			if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || string(want) != b.String() {
			t.Errorf("%s (%v):\n%s", path, err, b.String())
		}
	}
}

// large returns a result with more than fits a page or a comment: all notes, rejected resources and many differences, with names of
// this length.
func large(repeat int) *Result {
	long := strings.Repeat("name-", repeat)
	r := &Result{From: Side{Name: "istiod " + long, NotQuiet: true, Unasked: []record.UnaskedProxies{{Kind: "ztunnel", Pods: 40}}}, To: Side{Name: "istiod to " + long, NotQuiet: true}, Sidecars: 90, Changed: 90, Rules: Rules, Validation: &Validation{Envoy: "1.36.4"}}
	for i := range 30 {
		r.OnlyTo = append(r.OnlyTo, Workload{"mesh", fmt.Sprint(long, i), 1, 1})
		r.Validation.Rejected = append(r.Validation.Rejected, Rejection{"LDS", fmt.Sprint(long, i), long, 0, 1})
	}
	for _, e := range Effects {
		r.Effects = append(r.Effects, EffectCount{Effect: e.Effect, What: e.What, Source: e.Source, Groups: 60, Sidecars: 90})
		for i := range 60 {
			r.Groups = append(r.Groups, Group{
				Effect: e.Effect, Type: "LDS", Class: "listener", Op: Changed, Path: fmt.Sprintf("field_%d.%s", i, long), Values: []Value{{long, long + "b"}},
				Resources: []string{long, long, long, long}, OfResources: 9, Sidecars: 90, OfSidecars: 90, Workloads: []Workload{{"mesh", "w", 90, 90}}, Meaning: &Meaning{"It means something.", "https://example.com"},
			})
		}
	}
	return r
}

// A table is a page, Markdown a comment, and wide all of it: each has the largest consequence first, and says what was left out.
func TestPrintIsBounded(t *testing.T) {
	r := large(60)
	printed := func(format string) string {
		var b strings.Builder
		if err := Print(&b, format, r); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	has := func(text string, wanted ...string) {
		t.Helper()
		for _, want := range wanted {
			if strings.Count(text, want) != 1 {
				t.Errorf("want %q once in:\n%s", want, text)
			}
		}
	}
	table, markdown, wide := printed("table"), printed("markdown"), printed("wide")
	const rules = "switches off: addresses, pod-names, order, nodes, peers, versions"
	if lines := strings.Count(table, "\n"); lines > output.PageLines {
		t.Errorf("%d lines:\n%s", lines, table)
	}
	has(table, "\n1. [removed] 90 of 90 sidecars", "\n... (-o wide has the rest)\n", "- 27 more (-o wide)")
	if len(markdown) >= output.CommentBytes {
		t.Errorf("%d bytes of Markdown", len(markdown))
	}
	has(markdown, "\n1. \\[removed\\] 90 of 90 sidecars", "- 10 more (-o wide)", "\nThe rest is left out; -o wide has it.\n", "Not compared: 40 ztunnels", rules, "https://example.com")
	if !strings.HasPrefix(markdown, "### istiod name-") || strings.Index(markdown, "\nWarning: ") > strings.Index(markdown, "\n1. ") {
		t.Errorf("the essentials are not first:\n%.2000s", markdown)
	}
	has(wide, "\n1. [removed] 90 of 90 sidecars", fmt.Sprintf("\n%d. [endpoints] 90 of 90 sidecars", len(r.Groups)), rules)
	if rejected := strings.Count(wide, "\n    LDS"); rejected != 30 || strings.Contains(wide, "-o wide") {
		t.Errorf("%d rejected resources, or something left out", rejected)
	}

	r = large(1)
	r.Validation, r.OnlyTo, r.Rules = nil, nil, nil
	table = printed("table")
	has(table, "\n1. [removed]", "\n3. [removed]", "https://example.com", "   as with 1\n   same size; mesh/w 90 of 90\n3. ", "Not compared: 40 ztunnels", "\nLeft out: certificates and keys (SDS), which each run issues anew.\n", "\nEverything: -o wide")
	if lines := strings.Count(table, "\n"); lines > output.PageLines {
		t.Errorf("%d lines:\n%s", lines, table)
	}
}

// Whatever a resource holds: it equals itself, and two that differ have a difference, in either direction.
func FuzzCompare(f *testing.F) {
	for _, r := range plain.configuration(f).Resources {
		f.Add(r.Type, r.Message, r.Message)
		f.Add(r.Type, r.Message[:len(r.Message)/2], r.Message)
	}
	f.Fuzz(func(t *testing.T, kind string, a, b []byte) {
		of := func(message []byte) *record.Configuration {
			return &record.Configuration{
				Resources: []record.HeldResource{{Type: kind, Name: "r", Message: message}}, Sidecars: []record.HeldBy{{Workload: "w", Pod: "p", Resources: []int{0}}},
				Objects: []record.AddressedObject{{Kind: "Pod", Name: "r", Workload: "w", Addresses: []string{"10.0.0.1", ""}}},
			}
		}
		same, err := Compare(of(a), of(a), Options{})
		if err != nil {
			return
		}
		if len(same.Groups) > 0 {
			t.Errorf("a message differs from itself: %v", shown(same))
		}
		there, err := Compare(of(a), of(b), Options{})
		if err != nil {
			return
		}
		back, err := Compare(of(b), of(a), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if there.Changed != back.Changed || (there.Changed > 0) != (len(there.Groups) > 0) || (back.Changed > 0) != (len(back.Groups) > 0) {
			t.Errorf("there %v, back %v", shown(there), shown(back))
		}
		var text strings.Builder
		if err := Print(&text, "table", there); err != nil {
			t.Error(err)
		}
	})
}

// 1,600 sidecars of 160 services, all of which see all services.
func BenchmarkCompare1600(b *testing.B) {
	from := mesh{services: 160, pods: 10}
	to := from
	to.offset = 5
	to.cluster = func(_ int, c *clusterv3.Cluster) { c.CommonLbConfig.HealthyPanicThreshold = &typev3.Percent{} }
	x, y := from.configuration(b), to.configuration(b)
	b.ReportAllocs()
	for b.Loop() {
		r, err := Compare(x, y, Options{})
		if err != nil || len(r.Groups) != 1 || r.Groups[0].Sidecars != 1600 {
			b.Fatal(err, len(r.Groups))
		}
	}
}

// Elements of a list, and values of a map, that have another name and are else the same were renamed: they are not gone.
func TestRenamedElements(t *testing.T) {
	named := func(text string) *node { return leaf(word, text, len(text)) }
	message := func(fields ...field) *node { return (&node{kind: message, fields: fields}).hashed() }
	side := func(filter, policy, value string, more ...*node) *node {
		filters := &node{kind: list}
		filters.items = append(filters.items, message(field{"name", named("first")}), message(field{"name", named(filter)}, field{"source", named("of " + filter)}))
		filters.items = append(filters.items, more...)
		return message(
			field{"filters", filters.hashed()},
			field{"policies", (&node{kind: mapping, fields: []field{{policy, message(field{"rule", named("any")})}}}).hashed()},
			field{"labels", (&node{kind: mapping, fields: []field{{value, named("x")}}}).hashed()},
		)
	}
	text := func(all []change) (lines []string) {
		for _, ch := range all {
			line := string(ch.op) + " " + ch.path
			if ch.op == Renamed {
				line += " " + ch.from.text + " > " + ch.to.text
			}
			lines = append(lines, line)
		}
		return lines
	}
	// A value that is a text says nothing of itself: its label was removed and another one added.
	want := []string{"renamed filters[*] old > new", "renamed policies[*] p-1 > p-2", "removed labels[*]", "added labels[*]"}
	if got := text(changesOf(side("old", "p-1", "a"), side("new", "p-2", "b"))); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// One that differs in more than its name is another one.
	other := message(field{"name", named("new")}, field{"source", named("elsewhere")})
	want = []string{"removed filters[*]", "added filters[*]"}
	if got := text(changesOf(side("second", "p", "a", message(field{"name", named("old")}, field{"source", named("here")})), side("second", "p", "a", other))); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// So is one that is identified by something else than a name.
	header := func(name string) *node {
		option := message(field{"header", message(field{"key", named(name)})})
		option.typ = "envoy.config.core.v3.HeaderValueOption"
		return (&node{kind: list, items: []*node{option.hashed()}}).hashed()
	}
	want = []string{"removed [*]", "added [*]"}
	if got := text(changesOf(header("x-a"), header("x-b"))); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
