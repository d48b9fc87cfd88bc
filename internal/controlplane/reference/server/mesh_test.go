package server

import (
	"encoding/json"
	"maps"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"google.golang.org/protobuf/encoding/protojson"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/test/golden"
)

// testMesh is three services: a calls b and c, b calls c.
func testMesh(settings Settings) Mesh {
	http := []Port{{Name: "http", Number: 80, Target: 8080}}
	return Mesh{Settings: settings, Services: []Service{
		{Namespace: "one", Name: "a", Ports: http, Account: "a", Calls: []string{"one/b", "two/c"}},
		{Namespace: "one", Name: "b", Ports: http, Account: "b", Calls: []string{"two/c", "two/gone"}},
		{
			Namespace: "two", Name: "c", Account: "c", Routes: []string{"marked"}, Policies: []string{"watched"},
			Ports: []Port{{Name: "http", Number: 80, Target: 8080}, {Name: "admin", Number: 9000, Target: 9000}},
		},
	}}
}

var _ = It("builds what the golden file has", func() {
	t := GinkgoTB()
	for name, settings := range map[string]Settings{
		"permissive": {},
		"strict":     {StrictMTLS: true, DeclaredScope: true, DeclaredAuthz: true},
	} {
		By(name, func() {
			st, err := build(testMesh(settings))
			if err != nil {
				t.Fatal(err)
			}
			all := map[string]any{"routes": dump(t, layers{st.routes})}
			for _, workload := range []string{"one/a", "two/c", "not/known"} {
				all[workload] = map[string]any{
					"clusters":  dump(t, st.clusters.of(workload)),
					"listeners": dump(t, st.listeners.of(workload)),
				}
			}
			got, err := json.MarshalIndent(all, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, filepath.Join("testdata", name+".json"), string(got)+"\n")
		})
	}
})

var _ = It("assigns the endpoints that the golden file has", func() {
	t := GinkgoTB()
	r, err := newResource(convergence.EDS, assignment("one/a:http", []Endpoint{
		{netip.MustParseAddrPort("10.0.0.2:8080"), convergence.Draining},
		{netip.MustParseAddrPort("10.0.0.1:8080"), convergence.Healthy},
		{netip.MustParseAddrPort("[fd00::1]:8080"), convergence.Unhealthy},
	}))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.MarshalIndent(dump(t, layers{{r.name: r}}), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "assignment.json"), string(got)+"\n")
})

// dump is resources as JSON, by name.
func dump(t testing.TB, l layers) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, s := range l {
		for name, r := range s {
			m, err := r.plain.UnmarshalNew()
			if err != nil {
				t.Fatal(err)
			}
			text, err := protojson.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			var value any
			if err := json.Unmarshal(text, &value); err != nil { // protojson's spaces are random
				t.Fatal(err)
			}
			all[name] = value
		}
	}
	return all
}

var _ = It("builds the same from the same objects", func() {
	t := GinkgoTB()
	versions := func() map[string]string {
		st, err := build(testMesh(Settings{DeclaredAuthz: true}))
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, s := range append(st.listeners.of("two/c"), st.clusters.of("two/c")...) {
			for name, r := range s {
				all[name] = r.version
			}
		}
		return all
	}
	want := versions()
	for range 20 {
		if diff := cmp.Diff(want, versions()); diff != "" {
			t.Fatalf("versions differ between two builds of one mesh:\n%s", diff)
		}
	}
})

var _ = It("takes settings from config maps", func() {
	t := GinkgoTB()
	config := func(kind, namespace, name string, data map[string]string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{ConfigLabel: kind}}, Data: data}
	}
	m := Mesh{Services: []Service{{Namespace: "one", Name: "a"}, {Namespace: "one", Name: "b"}}}
	for _, c := range []*corev1.ConfigMap{
		config(MeshConfig, Namespace, "mesh", map[string]string{"mtls": "strict", "scope": "declared", "authz": "none"}),
		config(WorkloadConfig, "one", "a", map[string]string{"account": "x", "calls": "one/b two/c"}),
		config(WorkloadConfig, "two", "c", map[string]string{"account": "no such service yet"}),
		config(RouteConfig, "one", "r", map[string]string{"service": "b", "name": "m1"}),
		config(PolicyConfig, "one", "p", map[string]string{"service": "b", "name": "m2"}),
		config(PolicyConfig, Namespace, "all", map[string]string{"service": EveryService, "name": "m3"}),
		config("unheard of", "one", "u", nil),
	} {
		configure(&m, c)
	}
	want := Mesh{
		Settings: Settings{StrictMTLS: true, DeclaredScope: true},
		Services: []Service{
			{Namespace: "one", Name: "a", Account: "x", Calls: []string{"one/b", "two/c"}, Policies: []string{"m3"}},
			{Namespace: "one", Name: "b", Routes: []string{"m1"}, Policies: []string{"m2", "m3"}},
		},
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
})

