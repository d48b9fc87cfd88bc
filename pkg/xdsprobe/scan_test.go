package xdsprobe

import (
	"bytes"
	stdcmp "cmp"
	"net/netip"
	"slices"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	. "github.com/onsi/ginkgo/v2"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"scaler.mesh/scaler/pkg/convergence"
)

// byObject answers as scan does, by unmarshalling.
func byObject(t convergence.Type, b []byte) (s Scanned, err error) {
	switch t {
	case convergence.CDS:
		var c clusterv3.Cluster
		if err = proto.Unmarshal(b, &c); err == nil {
			s.Name = c.GetName()
			if c.GetType() == clusterv3.Cluster_EDS && isADS(c.GetEdsClusterConfig().GetEdsConfig()) {
				s.Names = []convergence.Key{{Type: convergence.EDS, Name: stdcmp.Or(c.GetEdsClusterConfig().GetServiceName(), s.Name)}}
				s.Wait = FetchTimeout
				if d := c.GetEdsClusterConfig().GetEdsConfig().GetInitialFetchTimeout(); d != nil {
					s.Wait = max(0, d.AsDuration())
				}
			}
			s.Secured = c.GetTransportSocket().GetTypedConfig().GetTypeUrl() == tlsURL
			for _, m := range c.GetTransportSocketMatches() {
				s.Secured = s.Secured || m.GetTransportSocket().GetTypedConfig().GetTypeUrl() == tlsURL
			}
		}
	case convergence.EDS:
		var a endpointv3.ClusterLoadAssignment
		if err = proto.Unmarshal(b, &a); err == nil {
			s.Name, s.Content = a.GetClusterName(), &convergence.Content{Endpoints: endpointsOf(&a)}
		}
	case convergence.LDS:
		var l listenerv3.Listener
		if err = proto.Unmarshal(b, &l); err == nil {
			s, err = listenerByObject(&l)
		}
	case convergence.RDS:
		var r routev3.RouteConfiguration
		if err = proto.Unmarshal(b, &r); err == nil {
			s.Name, s.Content = r.GetName(), &convergence.Content{}
			for _, h := range r.GetVirtualHosts() {
				s.Content.Members = append(s.Content.Members, h.GetDomains()...)
			}
			slices.Sort(s.Content.Members)
			s.Content.Members = slices.Compact(s.Content.Members)
		}
	case convergence.ECDS:
		var e corev3.TypedExtensionConfig
		if err = proto.Unmarshal(b, &e); err == nil {
			s.Name = e.GetName()
		}
	}
	return s, err
}

// securedCluster returns a cluster whose endpoints are all reached over TLS.
func securedCluster(name string) *clusterv3.Cluster {
	c := edsCluster(name, "", 1)
	c.TransportSocket = socketOf(&tlsv3.UpstreamTlsContext{})
	return c
}

func socketOf(config proto.Message) *corev3.TransportSocket {
	return &corev3.TransportSocket{Name: "socket", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: pack(config)}}
}

func isADS(c *corev3.ConfigSource) bool { return c.GetAds() != nil || c.GetSelf() != nil }

func endpointsOf(a *endpointv3.ClusterLoadAssignment) convergence.Endpoints {
	endpoints := convergence.Endpoints{}
	for _, l := range a.GetEndpoints() {
		for _, e := range l.GetLbEndpoints() {
			at := e.GetEndpoint().GetAddress().GetSocketAddress()
			ip, err := netip.ParseAddr(at.GetAddress())
			if tunnel, err := netip.ParseAddrPort(e.GetEndpoint().GetAddress().GetEnvoyInternalAddress().GetEndpointId()); err == nil {
				endpoints[tunnel] = healthOf(int32(e.GetHealthStatus()))
				continue
			}
			if err != nil || at.GetPortValue() > 65535 {
				continue
			}
			endpoints[netip.AddrPortFrom(ip, uint16(at.GetPortValue()))] = map[corev3.HealthStatus]convergence.Health{
				corev3.HealthStatus_UNHEALTHY: convergence.Unhealthy,
				corev3.HealthStatus_TIMEOUT:   convergence.Unhealthy,
				corev3.HealthStatus_DRAINING:  convergence.Draining,
			}[e.GetHealthStatus()]
		}
	}
	return endpoints
}

