package capture

import (
	"fmt"
	"strings"
	"testing"
)

// What capture writes of awkward objects, a rollout reads: meshOfText reads it again.
func TestWrittenIsRead(t *testing.T) {
	// A template whose values are empty prints an empty list or text for the specification, which the server refuses:
	// https://helm.sh/docs/chart_template_guide/yaml_techniques/
	t.Run("a specification that is no object", func(t *testing.T) {
		m := meshOfText(t, `{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop}, spec: {ports: [{port: 80}]}}
---
{apiVersion: networking.istio.io/v1, kind: Sidecar, metadata: {name: list, namespace: shop}, spec: []}
---
{apiVersion: networking.istio.io/v1, kind: Sidecar, metadata: {name: text, namespace: shop}, spec: ""}
`)
		if len(m.Objects) > 0 || len(m.LeftOut) != 2 || !strings.HasPrefix(m.LeftOut[0].Reason, refused) {
			t.Errorf("objects %v, left out %v", m.Objects, m.LeftOut)
		}
		checkCounts(t, m)
	})
	// The pods that a node makes of files have the node for their owner, and its name may have dots:
	// https://kubernetes.io/docs/tasks/configure-pod-container/static-pod/
	t.Run("pods of a node whose name has dots", func(t *testing.T) {
		var text strings.Builder
		for _, name := range []string{"etcd", "kube-apiserver"} {
			fmt.Fprintf(&text, "---\n{apiVersion: v1, kind: Pod, metadata: {name: %[1]s-ip-10-0-1-2.ec2.internal, namespace: kube-system, labels: {component: %[1]s}, "+
				"ownerReferences: [{apiVersion: v1, kind: Node, name: ip-10-0-1-2.ec2.internal, uid: u, controller: true}]}, spec: {hostNetwork: true, containers: [{name: %[1]s}]}}\n", name)
		}
		expectWorkloads(t, meshOfText(t, text.String()), "ip-10-0-1-2.ec2.internal 1 none", "ip-10-0-1-2.ec2.internal-2 1 none")
	})
	// Objects that are in no namespace are the same whatever namespace a manifest gives them, and in each version that is served:
	// https://kubernetes.io/docs/reference/using-api/api-concepts/
	t.Run("objects of the cluster with a namespace, and of two versions", func(t *testing.T) {
		m := meshOfText(t, `{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: edge}, spec: {controllerName: example.com/edge}}
---
{apiVersion: gateway.networking.k8s.io/v1beta1, kind: GatewayClass, metadata: {name: edge, namespace: shop}, spec: {controllerName: example.com/edge}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop, namespace: shop}}
---
{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop}, spec: {ports: [{port: 80}]}}
`)
		if len(m.Objects) != 1 || len(m.Namespaces) != 1 || len(m.LeftOut) != 2 || m.LeftOut[0].Reason != givenTwice || m.LeftOut[1].Reason != givenTwice {
			t.Errorf("objects %v, namespaces %v, left out %v", m.Objects, m.Namespaces, m.LeftOut)
		}
		checkCounts(t, m)
	})
}
