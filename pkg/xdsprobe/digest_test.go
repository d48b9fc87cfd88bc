package xdsprobe

import (
	"fmt"
	"runtime"
	"testing"

	udpav1 "github.com/cncf/xds/go/udpa/type/v1"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	httprbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	. "github.com/onsi/ginkgo/v2"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"scaler.mesh/scaler/pkg/convergence"
)

// marshal writes maps in another order nearly each time, as proto.Marshal does
// with those of a message made anew.
func marshal(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// packShuffled is anypb.New, which would sort the maps.
func packShuffled(t testing.TB, m proto.Message) *anypb.Any {
	t.Helper()
	return &anypb.Any{TypeUrl: typePrefix + string(m.ProtoReflect().Descriptor().FullName()), Value: marshal(t, m)}
}

// istioMetadata is metadata as istiod gives it to clusters; last is what differs.
func istioMetadata(last string) *corev3.Metadata {
	services := &structpb.Struct{Fields: map[string]*structpb.Value{
		"host": structpb.NewStringValue("a.one"), "name": structpb.NewStringValue("a"), "namespace": structpb.NewStringValue(last),
	}}
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
		"istio": {Fields: map[string]*structpb.Value{
			"services":              structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStructValue(services)}}),
			"default_original_port": structpb.NewNumberValue(80),
		}},
		"other": {Fields: map[string]*structpb.Value{"a": structpb.NewBoolValue(true), "b": structpb.NewNullValue()}},
	}}
}

// withMaps are resources with maps in several depths.
var withMaps = map[string]struct {
	kind convergence.Type
	with func(t testing.TB, last string) proto.Message
}{
	"cluster": {convergence.CDS, func(_ testing.TB, last string) proto.Message {
		return &clusterv3.Cluster{Name: "a", Metadata: istioMetadata(last), AltStatName: "b"}
	}},
	"filters of a cluster": {convergence.CDS, func(t testing.TB, last string) proto.Message {
		filter := packShuffled(t, &udpav1.TypedStruct{TypeUrl: "a", Value: istioMetadata(last).FilterMetadata["istio"]})
		return &clusterv3.Cluster{
			Name: "a", Filters: []*clusterv3.Filter{{Name: "f", TypedConfig: filter}},
			TypedExtensionProtocolOptions: map[string]*anypb.Any{"x": filter, "y": filter, "z": packShuffled(t, wrapperspb.String("?"))},
		}
	}},
	"endpoints": {convergence.EDS, func(_ testing.TB, last string) proto.Message {
		return &endpointv3.ClusterLoadAssignment{ClusterName: "a", Endpoints: []*endpointv3.LocalityLbEndpoints{
			{LbEndpoints: []*endpointv3.LbEndpoint{{Metadata: istioMetadata("?")}, {Metadata: istioMetadata(last)}}},
		}}
	}},
	"policies of a listener": {convergence.LDS, func(t testing.TB, last string) proto.Message {
		policy := func(name string) *rbacv3.Policy {
			return &rbacv3.Policy{Principals: []*rbacv3.Principal{{Identifier: &rbacv3.Principal_Metadata{}}, {Identifier: &rbacv3.Principal_Any{Any: name == last}}}}
		}
		manager := &hcmv3.HttpConnectionManager{
			StatPrefix: "a",
			RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
				VirtualHosts: []*routev3.VirtualHost{{Name: "v", Domains: []string{"*"}, Routes: []*routev3.Route{{Name: "r", Metadata: istioMetadata(last)}}}},
			}},
			HttpFilters: []*hcmv3.HttpFilter{{Name: "rbac", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: packShuffled(t, &httprbacv3.RBAC{
				Rules: &rbacv3.RBAC{Policies: map[string]*rbacv3.Policy{"p": policy("p"), "q": policy("q"), "r": policy("r")}},
			})}}},
		}
		return &listenerv3.Listener{Name: "a", FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{
			{Name: "manager", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packShuffled(t, manager)}},
		}}}}
	}},
}

// spellings are different bytes that say the same.
func spellings(t testing.TB, with func(testing.TB, string) proto.Message, last string) [][]byte {
	t.Helper()
	seen := map[string]bool{}
	var all [][]byte
	for range 200 {
		b := marshal(t, with(t, last))
		if !seen[string(b)] {
			seen[string(b)] = true
			all = append(all, b)
		}
	}
	if len(all) < 2 {
		t.Fatal("all spellings are the same: nothing would be shown")
	}
	return all
}

var _ = It("has one digest for all spellings of a message", func() {
	t := GinkgoTB()
	for name, test := range withMaps {
		By(name, func() {
			sums := map[uint64]int{}
			for _, b := range spellings(t, test.with, "p") {
				sums[digest(test.kind, b)]++
			}
			if len(sums) != 1 {
				t.Errorf("spellings of one resource have %d digests", len(sums))
			}
			for _, b := range spellings(t, test.with, "q") {
				if sums[digest(test.kind, b)] != 0 {
					t.Fatal("another resource has the same digest")
				}
			}
		})
	}
})

