package capture

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What the API server reads of a manifest is what is captured of it.
func TestReadAsTheServerReads(t *testing.T) {
	// The account may be given by its deprecated field, which the server copies:
	// https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/#PodSpec
	t.Run("the deprecated name of the account", func(t *testing.T) {
		m := meshOfText(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: cart, namespace: shop}, spec: {template: {spec: {serviceAccount: seller, containers: [{name: app}]}}}}`)
		if got := m.Workloads[0].Template().Spec.ServiceAccountName; got != "seller" {
			t.Errorf("pods are of account %q, want seller", got)
		}
	})
	// Whole numbers have 64 bits in objects of any content: https://pkg.go.dev/k8s.io/apimachinery/pkg/util/json.
	// The settings of a WasmPlugin may be anything: https://istio.io/latest/docs/reference/config/proxy_extensions/wasm-plugin/
	t.Run("whole numbers of many digits", func(t *testing.T) {
		m := meshOfText(t, `{apiVersion: extensions.istio.io/v1alpha1, kind: WasmPlugin, metadata: {name: tenants, namespace: shop}, spec: {url: "oci://example/wasm:1", pluginConfig: {tenant: 123456789012345679, most: 9223372036854775807, least: -9223372036854775808, rate: 0.5, whole: 2.0}}}`)
		want := map[string]any{"tenant": int64(123456789012345679), "most": int64(9223372036854775807), "least": int64(-9223372036854775808), "rate": 0.5, "whole": int64(2)}
		spec, _ := m.Objects[0].Object["spec"].(map[string]any)
		if diff := cmp.Diff(want, spec["pluginConfig"]); diff != "" {
			t.Error(diff)
		}
	})
	// kubectl reads YAML with anchors and merged keys, of which an object may replace some, and with numbers of other bases:
	// https://yaml.org/type/merge.html, https://pkg.go.dev/sigs.k8s.io/yaml
	t.Run("anchors, merged keys and numbers of other bases", func(t *testing.T) {
		m := meshOfText(t, `apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop, labels: &all {team: a, app: cart}}
spec: {selector: {<<: *all, team: b}, ports: [{port: 0x50}]}
`)
		s := m.Services[0]
		if diff := cmp.Diff(map[string]string{"team": "b", "app": "cart"}, s.Spec.Selector); diff != "" || s.Spec.Ports[0].Port != 80 {
			t.Errorf("ports %v, selector %s", s.Spec.Ports, diff)
		}
		if got, want := refusal(t, "spec: {a: &a {b: 1}, c: {<<: *a, d: 1, d: 2}}"), `key "d" already set`; !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
