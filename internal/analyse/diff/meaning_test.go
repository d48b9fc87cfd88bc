package diff

import (
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	extauthzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	httprbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// Each known difference, as 1.29.1 and 1.31.0 send it, has its meaning, and one like it has none.
func TestMeanings(t *testing.T) {
	manager := func(change func(m *hcmv3.HttpConnectionManager)) mesh {
		return mesh{services: 2, pods: 1, outbound: func(l *listenerv3.Listener) { changeManager(t, l.FilterChains[0], change) }}
	}
	filter := func(name string, config proto.Message) mesh {
		return manager(func(m *hcmv3.HttpConnectionManager) {
			f := &hcmv3.HttpFilter{Name: name, ConfigType: &hcmv3.HttpFilter_ConfigDiscovery{ConfigDiscovery: &corev3.ExtensionConfigSource{DefaultConfig: pack(t, &rbacv3.RBAC{})}}}
			if config != nil {
				f.ConfigType = &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(t, config)}
			}
			m.HttpFilters = slices.Insert(m.HttpFilters, 0, f)
		})
	}
	rules := func(name string) mesh {
		return filter("envoy.filters.http.rbac", &httprbacv3.RBAC{ShadowRules: &rbacv3.RBAC{Policies: map[string]*rbacv3.Policy{name: {Permissions: []*rbacv3.Permission{{Rule: &rbacv3.Permission_Any{Any: true}}}}}}})
	}
	reader := func(prefix string) mesh {
		return filter("envoy.filters.http.ext_authz", &extauthzv3.ExtAuthz{FilterEnabledMetadata: &matcherv3.MetadataMatcher{
			Filter: "envoy.filters.http.rbac", Value: &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_StringMatch{StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: prefix}}}},
		}})
	}
	named := func(workload string) mesh {
		return mesh{services: 2, pods: 1, endpoint: func(_ int, a *endpointv3.ClusterLoadAssignment) {
			a.Endpoints[0].LbEndpoints[0].Metadata = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"istio": {Fields: map[string]*structpb.Value{"workload": structpb.NewStringValue(workload)}}}}
		}}
	}
	retries := func(on string) mesh {
		return manager(func(m *hcmv3.HttpConnectionManager) {
			m.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{Name: "r", VirtualHosts: []*routev3.VirtualHost{{Name: "h", Domains: []string{"*"}, Routes: []*routev3.Route{{
				Name: "default", Action: &routev3.Route_Route{Route: &routev3.RouteAction{RetryPolicy: &routev3.RetryPolicy{RetryOn: on}}},
			}}}}}}
		})
	}
	threshold := func(percent float64) mesh {
		return mesh{services: 2, pods: 1, cluster: func(_ int, c *clusterv3.Cluster) {
			c.CommonLbConfig.HealthyPanicThreshold = &typev3.Percent{Value: percent}
		}}
	}
	const plugin, extension = "extensions.istio.io/wasmplugin/web.ab-test", "extensions.istio.io/trafficextension/web.ab-test~istio-translated-wasmplugin"
	for name, test := range map[string]struct {
		from, to mesh
		want     string // in its source; "" = no meaning
	}{
		"panic threshold":           {mesh{services: 2, pods: 1}, threshold(0), "1.31/upgrade-notes"},
		"another threshold":         {mesh{services: 2, pods: 1}, threshold(50), ""},
		"filter of a WasmPlugin":    {filter(plugin, nil), filter(extension, nil), "trafficextension.yaml"},
		"another filter":            {filter(plugin, nil), filter(plugin+"-2", nil), ""},
		"rules of CUSTOM":           {rules("istio-ext-authz-ns[web]-policy[sso]-rule[0]"), rules("istio-ext-authz-sso-ns[web]-policy[sso]-rule[0]"), "58082.yaml"},
		"other rules":               {rules("ns[web]-policy[sso]-rule[0]"), rules("ns[web]-policy[other]-rule[0]"), ""},
		"reader of these rules":     {reader("istio-ext-authz"), reader("istio-ext-authz-sso"), "58082.yaml"},
		"endpoints of ServiceEntry": {named(";;;;Kubernetes"), named("fulfilment-0;partners;fulfilment-0;;Kubernetes"), "serviceentry/conversion.go"},
		"endpoints of another name": {named("a;partners;a;;Kubernetes"), named("b;partners;b;;Kubernetes"), ""},
		"retries of a waypoint":     {retries("reset-before-request"), retries("connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes"), "60682.yaml"},
		"retries that somebody set": {retries("reset-before-request"), retries("5xx"), ""},
	} {
		r := compare(t, test.from, test.to, Options{})
		if len(r.Groups) != 1 {
			t.Errorf("%s: %v", name, shown(r))
			continue
		}
		switch m := r.Groups[0].Meaning; {
		case m == nil && test.want != "":
			t.Errorf("%s: no meaning: %v", name, shown(r))
		case m != nil && (test.want == "" || !strings.Contains(m.Source, test.want)):
			t.Errorf("%s: %s", name, m.Source)
		}
	}
}