func listenerByObject(l *listenerv3.Listener) (s Scanned, err error) {
	s.Name = l.GetName()
	discovered := func(name string, c *corev3.ExtensionConfigSource) {
		if name != "" && isADS(c.GetConfigSource()) {
			s.Names = append(s.Names, convergence.Key{Type: convergence.ECDS, Name: name})
		}
	}
	unpack := func(a *anypb.Any) {
		if a.GetTypeUrl() != managerURL {
			return
		}
		var m hcmv3.HttpConnectionManager
		if e := proto.Unmarshal(a.GetValue(), &m); e != nil {
			err = e
			return
		}
		if rds := m.GetRds(); rds.GetRouteConfigName() != "" && isADS(rds.GetConfigSource()) {
			s.Names = append(s.Names, convergence.Key{Type: convergence.RDS, Name: rds.GetRouteConfigName()})
		}
		for _, f := range m.GetHttpFilters() {
			discovered(f.GetName(), f.GetConfigDiscovery())
		}
	}
	for _, c := range append(slices.Clone(l.GetFilterChains()), l.GetDefaultFilterChain()) {
		for _, f := range c.GetFilters() {
			unpack(f.GetTypedConfig())
			discovered(f.GetName(), f.GetConfigDiscovery())
		}
	}
	for _, f := range l.GetListenerFilters() {
		discovered(f.GetName(), f.GetConfigDiscovery())
	}
	unpack(l.GetApiListener().GetApiListener())
	slices.SortFunc(s.Names, convergence.Key.Compare)
	s.Names = slices.Compact(s.Names)
	s.Content = enforcedByObject(l)
	return s, err
}

var scannedEqual = cmp.Options{
	cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }), cmpopts.EquateEmpty(),
	cmpopts.EquateComparable(convergence.Type{}),
}

func checkScan(t testing.TB, kind convergence.Type, b []byte) {
	t.Helper()
	got, err := scan(kind, b)
	want, wantErr := byObject(kind, b)
	if (err != nil) != (wantErr != nil) {
		t.Fatalf("scan(%v, %x): error %v, unmarshalling: %v", kind, b, err, wantErr)
	}
	if wantErr == nil {
		if diff := cmp.Diff(want, got, scannedEqual); diff != "" {
			t.Fatalf("scan(%v, %x) differs from unmarshalling (-want +got):\n%s", kind, b, diff)
		}
	}
}

// samples are resources of every type, and pairs of them whose concatenation is
// a message that merges both.
func samples() map[convergence.Type][]proto.Message {
	discovery := func(name string) *corev3.ExtensionConfigSource {
		return &corev3.ExtensionConfigSource{ConfigSource: viaADS(), TypeUrls: []string{name}}
	}
	broken := pack(&hcmv3.HttpConnectionManager{})
	broken.Value = []byte{0x0a, 0x7f}
	inline := pack(&hcmv3.HttpConnectionManager{RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: route("inline")}})
	return map[convergence.Type][]proto.Message{
		convergence.CDS: {
			edsCluster("a", "", 1), edsCluster("a", "service", 2), staticCluster("b"),
			&clusterv3.Cluster{Name: "custom", ClusterDiscoveryType: &clusterv3.Cluster_ClusterType{ClusterType: &clusterv3.Cluster_CustomClusterType{Name: "x"}}},
			&clusterv3.Cluster{EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: &corev3.ConfigSource{
				ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{}},
			}}},
			securedCluster("a"), &clusterv3.Cluster{TransportSocket: socketOf(&clusterv3.Cluster{})},
			&clusterv3.Cluster{TransportSocketMatches: []*clusterv3.Cluster_TransportSocketMatch{{Name: "tls", TransportSocket: socketOf(&tlsv3.UpstreamTlsContext{})}, {Name: "raw"}}},
		},
		convergence.EDS: {
			assignment("none"),
			assignment("three", endpoint("10.0.0.1", 80, 1), endpoint("10.0.0.2", 80, 2), endpoint("::1", 65535, 3)),
			assignment("odd", endpoint("host", 80, 0), endpoint("10.0.0.1", 65536, 0), endpoint("10.0.0.1", 80, 4), endpoint("10.0.0.1", 80, 5)),
			assignment("pipe", &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
				Address: &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: "/x"}}},
			}}}),
			assignment("named", &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_EndpointName{EndpointName: "x"}}),
		},
		convergence.LDS: {
			listener("a", manager("80"), manager("8080", "wasm"), manager("80")),
			&listenerv3.Listener{Name: "b", DefaultFilterChain: &listenerv3.FilterChain{Filters: []*listenerv3.Filter{manager("default")}}},
			&listenerv3.Listener{ApiListener: &listenerv3.ApiListener{ApiListener: manager("api").GetTypedConfig()}},
			listener("c", &listenerv3.Filter{Name: "net", ConfigType: &listenerv3.Filter_ConfigDiscovery{ConfigDiscovery: discovery("x")}}),
			&listenerv3.Listener{ListenerFilters: []*listenerv3.ListenerFilter{{
				Name: "first", ConfigType: &listenerv3.ListenerFilter_ConfigDiscovery{ConfigDiscovery: discovery("x")},
			}}},
			listener("broken", &listenerv3.Filter{ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: broken}}),
			listener("inline", &listenerv3.Filter{ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: inline}}),
		},
		convergence.RDS:  {route("80", "b.ns.svc", "a.ns.svc", "a.ns.svc"), route("none")},
		convergence.ECDS: {extension("wasm")},
	}
}

var _ = It("scans resources as protobuf decodes them", func() {
	t := GinkgoTB()
	for kind, messages := range samples() {
		var all [][]byte
		for _, m := range messages {
			b, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, b)
		}
		for _, a := range all {
			checkScan(t, kind, a)
			for _, b := range all {
				checkScan(t, kind, slices.Concat(a, b)) // merges
			}
			for i := range a { // truncated anywhere
				checkScan(t, kind, a[:i])
			}
		}
	}
})

