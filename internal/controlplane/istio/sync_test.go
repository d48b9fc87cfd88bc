package istio

import (
	"maps"
	"net/netip"
	"testing"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/convergence"
)

func TestReadSync(t *testing.T) {
	got, err := readSync([]byte(`[
		{"proxy": "a-1.shop", "cluster_sent": "1", "cluster_acked": "1", "listener_sent": "1", "listener_acked": "1", "resources": {"x": {"sent": "1", "acked": "1"}}},
		{"proxy": "b-1.shop", "cluster_sent": "2", "cluster_acked": "1"},
		{"proxy": "c-1.shop", "cluster_sent": "1", "cluster_acked": "1", "resources": {"type.googleapis.com/secret": {"sent": "3", "acked": "2"}}},
		{"proxy": "d-1.shop"},
		{"proxy": "e-1.shop", "cluster_sent": "1", "cluster_acked": "1", "endpoint_sent": "1"},
		{"proxy": "f-1.shop", "cluster_sent": "1"},
		{"proxy": "f-1.shop", "cluster_sent": "1", "cluster_acked": "1"}
	]`))
	want := map[string]bool{"shop/a-1": true, "shop/b-1": false, "shop/c-1": false, "shop/d-1": false, "shop/e-1": false, "shop/f-1": false}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("%v %v, want %v", got, err, want)
	}
	for _, bad := range []string{`{}`, `[{"proxy": "noname"}]`, `not JSON`} {
		if got, err := readSync([]byte(bad)); err == nil {
			t.Errorf("%s: %v", bad, got)
		}
	}
}

// Proxies that wait in the push queue show in none of what they were sent: while there are some, istiod takes one after
// the other out of it, and the counts change with each.
func TestWork(t *testing.T) {
	const rest = `# HELP pilot_proxy_queue_time Time in seconds
pilot_proxy_queue_time_bucket{le="0.1"} 7
pilot_proxy_queue_time_sum 0.1
pilot_proxy_queue_time_count 7
pilot_inbound_updates{type="eds"} 3
pilot_debounce_time_count 2
pilot_xds_pushes{type="cds"} 5
process_cpu_seconds_total 1.5
`
	const later = `pilot_proxy_queue_time_bucket{le="0.1"} 7
pilot_proxy_queue_time_sum 0.1
pilot_proxy_queue_time_count 7
pilot_inbound_updates{type="eds"} 3
pilot_debounce_time_count 2
pilot_xds_pushes{type="cds"} 5
process_cpu_seconds_total 9.5
`
	if work([]byte(rest)) != work([]byte(later)) || work([]byte(rest)) == "" {
		t.Errorf("%q, then %q", work([]byte(rest)), work([]byte(later)))
	}
	for _, more := range []string{
		"pilot_proxy_queue_time_count 8\n", "pilot_inbound_updates{type=\"config\"} 1\n", "pilot_pushcontext_init_seconds_count 1\n", "pilot_xds_pushes{type=\"eds\"} 1\n",
	} {
		if work([]byte(rest)) == work([]byte(rest+more)) {
			t.Errorf("%q does not show", more)
		}
	}
}

func TestExplain(t *testing.T) {
	mesh := readMesh(t, `---
apiVersion: v1
kind: Namespace
metadata: {name: istio-system}
---
apiVersion: networking.istio.io/v1
kind: WorkloadEntry
metadata: {name: machine, namespace: b}
spec: {address: 192.0.2.7, labels: {app: web}}
---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: rename, namespace: a}
spec: {configPatches: [{applyTo: CLUSTER, match: {context: SIDECAR_OUTBOUND, cluster: {service: web.b.svc.cluster.local}}, patch: {operation: MERGE, value: {type: STATIC}}}]}
---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: routes, namespace: istio-system}
spec: {configPatches: [{applyTo: ROUTE_CONFIGURATION, match: {routeConfiguration: {name: "80"}}, patch: {operation: MERGE, value: {}}}]}
`)
	c := captured{&ControlPlane{}}
	filtering := captured{&ControlPlane{opts: controlplane.StartOptions{Resources: controlplane.Resources{Env: []string{gatewayClusters + "=true"}}}}}
	key := func(of convergence.Type, name string) convergence.Key { return convergence.Key{Type: of, Name: name} }
	for _, c := range []struct {
		of   captured
		d    convergence.Difference
		want string
	}{
		{c, convergence.Difference{Key: key(convergence.EDS, "outbound|80||web.b.svc.cluster.local"), Sidecar: "b/web-1", Endpoint: netip.MustParseAddrPort("192.0.2.7:8080")}, "WorkloadEntry b/machine"},
		{c, convergence.Difference{Key: key(convergence.EDS, "outbound|80||web.b.svc.cluster.local"), Sidecar: "a/client-1", Absent: true}, "EnvoyFilter a/rename"},
		{c, convergence.Difference{Key: key(convergence.EDS, "outbound|80||web.b.svc.cluster.local"), Sidecar: "b/web-1", Absent: true}, ""}, // another namespace
		{c, convergence.Difference{Key: key(convergence.CDS, "outbound|80||peers.b.svc.cluster.local"), Sidecar: "a/client-1", Absent: true}, ""},
		{c, convergence.Difference{Key: key(convergence.CDS, "inbound|8080||"), Sidecar: "a/client-1", Absent: true}, ""},
		{c, convergence.Difference{Key: key(convergence.RDS, "80"), Sidecar: "b/web-1"}, "EnvoyFilter istio-system/routes"},
		{c, convergence.Difference{Key: key(convergence.RDS, "8080"), Sidecar: "b/web-1"}, ""},
		{c, convergence.Difference{Key: key(convergence.CDS, "outbound|80||peers.b.svc.cluster.local"), Sidecar: "a/gateway-1", Absent: true}, ""},
		{filtering, convergence.Difference{Key: key(convergence.CDS, "outbound|80||peers.b.svc.cluster.local"), Sidecar: "a/gateway-1", Absent: true}, "the setting " + gatewayClusters},
		{filtering, convergence.Difference{Key: key(convergence.CDS, "outbound|80||peers.b.svc.cluster.local"), Sidecar: "b/web-1", Absent: true}, ""},
	} {
		if got := c.of.Explain(mesh, c.d); got != c.want {
			t.Errorf("%s of %s: %q, want %q", c.d.Key, c.d.Sidecar, got, c.want)
		}
	}
}
