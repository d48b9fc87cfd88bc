package capture

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// What is given is there, or it is stated why not.
func TestNothingIsLost(t *testing.T) {
	const service = "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: shop}, spec: {ports: [{port: 80}]}}\n---\n"
	// Values of labels and annotations are texts. YAML takes true and 1 for others, which the server refuses; one without a value is empty.
	// https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
	t.Run("labels and annotations that are no texts", func(t *testing.T) {
		for field, object := range map[string]string{
			"Namespace shop: metadata.labels.version 1: want a text":             "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio-injection: enabled, version: 1}}}",
			"Sidecar shop/own: metadata.annotations.checked true: want a text":   "{apiVersion: networking.istio.io/v1, kind: Sidecar, metadata: {name: own, namespace: shop, annotations: {checked: true}}, spec: {}}",
			"Sidecar shop/own: metadata.labels [team]: want names with values":   "{apiVersion: networking.istio.io/v1, kind: Sidecar, metadata: {name: own, namespace: shop, labels: [team]}, spec: {}}",
			"Sidecar shop/own: metadata.annotations a=b: want names with values": "{apiVersion: networking.istio.io/v1, kind: Sidecar, metadata: {name: own, namespace: shop, annotations: a=b}, spec: {}}",
		} {
			if got, want := refusal(t, service+object), "cluster.yaml: document 2: "+field; !strings.HasSuffix(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		m := meshOfText(t, service+"{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio-injection: enabled, team: }}}\n---\n"+
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: cart, namespace: shop}, spec: {template: {spec: {containers: [{name: app}]}}}}")
		expectWorkloads(t, m, "cart 1 sidecar")
		if value, there := m.Namespaces[0].Labels["team"]; !there || value != "" {
			t.Errorf("labels %v, want an empty one of team", m.Namespaces[0].Labels)
		}
	})
	// A pod may have settings of its proxy by annotations, of which some decide what istiod sends:
	// https://istio.io/latest/docs/reference/config/istio.mesh.v1alpha1/#ProxyConfig, https://istio.io/latest/docs/ops/configuration/traffic-management/dns-proxy/
	t.Run("settings of proxies in annotations", func(t *testing.T) {
		const namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio-injection: enabled}}}\n"
		deployment := func(name, annotations, labels string) string {
			return fmt.Sprintf("---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s, namespace: shop}, spec: {replicas: 3, template: {metadata: {annotations: {%s}, labels: {%s}}, spec: {containers: [{name: app}]}}}}\n", name, annotations, labels)
		}
		m := meshOfText(t, namespace+deployment("a", `proxy.istio.io/config: "proxyMetadata: {ISTIO_META_DNS_CAPTURE: 'true'}"`, "")+deployment("b", "sidecar.istio.io/interceptionMode: NONE", "")+
			deployment("c", `proxy.istio.io/config: "{tracing: {lightstep: {address: lightstep.obs:80, accessToken: hunter2}}}"`, "")+deployment("d", `proxy.istio.io/config: "concurrency: 2"`, `sidecar.istio.io/inject: "false"`)+
			deployment("e", `proxy.istio.io/config: "{discoveryAddress: istiod.prod:15012, controlPlaneAuthPolicy: MUTUAL_TLS, proxyMetadata: {ISTIO_META_CLUSTER_ID: prod}}", sidecar.istio.io/interceptionMode: SOME`, ""))
		want := []LeftOut{{"credentials", 1, maskedInPods}, {"settings of proxies", 3, foreignInPods + "discoveryAddress"}, {"settings of proxies", 3, foreignInPods + "proxyMetadata.ISTIO_META_CLUSTER_ID"}}
		if !slices.Equal(m.LeftOut, want) {
			t.Errorf("left out %v, want %v", m.LeftOut, want)
		}
		for i, want := range []map[string]string{
			{proxyConfigKey: "proxyMetadata: {ISTIO_META_DNS_CAPTURE: 'true'}"}, {interceptionKey: "NONE"},
			{proxyConfigKey: "tracing:\n  lightstep:\n    accessToken: (masked)\n    address: lightstep.obs:80\n"}, nil,
			{proxyConfigKey: "controlPlaneAuthPolicy: MUTUAL_TLS\nproxyMetadata: {}\n"},
		} {
			w := m.Workloads[i]
			if !maps.Equal(w.Spec.Annotations, want) {
				t.Errorf("annotations of %s: %q, want %q", w.Name, w.Spec.Annotations, want)
			}
			if redirected := w.Spec.Redirected(); redirected != (i != 1) {
				t.Errorf("connections of %s are redirected: %v", w.Name, redirected)
			}
		}
		checkCounts(t, m)
		if err := m.Anonymize(); err != nil {
			t.Fatal(err)
		}
		hidden := 0
		for _, w := range m.Workloads {
			if text := w.Spec.Annotations[proxyConfigKey]; strings.Contains(text, "accessToken: (masked)") && !strings.Contains(text, "lightstep.obs") {
				hidden++
			}
		}
		if hidden != 1 {
			t.Errorf("%d workloads have a hidden address, want 1", hidden)
		}
	})
	// The events of a watch are no objects: https://kubernetes.io/docs/reference/kubectl/generated/kubectl_get/, --output-watch-events
	t.Run("events of a watch", func(t *testing.T) {
		got := refusal(t, `{"type":"ADDED","object":{"apiVersion":"v1","kind":"Service","metadata":{"name":"a","namespace":"shop"},"spec":{"ports":[{"port":80}]}}}`)
		if !strings.Contains(got, "document 1: want apiVersion and kind") {
			t.Error(got)
		}
	})
	// Whoever creates an object may leave its name to the server, and a file then has several without one:
	// https://kubernetes.io/docs/reference/using-api/api-concepts/#generated-values
	t.Run("pods without a name", func(t *testing.T) {
		const pod = "---\n{apiVersion: v1, kind: Pod, metadata: {generateName: job-, namespace: shop}, spec: {containers: [{name: app}]}}\n"
		m := meshOfText(t, "{apiVersion: v1, kind: Service, metadata: {name: a, namespace: shop}, spec: {ports: [{port: 80}]}}\n"+pod+pod+pod)
		if len(m.Workloads) > 0 || len(m.LeftOut) != 1 || m.LeftOut[0].Count != 3 || m.LeftOut[0].Kind != "pods" {
			t.Errorf("workloads %v, left out %v: want 3 pods", m.Workloads, m.LeftOut)
		}
		checkCounts(t, m)
	})
}
