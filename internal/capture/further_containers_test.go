package capture

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each container keeps its own ports: also one that another webhook than Istio's added.
func TestContainersOfOthers(t *testing.T) {
	// Ports of one number may differ in their protocol, and a Service may lead to both:
	// https://kubernetes.io/docs/concepts/services-networking/service/#multi-port-services
	t.Run("ports of one number", func(t *testing.T) {
		m := meshOfText(t, `{apiVersion: v1, kind: Service, metadata: {name: dns, namespace: shop}, spec: {selector: {app: dns}, ports: [{name: dns, port: 53, protocol: UDP, targetPort: dns}, {name: dns-tcp, port: 53, targetPort: dns-tcp}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: dns, namespace: shop}, spec: {replicas: 2, template: {metadata: {labels: {app: dns}}, spec: {containers: [
  {name: dns, ports: [{name: dns, containerPort: 5353, protocol: UDP}, {containerPort: 5353}]}, {name: cache, ports: [{name: dns-tcp, containerPort: 5353}, {containerPort: 5353, protocol: SCTP}]}]}}}}
`)
		if m.Endpoints() != 4 || len(m.Workloads[0].Template().Spec.Containers[1].Ports) != 2 {
			t.Errorf("%d endpoints of %v", m.Endpoints(), m.Workloads)
		}
	})
	// Pods that differ in a container of kubectl debug are alike. Containers that stay beside the application have ports, and the proxy may be one:
	// https://kubernetes.io/docs/concepts/workloads/pods/ephemeral-containers/, https://istio.io/latest/blog/2023/native-sidecars/
	t.Run("of a debugger, and beside the application", func(t *testing.T) {
		const pod = `{apiVersion: v1, kind: Pod, metadata: {name: cart-%d, namespace: shop, labels: {app: cart}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: cart, uid: u, controller: true}]},
  spec: {initContainers: [{name: istio-init}, {name: istio-proxy, restartPolicy: Always, args: [proxy, sidecar], ports: [{name: http-envoy-prom, containerPort: 15090}]}, {name: sql, restartPolicy: Always, ports: [{name: sql, containerPort: 5432}]}],
    containers: [{name: app}]%s}}
---
`
		m := meshOfText(t, fmt.Sprintf(pod, 1, "")+fmt.Sprintf(pod, 2, ", ephemeralContainers: [{name: debugger}]"))
		expectWorkloads(t, m, "cart 2 sidecar")
		want := []Container{{Name: "app"}, {Name: "sql", Ports: []Port{{Name: "sql", Port: 5432}}}}
		if diff := cmp.Diff(want, m.Workloads[0].Spec.Containers); diff != "" {
			t.Error(diff)
		}
	})
	// Webhooks of others add containers that no template has, as Dapr's does, and a Service may lead to their ports by name:
	// https://docs.dapr.io/concepts/dapr-services/sidecar/. What Istio's injection added is written on the pod.
	t.Run("of another webhook", func(t *testing.T) {
		text := `{apiVersion: v1, kind: Service, metadata: {name: cart-dapr, namespace: shop}, spec: {selector: {app: cart}, ports: [{name: dapr-http, port: 80, targetPort: dapr-http}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: cart, namespace: shop}, spec: {replicas: 2, template: {metadata: {labels: {app: cart}}, spec: {containers: [{name: app, ports: [{containerPort: 8080}]}]}}}}
`
		for i := range 2 {
			text += fmt.Sprintf(`---
{apiVersion: v1, kind: Pod, metadata: {name: cart-a-%d, namespace: shop, labels: {app: cart, pod-template-hash: a}, annotations: {sidecar.istio.io/status: '{"initContainers":["istio-init"],"containers":["istio-proxy","agent"]}'},
    ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: cart-a, uid: u, controller: true}]},
  spec: {containers: [{name: app, ports: [{containerPort: 8080}]}, {name: daprd, ports: [{name: dapr-http, containerPort: 3500}]}, {name: istio-proxy, args: [proxy, sidecar]}, {name: agent, ports: [{name: agent, containerPort: 9}]}]}}
`, i)
		}
		m := meshOfText(t, text)
		expectWorkloads(t, m, "cart 2 sidecar")
		if m.Endpoints() != 2 {
			t.Errorf("%d endpoints, want 2", m.Endpoints())
		}
		want := []Container{{Name: "app", Ports: []Port{{Port: 8080}}}, {Name: "daprd", Ports: []Port{{Name: "dapr-http", Port: 3500}}}}
		if diff := cmp.Diff(want, m.Workloads[0].Spec.Containers); diff != "" {
			t.Error(diff)
		}
	})
}