var _ = It("stores spellings once", func() {
	t := GinkgoTB()
	for name, test := range withMaps {
		By(name, func() {
			store := NewStore()
			all := spellings(t, test.with, "p")
			var first *Resource
			for _, b := range all {
				r, err := store.resource(kindOf(test.kind), &body{name: []byte("a"), present: true, resource: packed{value: b}})
				if err != nil {
					t.Fatal(err)
				}
				if first == nil {
					first = r
				}
				if r != first || !r.equal(first) {
					t.Fatal("another spelling is another resource")
				}
			}
			if store.Len() != 1 {
				t.Errorf("the store holds %d resources: want 1", store.Len())
			}
			other, err := store.resource(kindOf(test.kind), &body{name: []byte("a"), present: true, resource: packed{value: marshal(t, test.with(t, "q"))}})
			if err != nil {
				t.Fatal(err)
			}
			if other == first || other.equal(first) {
				t.Error("what says something else is the same resource")
			}
		})
	}
})

var _ = It("stores only some spellings", func() {
	t := GinkgoTB()
	var deep func(depth int) *structpb.Struct
	deep = func(depth int) *structpb.Struct {
		s := &structpb.Struct{Fields: map[string]*structpb.Value{}}
		for i := range 4 {
			s.Fields[fmt.Sprint("key", i)] = structpb.NewNumberValue(float64(i))
			if depth > 0 {
				s.Fields[fmt.Sprint("key", i)] = structpb.NewStructValue(deep(depth - 1))
			}
		}
		return s
	}
	all := spellings(t, func(testing.TB, string) proto.Message {
		return &clusterv3.Cluster{Name: "a", Metadata: &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"a": deep(2)}}}
	}, "")
	if len(all) <= maxEncodings {
		t.Fatalf("%d spellings: want more than %d", len(all), maxEncodings)
	}
	store := NewStore()
	var held []*Resource // all of them: a variable that is about to be assigned again keeps nothing alive
	for _, b := range append(all, all...) {
		r, err := store.resource(kindOf(convergence.CDS), &body{present: true, resource: packed{value: b}})
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, r)
	}
	known := 0
	for i := range store.byBytes {
		store.byBytes[i].mu.RLock()
		known += len(store.byBytes[i].resources)
		store.byBytes[i].mu.RUnlock()
	}
	if store.Len() != 1 || known != maxEncodings {
		t.Errorf("%d resources of %d spellings: want 1 of %d", store.Len(), known, maxEncodings)
	}
	runtime.KeepAlive(held)
})

// The digest of any message is that of every spelling of it.
func FuzzDigest(f *testing.F) {
	for _, test := range withMaps {
		if test.kind == convergence.CDS {
			f.Add(marshal(f, test.with(f, "p")))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var c clusterv3.Cluster
		if proto.Unmarshal(b, &c) != nil {
			return
		}
		digest(convergence.CDS, b) // whatever its order of fields
		one, again := marshal(t, &c), marshal(t, proto.Clone(&c))
		if digest(convergence.CDS, one) != digest(convergence.CDS, again) {
			t.Errorf("%x and %x have different digests", one, again)
		}
	})
}

// BenchmarkUnseen measures scanning a resource whose bytes are new, compared with
// unmarshalling it.
func BenchmarkUnseen(b *testing.B) {
	endpoints := &endpointv3.ClusterLoadAssignment{ClusterName: "a", Endpoints: []*endpointv3.LocalityLbEndpoints{{}}}
	for range 100 {
		endpoints.Endpoints[0].LbEndpoints = append(endpoints.Endpoints[0].LbEndpoints, &endpointv3.LbEndpoint{
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{}}, Metadata: istioMetadata("a"),
		})
	}
	for name, test := range map[string]struct {
		kind convergence.Type
		m    proto.Message
		into func() proto.Message
	}{
		"cluster":       {convergence.CDS, withMaps["filters of a cluster"].with(b, "p"), func() proto.Message { return &clusterv3.Cluster{} }},
		"100 endpoints": {convergence.EDS, endpoints, func() proto.Message { return &endpointv3.ClusterLoadAssignment{} }},
	} {
		value := marshal(b, test.m)
		for how, do := range map[string]func(){
			"scan":      func() { _, _ = scan(test.kind, value) },
			"digest":    func() { digest(test.kind, value) },
			"unmarshal": func() { _ = proto.Unmarshal(value, test.into()) },
		} {
			b.Run(fmt.Sprintf("%s/%s", name, how), func(b *testing.B) {
				b.SetBytes(int64(len(value)))
				b.ReportAllocs()
				for b.Loop() {
					do()
				}
			})
		}
	}
}
