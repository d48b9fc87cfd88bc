package istio

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Probes of a captured mesh concern the sidecars that certainly have the marker, and objects of the mesh that make that
// uncertain are named.
func TestCapturedProbes(t *testing.T) {
	const (
		client, gateway, web = 0, 1, 2 // of meshHead
		virtualService       = "---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: web, namespace: a}\nspec: {hosts: [web.b.svc.cluster.local], http: [{route: [{destination: {host: web.b.svc.cluster.local}}]}]}\n"
		ofClient             = "---\napiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {name: default, namespace: a}\nspec: {egress: [{hosts: [./*]}]}\n"
		partial              = "---\napiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {name: default, namespace: a}\nspec: {egress: [{port: {number: 80, protocol: HTTP, name: http}, hosts: [b/*]}]}\n"
		removing             = "---\napiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nmetadata: {name: all, namespace: a}\nspec: {configPatches: [{applyTo: CLUSTER, patch: {operation: REMOVE}}]}\n"
	)
	for name, c := range map[string]struct {
		objects       string
		kind          controlplane.ProbeKind
		workload      int
		want          []int  // nil = there is none
		kindOf, named string // of the object
		why           string // contains it, where there is none
	}{
		"route":               {"", controlplane.RouteProbe, web, []int{client, web}, "VirtualService", "b/scaler-probe-web", ""},
		"of no service":       {"", controlplane.RouteProbe, client, nil, "", "", ""},
		"routed already":      {virtualService, controlplane.RouteProbe, web, nil, "", "", "Service b/web, which VirtualService a/web routes"},
		"not seen by all":     {ofClient, controlplane.RouteProbe, web, []int{web}, "VirtualService", "b/scaler-probe-web", ""},
		"perhaps seen":        {partial, controlplane.RouteProbe, web, nil, "", "", "as Service b/"},
		"route, parts gone":   {removing, controlplane.RouteProbe, web, nil, "", "", "EnvoyFilter a/all removes"},
		"policy":              {"", controlplane.PolicyProbe, web, []int{web}, "AuthorizationPolicy", "b/scaler-probe-web", ""},
		"policy, no labels":   {"", controlplane.PolicyProbe, client, nil, "", "", "no workload"},
		"policy of a gateway": {"", controlplane.PolicyProbe, gateway, nil, "", "", "no workload"},
		"policy, parts gone":  {removing, controlplane.PolicyProbe, web, nil, "", "", "EnvoyFilter a/all removes"},
		"of the mesh":         {"", controlplane.MeshProbe, 0, []int{client, web}, "EnvoyFilter", "istio-system/scaler-probe-mesh", ""},
	} {
		mesh := readMesh(t, c.objects)
		probes, unprobed := captured{&ControlPlane{}}.Probes(mesh)
		made := func(marker string) (*unstructured.Unstructured, []int) {
			return probes.Probe(c.kind, mesh.Topology(), scenario.Settings{}, c.workload, marker)
		}
		object, concerned := made("marker-1")
		if !slices.Equal(concerned, c.want) || (object == nil) != (c.want == nil) {
			t.Errorf("%s: %v concerns %v, want %v", name, object, concerned, c.want)
			continue
		}
		if object == nil {
			if why := unprobed(c.kind); !strings.Contains(why, c.why) {
				t.Errorf("%s: %q, want %q", name, why, c.why)
			}
			continue
		}
		if object.GetKind() != c.kindOf || object.GetNamespace()+"/"+object.GetName() != c.named || !hasText(object.Object, "marker-1") {
			t.Errorf("%s: %v", name, object)
		}
		if again, _ := made("marker-2"); hasText(again.Object, "marker-1") || again.GetName() != object.GetName() {
			t.Errorf("%s: then %v", name, again)
		}
	}
}

