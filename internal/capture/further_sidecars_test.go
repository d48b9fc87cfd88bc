package capture

import (
	"fmt"
	"testing"
)

// Who has a proxy, and which.
func TestWhatIsASidecar(t *testing.T) {
	// A pod of the node's network takes no part in ambient mode (PodRedirectionEnabled of istio.io/istio/cni/pkg/util), also where its owner is
	// not known: https://istio.io/latest/docs/ambient/usage/add-workloads/
	t.Run("of the node's network in ambient mode", func(t *testing.T) {
		m := meshOfText(t, `{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio.io/dataplane-mode: ambient}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: exporter, namespace: shop}, spec: {hostNetwork: true, containers: [{name: exporter}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: shopper, namespace: shop}, spec: {containers: [{name: app}]}}
`)
		expectWorkloads(t, m, "exporter 1 none", "shopper 1 ambient")
	})
	// A template may have a container of the proxy's name, which injection completes:
	// https://istio.io/latest/docs/setup/additional-setup/sidecar-injection/#customizing-injection
	t.Run("whose template sets the proxy's resources", func(t *testing.T) {
		m := meshOfText(t, `{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio-injection: enabled}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: cart, namespace: shop}, spec: {template: {spec: {containers: [{name: istio-proxy, image: auto, resources: {requests: {cpu: 1}}}, {name: app, ports: [{containerPort: 8080}]}]}}}}
`)
		expectWorkloads(t, m, "cart 1 sidecar")
		if c := m.Workloads[0].Spec.Containers; len(c) != 1 || c[0].Name != "app" {
			t.Errorf("containers %v, want the application's", c)
		}
	})
	// An application of gRPC may ask istiod itself, with an agent that has the name of the proxy or with nothing at all:
	// https://istio.io/latest/blog/2021/proxyless-grpc/
	t.Run("of gRPC without a proxy", func(t *testing.T) {
		m := meshOfText(t, `{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio-injection: enabled}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: cart, namespace: shop}, spec: {replicas: 2, template: {metadata: {annotations: {inject.istio.io/templates: grpc-agent}}, spec: {containers: [{name: app}]}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: pay, namespace: shop, annotations: {inject.istio.io/templates: "own, grpc-simple"}}, spec: {containers: [{name: app}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop, annotations: {inject.istio.io/templates: grpc-agent}}, spec: {containers: [{name: app}, {name: istio-proxy, args: [proxy, sidecar], ports: [{name: mesh-metrics, containerPort: 15020}]}]}}
`)
		expectWorkloads(t, m, "cart 2 none", "pay 1 none", "web 1 none")
		if d := m.Differences(); len(d) != 1 || d[0].What != "gRPC without proxies" || d[0].Value != "4 pods" {
			t.Errorf("not reproduced: %v, want 4 pods of gRPC", d)
		}
		if got := m.Workloads[2].Template(); len(got.Spec.Containers) != 1 || got.Labels[injectLabel] != "false" {
			t.Errorf("the replay's pod is %v", got)
		}
	})
	// Pods that were there before their namespace got its label have no sidecar until they start again:
	// https://istio.io/latest/docs/setup/additional-setup/sidecar-injection/#automatic-sidecar-injection
	t.Run("of which some were there before injection", func(t *testing.T) {
		text := `{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio-injection: enabled}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: cart, namespace: shop}, spec: {replicas: 3, template: {metadata: {labels: {app: cart}}, spec: {containers: [{name: app}]}}}}
`
		for i, proxy := range []string{"", ", {name: istio-proxy, args: [proxy, sidecar]}", ""} {
			text += fmt.Sprintf("---\n{apiVersion: v1, kind: Pod, metadata: {name: cart-a-%d, namespace: shop, labels: {app: cart, pod-template-hash: a}, "+
				"ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: cart-a, uid: u, controller: true}]}, spec: {containers: [{name: app}%s]}}\n", i, proxy)
		}
		expectWorkloads(t, meshOfText(t, text), "cart 2 none", "cart-2 1 sidecar")
	})
}