var _ = It("scans clusters", func() {
	t := GinkgoTB()
	b, err := proto.Marshal(edsCluster("outbound|80||a.ns", "service", 1))
	if err != nil {
		t.Fatal(err)
	}
	got, err := scan(convergence.CDS, b)
	if err != nil || got.Name != "outbound|80||a.ns" || !slices.Equal(got.Names, []convergence.Key{{Type: convergence.EDS, Name: "service"}}) {
		t.Errorf("scan = %+v, %v", got, err)
	}
})

func FuzzScan(f *testing.F) {
	for kind, messages := range samples() {
		for _, m := range messages {
			b, err := proto.Marshal(m)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(slices.Index(envoyNames, kind)), b)
			f.Add(uint8(slices.Index(envoyNames, kind)), slices.Concat(b, b))
		}
	}
	// groups, a packed field, text that is not UTF-8
	f.Add(uint8(0), []byte{0x0b, 0x0c})
	f.Add(uint8(0), protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte{0xff}))
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) {
		checkScan(t, envoyNames[int(kind)%len(envoyNames)], b)
	})
}

// wanted is the content of a response, by unmarshalling.
type wanted struct {
	TypeURL, Version, Nonce string
	Resources               []wantedBody
	Removed                 []string
}

type wantedBody struct {
	Name, Version, TypeURL string
	Value                  []byte
	Present, Aliases       bool
}

func wantedOf(r *discoveryv3.Resource) wantedBody {
	return wantedBody{r.GetName(), r.GetVersion(), r.GetResource().GetTypeUrl(), r.GetResource().GetValue(),
		r.GetResource() != nil, len(r.GetAliases()) > 0}
}

func responseByObject(b []byte, v Variant) (w wanted, err error) {
	if v == SotW {
		var r discoveryv3.DiscoveryResponse
		err = proto.Unmarshal(b, &r)
		w = wanted{TypeURL: r.GetTypeUrl(), Version: r.GetVersionInfo(), Nonce: r.GetNonce()}
		for _, a := range r.GetResources() {
			w.Resources = append(w.Resources, wantedOf(&discoveryv3.Resource{Resource: a}))
		}
		return w, err
	}
	var r discoveryv3.DeltaDiscoveryResponse
	err = proto.Unmarshal(b, &r)
	w = wanted{TypeURL: r.GetTypeUrl(), Version: r.GetSystemVersionInfo(), Nonce: r.GetNonce(), Removed: r.GetRemovedResources()}
	for _, one := range r.GetResources() {
		w.Resources = append(w.Resources, wantedOf(one))
	}
	return w, err
}

func checkResponse(t testing.TB, v Variant, b []byte) {
	t.Helper()
	var r response
	err := r.parse(b, v)
	want, wantErr := responseByObject(b, v)
	if (err != nil) != (wantErr != nil) {
		t.Fatalf("parse(%x, %s): error %v, unmarshalling: %v", b, v, err, wantErr)
	}
	if err != nil {
		return
	}
	got := wanted{TypeURL: string(r.typeURL), Version: r.version, Nonce: r.nonce, Removed: r.removed}
	for _, o := range r.resources {
		got.Resources = append(got.Resources, wantedBody{string(o.name), string(o.version),
			string(o.resource.typeURL), bytes.Clone(o.resource.value), o.present, o.aliases})
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("parse(%x, %s) differs from unmarshalling (-want +got):\n%s", b, v, diff)
	}
}

func responses() map[Variant]proto.Message {
	plane := &corev3.ControlPlane{Identifier: "test"}
	return map[Variant]proto.Message{
		SotW: &discoveryv3.DiscoveryResponse{
			VersionInfo: "1", TypeUrl: typeURLs[convergence.CDS], Nonce: "n", ControlPlane: plane, Canary: true,
			Resources: []*anypb.Any{pack(edsCluster("a", "", 1)), pack(&discoveryv3.Resource{Name: "b", Resource: pack(edsCluster("b", "", 1))})},
		},
		Delta: &discoveryv3.DeltaDiscoveryResponse{
			SystemVersionInfo: "1", TypeUrl: typeURLs[convergence.CDS], Nonce: "n", ControlPlane: plane, RemovedResources: []string{"c"},
			RemovedResourceNames: []*discoveryv3.ResourceName{{Name: "c"}},
			Resources: []*discoveryv3.Resource{
				{Name: "a", Version: "v", Resource: pack(edsCluster("a", "", 1)), Aliases: []string{"x"}},
				{Name: "heartbeat", Version: "v"},
			},
		},
	}
}

func FuzzResponse(f *testing.F) {
	for v, m := range responses() {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(v == SotW, b)
		f.Add(v == SotW, slices.Concat(b, b))
	}
	f.Fuzz(func(t *testing.T, sotw bool, b []byte) {
		v := Delta
		if sotw {
			v = SotW
		}
		checkResponse(t, v, b)
	})
}
