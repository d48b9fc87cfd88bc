package istio

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/scenario"
)

// chain returns a -> b -> c in two namespaces: a is called by nobody, c calls nobody.
func chain() topology.Mesh {
	port := []topology.Port{{Name: "http", Number: 80, Target: 8080}}
	return topology.Mesh{
		Namespaces: []string{"n", "m"},
		Services: []topology.Service{
			{Name: "a", Namespace: "n", Account: "account-a", Pods: 1, Ports: port, Calls: []int{1}},
			{Name: "b", Namespace: "m", Account: "account-b", Pods: 1, Ports: port, Calls: []int{2}},
			{Name: "c", Namespace: "n", Account: "account-c", Pods: 1, Ports: port},
		},
	}
}

var knobsAlone = map[string]scenario.Settings{
	"permissive": controlplane.Modes["permissive"],
	"mtls":       {MTLS: "strict", Scope: "all", Authz: "none"},
	"scope":      {MTLS: "permissive", Scope: "declared", Authz: "none"},
	"authz":      {MTLS: "permissive", Scope: "all", Authz: "declared"},
	"strict":     controlplane.Modes["strict"],
}

// short returns an object as "KIND NAMESPACE/NAME SPEC".
func short(t *testing.T, o *unstructured.Unstructured) string {
	spec, err := json.Marshal(o.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	return o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName() + " " + strings.ReplaceAll(string(spec), `"`, "")
}

func TestObjects(t *testing.T) {
	mtls := []string{"PeerAuthentication istio-system/default {mtls:{mode:STRICT}}"}
	scope := []string{
		"Sidecar n/a {egress:[{hosts:[m/b.m.svc.cluster.local]}],workloadSelector:{labels:{app:a}}}",
		"Sidecar m/b {egress:[{hosts:[n/c.n.svc.cluster.local]}],workloadSelector:{labels:{app:b}}}",
		"Sidecar n/c {egress:[{hosts:[~/*]}],workloadSelector:{labels:{app:c}}}",
	}
	authz := []string{
		"AuthorizationPolicy n/nobody-to-a {action:ALLOW,selector:{matchLabels:{app:a}}}",
		"AuthorizationPolicy m/a-to-b {action:ALLOW,rules:[{from:[{source:{principals:[cluster.local/ns/n/sa/account-a]}}]}],selector:{matchLabels:{app:b}}}",
		"AuthorizationPolicy n/b-to-c {action:ALLOW,rules:[{from:[{source:{principals:[cluster.local/ns/m/sa/account-b]}}]}],selector:{matchLabels:{app:c}}}",
	}
	for name, want := range map[string][]string{
		"permissive": nil, "mtls": mtls, "scope": scope, "authz": authz, "strict": slices.Concat(mtls, scope, authz),
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, o := range (configuration{new(ControlPlane)}).Objects(chain(), knobsAlone[name]) {
				got = append(got, short(t, o))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What is wanted and held is counted from the call graph alone.
func TestShapes(t *testing.T) {
	c := &ControlPlane{report: component.Report{Version: component.IstioDefault}, others: []otherService{
		{host: "kubernetes.default.svc.cluster.local", address: "10.0.0.1", ports: []otherPort{{443, opaque}}},
		{host: "gateway.istio-system.svc.cluster.local", address: "10.0.0.2", ports: []otherPort{{80, routed}, {15021, sniffed}}},
	}}
	for _, shape := range []string{topology.Star, topology.Layers, topology.Random} {
		mesh := topology.Build(topology.Spec{Pods: 40, Services: 12, Namespaces: 3, Shape: shape, FanOut: 2, Seed: 7})
		callers := callers(mesh)
		for name, knobs := range knobsAlone {
			t.Run(shape+"/"+name, func(t *testing.T) {
				checkObjects(t, mesh, knobs, callers, (configuration{c}).Objects(mesh, knobs))
				for i := range mesh.Services {
					checkWants(t, mesh, knobs, i, len(callers[i]), (configuration{c}).Wants(mesh, knobs, i))
					checkHolds(t, mesh, knobs, i, (configuration{c}).Wants(mesh, knobs, i), (configuration{c}).Holds(mesh, knobs, i))
				}
			})
		}
	}
}

func checkObjects(t *testing.T, mesh topology.Mesh, knobs scenario.Settings, callers [][]int, objects []*unstructured.Unstructured) {
	got, want := map[string]int{}, map[string]int{}
	names := map[string]bool{}
	for _, o := range objects {
		got[o.GetKind()]++
		name := o.GetKind() + "/" + o.GetNamespace() + "/" + o.GetName()
		if names[name] {
			t.Errorf("two objects %s", name)
		}
		names[name] = true
	}
	if knobs.MTLS == "strict" {
		want["PeerAuthentication"] = 1
	}
	if knobs.Scope == "declared" {
		want["Sidecar"] = len(mesh.Services)
	}
	if knobs.Authz == "declared" {
		for _, c := range callers {
			want["AuthorizationPolicy"] += max(1, len(c)) // nobody has a policy too
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects by kind (-want +got):\n%s", diff)
	}
}

func checkWants(t *testing.T, mesh topology.Mesh, knobs scenario.Settings, service, callers int, wants []convergence.Want) {
	reached := len(mesh.Services)
	if knobs.Scope == "declared" {
		reached = len(mesh.Services[service].Calls)
	}
	outbound := min(1, reached) // the listener and the route of port 80 are there for somebody
	got := count(wants, func(w convergence.Want) convergence.Key { return w.Key })
	want := map[convergence.Type]int{convergence.CDS: reached + 1, convergence.LDS: 2 + outbound}
	if reached > 0 {
		want[convergence.EDS], want[convergence.RDS] = reached, 1
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("service %d: wants by type (-want +got):\n%s", service, diff)
	}
	for _, w := range wants {
		switch w.Key {
		case convergence.Key{Type: convergence.RDS, Name: "80"}:
			if len(w.Members) != reached {
				t.Errorf("service %d: the route has %d members, want %d", service, len(w.Members), reached)
			}
		case convergence.Key{Type: convergence.LDS, Name: virtualInbound}:
			mtls, policies := "plaintext 8080", 0
			if knobs.MTLS == "strict" {
				mtls = "mutual TLS 8080"
			}
			if knobs.Authz == "declared" {
				policies = max(1, callers)
			}
			if len(w.Members) != 1+policies || w.Members[0] != mtls {
				t.Errorf("service %d: the inbound listener has the members %q, want %q and %d policies", service, w.Members, mtls, policies)
			}
		}
	}
}

func checkHolds(t *testing.T, mesh topology.Mesh, knobs scenario.Settings, service int, wants []convergence.Want, holds []convergence.Key) {
	others := map[convergence.Type]int{convergence.CDS: 3}
	if knobs.Scope == "all" { // three ports, one of them 80, whose listener and route are there already
		others = map[convergence.Type]int{convergence.CDS: 3 + 3, convergence.EDS: 3, convergence.LDS: 2, convergence.RDS: 1}
	}
	want := count(wants, func(w convergence.Want) convergence.Key { return w.Key })
	for kind, n := range others {
		want[kind] += n
	}
	if diff := cmp.Diff(want, count(holds, func(k convergence.Key) convergence.Key { return k })); diff != "" {
		t.Errorf("service %d: holds by type (-want +got):\n%s", service, diff)
	}
	if slices.ContainsFunc(holds, func(k convergence.Key) bool { return strings.Contains(k.Name, "istio-system") }) && knobs.Scope == "declared" {
		t.Errorf("service %d holds what is outside the mesh: %v", service, holds)
	}
}

func count[T any](all []T, key func(T) convergence.Key) map[convergence.Type]int {
	n := map[convergence.Type]int{}
	for _, one := range all {
		n[key(one).Type]++
	}
	return n
}