// A change of the whole mesh is in its root namespace, and an EnvoyFilter of that namespace explains what any sidecar holds: that of
// the captured mesh configuration, or of an istiod that the cluster has.
func TestRootNamespace(t *testing.T) {
	filters := ""
	for _, namespace := range []string{"istio-system", "root", "home"} {
		filters += "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "}\n---\napiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nmetadata: {name: all, namespace: " +
			namespace + "}\nspec: {configPatches: [{applyTo: CLUSTER, patch: {operation: MERGE, value: {type: STATIC}}}]}\n"
	}
	for _, c := range []struct{ home, configured, want string }{
		{"", "", "istio-system"},
		{"", "root", "root"},
		{"home", "", "home"},
	} {
		mesh := readMesh(t, filters)
		if c.configured != "" {
			mesh.ControlPlane = &capture.ControlPlane{Revisions: []capture.Revision{{Name: "default", MeshConfig: map[string]any{"rootNamespace": c.configured}}}}
		}
		of := captured{&ControlPlane{home: c.home}}
		probes, _ := of.Probes(mesh)
		if object, _ := probes.Probe(controlplane.MeshProbe, mesh.Topology(), scenario.Settings{}, 0, "marker"); object.GetNamespace() != c.want {
			t.Errorf("%+v: the change of the whole mesh is in namespace %s", c, object.GetNamespace())
		}
		d := convergence.Difference{Key: convergence.Key{Type: convergence.EDS, Name: "outbound|80||web.b.svc.cluster.local"}, Sidecar: "a/client-1", Absent: true}
		if got := of.Explain(mesh, d); got != "EnvoyFilter "+c.want+"/all" {
			t.Errorf("%+v: a difference is explained by %q", c, got)
		}
	}
}

// hasText reports whether a text is anywhere in a value.
func hasText(value any, text string) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, of := range v {
			if hasText(of, text) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(of any) bool { return hasText(of, text) })
	case string:
		return v == text
	}
	return false
}

// Not every sidecar holds all endpoints of a Service where a DestinationRule or the mesh sends connections to some localities: a change
// of one is not followed, the endpoints are not compared, and that is stated.
func TestDistributed(t *testing.T) {
	const rule = "---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: %s, namespace: b}\nspec: {host: '%s', trafficPolicy: {loadBalancer: {%s}}}\n"
	distribute := "localityLbSetting: {distribute: [{from: eu/*, to: {eu/a/*: 100}}]}"
	for name, c := range map[string]struct{ objects, mesh, want string }{
		"nothing":     {"", "", ""},
		"its rule":    {fmt.Sprintf(rule, "web", "web", distribute), "", "DestinationRule b/web"},
		"of all":      {fmt.Sprintf(rule, "all", "*.b.svc.cluster.local", distribute), "", "DestinationRule b/all"},
		"of others":   {fmt.Sprintf(rule, "other", "other", distribute), "", ""},
		"failover":    {fmt.Sprintf(rule, "web", "web", "localityLbSetting: {failover: [{from: eu, to: us}]}"), "", ""},
		"of the mesh": {"", distribute, "meshConfig.localityLbSetting"},
	} {
		mesh := readMesh(t, c.objects)
		if c.mesh != "" {
			mesh.ControlPlane = &capture.ControlPlane{Revisions: []capture.Revision{{Name: "default"}}}
			if err := yaml.Unmarshal([]byte(c.mesh), &mesh.ControlPlane.Revisions[0].MeshConfig); err != nil {
				t.Fatal(err)
			}
		}
		if got := (captured{&ControlPlane{}}).Distributed(mesh)(topology.Listing{Namespace: "b", Service: "web", Port: "http"}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		r := newReplayed(configuration{&ControlPlane{}}, mesh)
		if compared := slices.ContainsFunc(textsOf(r, 0), func(want string) bool { return strings.HasSuffix(want, " of b/web:http") }); compared != (c.want == "") {
			t.Errorf("%s: the endpoints of b/web are compared: %t", name, compared)
		}
		stated := slices.ContainsFunc(r.notChecked(), func(n record.NotChecked) bool {
			return n.What == record.UncheckedEndpoints && slices.Contains(n.Examples, "b/web by "+c.want)
		})
		if stated != (c.want != "") {
			t.Errorf("%s: that the endpoints of b/web are not compared is stated: %t", name, stated)
		}
	}
}
