package capture

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Pods of a template get the sidecars that the source's webhooks and istiod give them. The rules are those of
// https://istio.io/latest/docs/setup/additional-setup/sidecar-injection/#controlling-the-injection-policy: a label that refuses
// counts, of the namespace and of the pod, and the namespace's before the pod's revision.
func TestWhoIsInjected(t *testing.T) {
	pod := func(namespace, labels, annotations, spec string) string {
		return fmt.Sprintf("{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: %s}, spec: {template: {metadata: {labels: {%s}, annotations: {%s}}, spec: {%scontainers: [{name: app}]}}}}", namespace, labels, annotations, spec)
	}
	namespace := func(name, labels string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s, labels: {%s}}}\n---\n", name, labels)
	}
	const enabled, disabled, revised = "istio-injection: enabled", "istio-injection: disabled", "istio.io/rev: stable"
	for _, c := range []struct {
		name, namespace, labels, annotations, spec string
		want                                       Proxy
	}{
		{"refused by the namespace, wanted by the pod", disabled, `sidecar.istio.io/inject: "true"`, "", "", NoProxy},
		{"refused by the namespace, of a revision", disabled, "istio.io/rev: canary", "", "", NoProxy},
		{"refused by the namespace that has a revision", disabled + ", " + revised, "", "", "", NoProxy},
		{"wanted by the namespace, refused by the pod", enabled, `sidecar.istio.io/inject: "false"`, "", "", NoProxy},
		{"of the namespace's revision, refused by the pod that has one", revised, `istio.io/rev: canary, sidecar.istio.io/inject: "false"`, "", "", NoProxy},
		{"refused by the older annotation", enabled, "", `sidecar.istio.io/inject: "false"`, "", NoProxy},
		{"wanted by the label, refused by the older annotation", enabled, `sidecar.istio.io/inject: "true"`, `sidecar.istio.io/inject: "false"`, "", Sidecar},
		{"wanted by the older annotation alone", "", "", `sidecar.istio.io/inject: "true"`, "", NoProxy},
		{"wanted by the pod alone", "", `sidecar.istio.io/inject: "true"`, "", "", Sidecar},
		{"of a revision by the pod alone", "", "istio.io/rev: canary", "", "", Sidecar},
		{"neither wanted nor refused", enabled, `sidecar.istio.io/inject: "yes"`, "", "", Sidecar},
		{"of the node's network", enabled, `sidecar.istio.io/inject: "true"`, "", "hostNetwork: true, ", NoProxy},
		{"of two templates with a space between", enabled, "", `inject.istio.io/templates: "own, gateway"`, "", Gateway},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := meshOfText(t, namespace("shop", c.namespace)+pod("shop", c.labels, c.annotations, c.spec))
			if got := m.Workloads[0].Spec.Proxy; got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	// The cluster's own namespaces are never injected, though somebody labelled all: https://istio.io/latest/docs/ops/common-problems/injection/
	for _, name := range []string{"kube-system", "kube-public", "kube-node-lease", "local-path-storage"} {
		expectWorkloads(t, meshOfText(t, namespace(name, enabled)+pod(name, "", "", "")), "a 1 none")
	}
	// Where the installation says so, pods without a label in namespaces without one are injected: https://istio.io/latest/docs/reference/config/analysis/ist0148/
	const byDefault = `{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: istio-sidecar-injector, labels: {app: sidecar-injector}},
  webhooks: [{name: rev.namespace.sidecar-injector.istio.io}, {name: auto.sidecar-injector.istio.io}]}
---
`
	for _, c := range []struct {
		name, namespace, labels string
		want                    Proxy
	}{
		{"shop", "", "", Sidecar},
		{"shop", disabled, "", NoProxy},
		{"shop", "", `sidecar.istio.io/inject: "false"`, NoProxy},
		{"kube-system", "", "", NoProxy},
	} {
		m := meshOfText(t, byDefault+namespace(c.name, c.namespace)+pod(c.name, c.labels, "", ""))
		if got := m.Workloads[0].Spec.Proxy; got != c.want {
			t.Errorf("by default, in %s with %q and %q: got %s, want %s", c.name, c.namespace, c.labels, got, c.want)
		}
	}
}

// A pod's label names its revision where its namespace has no label of injection:
// https://istio.io/latest/docs/setup/additional-setup/sidecar-injection/#controlling-the-injection-policy
func TestWhoseRevisionCounts(t *testing.T) {
	for namespace, want := range map[string][]string{
		"":                         {"canary: [] [shop/a]", "default: [] []", "stable: [] []"},
		"istio.io/rev: stable":     {"canary: [] []", "default: [] []", "stable: [shop] []"},
		"istio-injection: enabled": {"canary: [] []", "default: [shop] []", "stable: [] []"},
	} {
		text := fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {%s}}}\n---\n", namespace) +
			"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: shop}, spec: {template: {metadata: {labels: {istio.io/rev: canary}}, spec: {containers: [{name: app}]}}}}"
		for _, name := range []string{"default", "stable", "canary"} {
			text += fmt.Sprintf("\n---\n{apiVersion: apps/v1, kind: Deployment, metadata: {name: istiod-%[1]s, namespace: istio-system, labels: {app: istiod, istio.io/rev: %[1]s}}, spec: {template: {spec: {containers: [{name: discovery}]}}}}", name)
		}
		m := meshOfText(t, text)
		var got []string
		for _, r := range m.ControlPlane.Revisions {
			got = append(got, fmt.Sprint(r.Name, ": ", r.Namespaces, " ", r.Workloads))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in a namespace with %q: %s", namespace, diff)
		}
	}
}