var _ = It("takes endpoints from slices", func() {
	t := GinkgoTB()
	slice := func(port int32, endpoints ...discoveryv1.Endpoint) any {
		return &discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{{Name: new("http"), Port: &port}}, Endpoints: endpoints}
	}
	endpoint := func(address string, conditions discoveryv1.EndpointConditions) discoveryv1.Endpoint {
		return discoveryv1.Endpoint{Addresses: []string{address}, Conditions: conditions}
	}
	got := map[netip.AddrPort]convergence.Health{}
	for _, e := range endpoints([]any{
		slice(8080,
			endpoint("10.0.0.1", discoveryv1.EndpointConditions{}), // left out means ready
			endpoint("10.0.0.2", discoveryv1.EndpointConditions{Ready: new(false)}),
			endpoint("10.0.0.3", discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}),
			endpoint("10.0.0.4", discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false), Terminating: new(true)}),
			endpoint("a.host.name", discoveryv1.EndpointConditions{}),
		),
		slice(8081, endpoint("10.0.0.5", discoveryv1.EndpointConditions{Ready: new(true)})),
		slice(8080, endpoint("10.0.0.1", discoveryv1.EndpointConditions{Ready: new(true)})),
	}, "http") {
		if _, twice := got[e.Addr]; twice {
			t.Errorf("%s is listed twice", e.Addr)
		}
		got[e.Addr] = e.Health
	}
	want := map[netip.AddrPort]convergence.Health{
		netip.MustParseAddrPort("10.0.0.1:8080"): convergence.Healthy,
		netip.MustParseAddrPort("10.0.0.2:8080"): convergence.Unhealthy,
		netip.MustParseAddrPort("10.0.0.3:8080"): convergence.Draining,
		netip.MustParseAddrPort("10.0.0.5:8081"): convergence.Healthy,
	}
	if !maps.Equal(got, want) {
		t.Errorf("endpoints are %v, want %v", got, want)
	}
	if got := endpoints([]any{slice(8080, endpoint("10.0.0.1", discoveryv1.EndpointConditions{}))}, "admin"); len(got) > 0 {
		t.Errorf("endpoints of a port that no slice has are %v", got)
	}
})

var _ = It("reads the share of a route", func() {
	t := GinkgoTB()
	for _, c := range []struct {
		text string
		want float64
		ok   bool
	}{
		{"5%", 0.05, true}, {"0.05", 0.05, true}, {"100%", 1, true}, {"0", 0, true}, {"1", 1, true},
		{"101%", 0, false}, {"-1%", 0, false}, {"1.01", 0, false}, {"", 0, false}, {"%", 0, false}, {"NaN", 0, false}, {"5 %", 0, false},
	} {
		if got, err := ParseShare(c.text); got != c.want || (err == nil) != c.ok {
			t.Errorf("ParseShare(%q) = %v, %v", c.text, got, err)
		}
	}
})

func FuzzParseShare(f *testing.F) {
	for _, s := range []string{"5%", "0.05", "1e-3", "+.5%", "0x1p-2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if share, err := ParseShare(s); err == nil && !(share >= 0 && share <= 1) {
			t.Errorf("ParseShare(%q) = %v", s, share)
		}
	})
}

var _ = It("knows the callers of a service", func() {
	t := GinkgoTB()
	want := map[string][]string{
		"one/b":    {"spiffe://cluster.local/ns/one/sa/a"},
		"two/c":    {"spiffe://cluster.local/ns/one/sa/a", "spiffe://cluster.local/ns/one/sa/b"},
		"two/gone": {"spiffe://cluster.local/ns/one/sa/b"},
	}
	got := testMesh(Settings{}).callers()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
})
