package diff

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	filterstatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/set_filter_state/v3"
	wasmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/wasm/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	setfilterstatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/set_filter_state/v3"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"istio.io/api/envoy/extensions/stats"

	"scaler.mesh/scaler/pkg/record"
)

// refusing returns an Envoy that refuses what contains one of these texts.
func refusing(t *testing.T, texts ...string) Accepts {
	return func(_ context.Context, encoded []byte) (string, error) {
		var b bootstrapv3.Bootstrap
		if err := proto.Unmarshal(encoded, &b); err != nil {
			t.Fatal(err)
		}
		names, addresses := map[string]bool{}, map[string]bool{}
		for _, c := range b.StaticResources.Clusters {
			if names[c.Name] {
				return "two clusters " + c.Name, nil
			}
			names[c.Name] = true
		}
		for _, l := range b.StaticResources.Listeners {
			address := l.Address.String()
			if addresses[address] {
				return "two listeners at " + address, nil
			}
			addresses[address] = true
		}
		all := prototext.Format(&b)
		if strings.Count(all, "route_config:") != strings.Count(all, "validate_clusters:") {
			return "unknown cluster", nil
		}
		for _, text := range texts {
			if strings.Contains(all, text) {
				return "no " + text, nil
			}
		}
		return "", nil
	}
}

// withStats puts Istio's statistics into the outbound listener of all sidecars.
func withStats(t *testing.T) func(l *listenerv3.Listener) {
	return func(l *listenerv3.Listener) {
		changeManager(t, l.FilterChains[1], func(m *hcmv3.HttpConnectionManager) {
			m.HttpFilters = slices.Insert(m.HttpFilters, 0, &hcmv3.HttpFilter{Name: "istio.stats", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(t, &stats.PluginConfig{})}})
		})
	}
}

func TestValidate(t *testing.T) {
	named := func(name string) mesh {
		return mesh{services: 4, pods: 3, cluster: func(s int, c *clusterv3.Cluster) {
			if s == 2 {
				c.AltStatName = name
			}
		}}
	}
	istio := mesh{services: 4, pods: 3, outbound: withStats(t)}
	first := mesh{services: 4, pods: 3, outbound: withStats(t), inbound: func(s int, l *listenerv3.Listener) { // the first one with a filter of Istio
		if s == 0 {
			withStats(t)(l)
			l.StatPrefix = "odd"
		}
	}}
	waypoint := mesh{services: 4, pods: 3, outbound: func(l *listenerv3.Listener) {
		changeManager(t, l.FilterChains[0], func(m *hcmv3.HttpConnectionManager) {
			m.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{Name: "default"}}
		})
		l.FilterChains[1].Filters = slices.Insert(l.FilterChains[1].Filters, 0, &listenerv3.Filter{Name: "state", ConfigType: &listenerv3.Filter_TypedConfig{
			TypedConfig: pack(t, &setfilterstatev3.Config{OnNewConnection: []*filterstatev3.FilterStateValue{
				{Key: &filterstatev3.FilterStateValue_ObjectKey{ObjectKey: "istio.target"}},
				{Key: &filterstatev3.FilterStateValue_ObjectKey{ObjectKey: "io.istio.name"}, FactoryKey: "envoy.string"},
			}}),
		}})
	}}
	for _, test := range []struct {
		name     string
		from, to mesh
		refused  []string
		whole    int
		cut      int
		rejected string // type, name, sidecars of either side
	}{
		{"all is accepted", plain, plain, nil, 12, 0, ""},
		{"a resource of the second side", plain, named("odd"), []string{"odd"}, 13, 0, "CDS outbound|80||svc-2.mesh.svc.cluster.local 0 12"},
		{"a resource of both sides", named("odd"), named("odd"), []string{"odd"}, 12, 0, "CDS outbound|80||svc-2.mesh.svc.cluster.local 12 12"},
		{"a resource of the first side", named("odd"), plain, []string{"odd"}, 13, 0, "CDS outbound|80||svc-2.mesh.svc.cluster.local 12 0"},
		{"an Envoy with Istio's filters", istio, istio, nil, 12, 0, ""},
		{"an Envoy without", istio, istio, []string{"stats.PluginConfig"}, 11, 1, ""},
		{"an Envoy without, and a resource", istio, mesh{services: 4, pods: 3, outbound: func(l *listenerv3.Listener) {
			withStats(t)(l)
			l.StatPrefix = "odd"
		}}, []string{"stats.PluginConfig", "odd"}, 11, 2, "LDS 0.0.0.0_80 0 12"},
		{"an Envoy without, and the first resource", first, first, []string{"stats.PluginConfig", "odd"}, 11, 2, "LDS virtualInbound 3 3"},
		{"routes and state of a waypoint", waypoint, waypoint, []string{"istio.target"}, 11, 1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			from, to := test.from.configuration(t), test.to.configuration(t)
			module, err := proto.Marshal(&corev3.TypedExtensionConfig{Name: "module", TypedConfig: pack(t, &wasmv3.Wasm{})})
			if err != nil {
				t.Fatal(err)
			}
			to.Resources = append(to.Resources, record.HeldResource{Type: "NDS", Name: "names"}, record.HeldResource{Type: "ECDS", Name: "module", Message: module})
			v, err := Validate(t.Context(), from, to, "1.36.4", refusing(t, test.refused...))
			if err != nil {
				t.Fatal(err)
			}
			var rejected []string
			for _, r := range v.Rejected {
				rejected = append(rejected, fmt.Sprintf("%s %s %d %d", r.Type, r.Name, r.From, r.To))
				if !strings.HasPrefix(r.Reason, "no ") {
					t.Errorf("reason %q", r.Reason)
				}
			}
			if got := strings.Join(rejected, ", "); got != test.rejected || v.Whole != test.whole || v.Cut != test.cut || v.NotValidated != 2 {
				t.Errorf("%d whole, %d cut, %d not, rejected %q; want %d, %d, 2, %q", v.Whole, v.Cut, v.NotValidated, got, test.whole, test.cut, test.rejected)
			}
		})
	}
}

// An Envoy that refuses everything is asked a bounded number of times.
func TestValidateIsBounded(t *testing.T) {
	runs := 0
	many := mesh{services: 300, pods: 1}.configuration(t)
	v, err := Validate(t.Context(), many, many, "", func(context.Context, []byte) (string, error) {
		runs++
		return "no", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if v.NotValidated == 0 || v.Whole != len(v.Rejected) || runs > maxRuns {
		t.Errorf("%d runs, %d whole, %d rejected, %d not validated", runs, v.Whole, len(v.Rejected), v.NotValidated)
	}
}
