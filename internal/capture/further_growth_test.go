package capture

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A mesh of many copies is one that a cluster can have, and each copy is like the mesh.
func TestCopiesAreAlike(t *testing.T) {
	// What a cluster has once for each Service is not copied: fixed addresses and ports of nodes, that of health checks as well.
	// https://kubernetes.io/docs/tasks/access-application-cluster/create-external-load-balancer/#preserving-the-client-source-ip
	t.Run("fixed addresses and ports", func(t *testing.T) {
		m := meshOfText(t, `{apiVersion: v1, kind: Service, metadata: {name: edge, namespace: shop, finalizers: [service.kubernetes.io/load-balancer-cleanup]}, spec: {type: LoadBalancer, loadBalancerClass: example.com/internal, loadBalancerIP: 192.0.2.9,
  externalTrafficPolicy: Local, healthCheckNodePort: 30999, clusterIP: 10.96.7.7, sessionAffinity: ClientIP, sessionAffinityConfig: {clientIP: {timeoutSeconds: 60}}, ports: [{port: 443, nodePort: 30443}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: node, namespace: shop}, spec: {type: NodePort, clusterIP: 10.96.7.8, ports: [{port: 80, nodePort: 30080}]}}
`)
		hundred, err := m.Times(100)
		if err != nil {
			t.Fatal(err)
		}
		readAgain(t, hundred)
		for _, s := range hundred.Services {
			if s.Spec.Ports[0].NodePort+s.Spec.HealthCheckNodePort != 0 || s.Spec.ClusterIP+s.Spec.LoadBalancerIP != "" || s.Spec.LoadBalancerClass != nil || s.Finalizers != nil {
				t.Fatalf("%s/%s: %v", s.Namespace, s.Name, s.Spec)
			}
		}
		if len(hundred.Services) != 200 {
			t.Errorf("%d services, want 200", len(hundred.Services))
		}
	})
	// A copy names its own namespace alone, wherever policies, routes and scopes do:
	// https://istio.io/latest/docs/reference/config/security/conditions/, https://istio.io/latest/docs/reference/config/networking/sidecar/
	t.Run("identities, namespaces and hosts", func(t *testing.T) {
		m := meshOfText(t, `{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
{apiVersion: v1, kind: Service, metadata: {name: cart, namespace: shop}, spec: {selector: {app: cart}, ports: [{port: 80}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: cart, namespace: shop}, spec: {template: {metadata: {labels: {app: cart}}, spec: {containers: [{name: app}]}}}}
---
{apiVersion: security.istio.io/v1, kind: AuthorizationPolicy, metadata: {name: own, namespace: shop}, spec: {rules: [{from: [{source: {namespaces: [shop], notPrincipals: ["*/ns/shop/sa/a"]}}], when: [{key: source.principal, values: [cluster.local/ns/shop/sa/b]}]}]}}
---
{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: cart, namespace: shop}, spec: {hosts: [cart.shop.svc.cluster.local, cart], http: [{route: [{destination: {host: cart.shop}}], mirror: {host: cart.shop.svc.cluster.local}}]}}
---
{apiVersion: networking.istio.io/v1, kind: Sidecar, metadata: {name: own, namespace: shop}, spec: {egress: [{hosts: ["shop/*", "./*", "*/cart.shop.svc.cluster.local", "*/cart.shop.svc"]}]}}
---
{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: own, namespace: shop}, spec: {host: cart.shop.svc, exportTo: [shop]}}
`)
		twice, err := m.Times(2)
		if err != nil {
			t.Fatal(err)
		}
		if found, of := twice.Dangling(), m.Dangling(); len(found) != 2*len(of) { // istiod knows no host cart.shop
			t.Errorf("dangling: %v, and %v of the mesh", found, of)
		}
		named := func(text, namespace string) bool {
			return slices.ContainsFunc([]string{`"` + namespace + `"`, `"` + namespace + `/`, "/" + namespace + "/", "." + namespace + ".", "." + namespace + `"`}, func(part string) bool { return strings.Contains(text, part) })
		}
		for _, o := range twice.Objects {
			text, err := o.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			for _, namespace := range []string{"shop", "shop-2"} {
				if got := named(string(text), namespace); got != (namespace == o.GetNamespace()) {
					t.Errorf("%s of %s names %s: %v: %s", o.GetKind(), o.GetNamespace(), namespace, got, text)
				}
			}
		}
	})
	// A Gateway selects pods of all namespaces: https://istio.io/latest/docs/reference/config/networking/gateway/. Where each copy has gateways of
	// its own, these are configured by its Gateways. The gateways of the root namespace, which are not copied, are configured by those of all copies.
	t.Run("gateways", func(t *testing.T) {
		m := meshOfText(t, `{apiVersion: v1, kind: Namespace, metadata: {name: edge}}
---
{apiVersion: v1, kind: Pod, metadata: {name: own, namespace: edge, labels: {app: gate, istio: gate}}, spec: {containers: [{name: istio-proxy, args: [proxy, router]}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: own, namespace: edge}, spec: {selector: {istio: gate}, ports: [{port: 80}]}}
---
{apiVersion: networking.istio.io/v1, kind: Gateway, metadata: {name: own, namespace: shop}, spec: {selector: {istio: gate}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["shop.example.com"]}]}}
---
{apiVersion: networking.istio.io/v1, kind: EnvoyFilter, metadata: {name: own, namespace: edge}, spec: {workloadSelector: {labels: {istio: gate}}}}
---
{apiVersion: v1, kind: Pod, metadata: {name: all, namespace: istio-system, labels: {istio: ingressgateway}}, spec: {containers: [{name: istio-proxy, args: [proxy, router]}]}}
---
{apiVersion: networking.istio.io/v1, kind: Gateway, metadata: {name: all, namespace: shop}, spec: {selector: {istio: ingressgateway}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ["all.example.com"]}]}}
`)
		three, err := m.Times(3)
		if err != nil {
			t.Fatal(err)
		}
		readAgain(t, three)
		if found := three.Dangling(); len(found) > 0 || three.Endpoints() != 3 {
			t.Errorf("dangling %v, %d endpoints, want 3", found, three.Endpoints())
		}
		gateways := 0
		for _, o := range three.Objects {
			path := []string{"spec", "selector"}
			if o.GetKind() == "EnvoyFilter" {
				path = []string{"spec", "workloadSelector", "labels"}
			}
			selector, _, _ := unstructured.NestedStringMap(o.Object, path...)
			var selected []string
			for _, w := range three.Workloads {
				if selects(selector, w.Spec.Labels) && (o.GetKind() == "Gateway" || w.Namespace == o.GetNamespace()) {
					selected = append(selected, w.Namespace)
				}
			}
			gateways++
			want := strings.Replace(o.GetNamespace(), "shop", "edge", 1)
			if o.GetName() == "all" {
				want = "istio-system"
			}
			if !slices.Equal(selected, []string{want}) {
				t.Errorf("%s %s/%s selects pods in %v, want those in %s", o.GetKind(), o.GetNamespace(), o.GetName(), selected, want)
			}
		}
		if gateways != 9 {
			t.Errorf("%d objects, want 9", gateways)
		}
	})
}

// selects reports whether labels have all of a selector.
func selects(selector, labels map[string]string) bool {
	for name, value := range selector {
		if labels[name] != value {
			return false
		}
	}
	return true
}
