package capture

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// meshOf returns the mesh of files below testdata/cases.
func meshOf(t *testing.T, files ...string) Mesh {
	t.Helper()
	for i := range files {
		files[i] = filepath.Join("testdata", "cases", files[i])
	}
	m, err := FromFiles(t.Context(), files...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// readAgain returns a mesh as a rollout reads it from its file. It has to be the same.
func readAgain(t *testing.T, m Mesh) Mesh {
	t.Helper()
	again := read(t, written(t, m))
	if diff := cmp.Diff(m, again, cmpopts.IgnoreUnexported(Mesh{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("read is not what was written:\n%s", diff)
	}
	return again
}

// Three kinds of one name are three workloads, whose Deployments have names of their own.
func TestKindsOfOneName(t *testing.T) {
	m := readAgain(t, meshOf(t, "unreadable/cluster.yaml"))
	var names []string
	for _, w := range m.Workloads {
		names = append(names, w.Name+" "+w.Spec.Owner)
	}
	want := []string{"collector Deployment", "collector-daemonset DaemonSet", "collector-statefulset StatefulSet"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// A policy without specification says something: it denies everything.
func TestPolicyWithoutSpecification(t *testing.T) {
	m := readAgain(t, meshOf(t, "unreadable/base.yaml", "unreadable/no-spec.yaml"))
	if len(m.Objects) != 1 || m.Objects[0].GetName() != "allow-nothing" {
		t.Errorf("objects %v, want the policy", m.Objects)
	}
}

// endpoints returns the endpoints of each service, by namespace/name.
func endpoints(m Mesh) map[string]int {
	all := map[string]int{}
	for _, s := range m.Services {
		all[s.Namespace+"/"+s.Name] = 0
	}
	m.eachSelected(func(s *corev1.Service, w *Workload) {
		for _, p := range s.Spec.Ports {
			if Target(p, w) > 0 {
				all[s.Namespace+"/"+s.Name] += w.Spec.Replicas
			}
		}
	})
	return all
}

// Containers are kept apart: two may have ports of one name, and the first one's counts.
func TestPortsOfOneName(t *testing.T) {
	m := readAgain(t, meshOf(t, "port-names/duplicate.yaml"))
	cart := m.Workloads[0]
	want := []Container{
		{Name: "main", Ports: []Port{{Name: "http", Port: 8080}, {Name: "metrics", Port: 9102}}},
		{Name: "nginx", Ports: []Port{{Name: "http", Port: 8443}, {Name: "metrics", Port: 9113}}},
	}
	if diff := cmp.Diff(want, cart.Spec.Containers); diff != "" {
		t.Error(diff)
	}
	if target := Target(m.Services[0].Spec.Ports[0], &cart); target != 8080 {
		t.Errorf("the service leads to port %d, want that of the first container, 8080", target)
	}
	made := cart.Template().Spec.Containers
	if len(made) != 2 || made[0].Name != "main" || made[1].Name != "nginx" || made[0].Ports[0].ContainerPort != 8080 || made[1].Ports[0].ContainerPort != 8443 {
		t.Errorf("the replay's containers are %v", made)
	}
}

// Ztunnels and waypoints are no sidecars, and pods in ambient mode have none.
func TestAmbient(t *testing.T) {
	m := readAgain(t, meshOf(t, "ambient/cluster.yaml"))
	want := map[Proxy]int{Ambient: 3, Ztunnel: 40, Waypoint: 1}
	if diff := cmp.Diff(want, m.Pods()); diff != "" {
		t.Error(diff)
	}
	if sidecars, _ := m.Members(); sidecars != 0 {
		t.Errorf("%d sidecars, want none", sidecars)
	}
	var summary bytes.Buffer
	if err := m.Summary(&summary); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"pods with sidecars    0 ", "pods in ambient mode  3 ", "ztunnels              40 ", "waypoints             1 "} {
		if !strings.Contains(summary.String(), line) {
			t.Errorf("the summary has no line %q:\n%s", line, &summary)
		}
	}
}

// In a replay whose nodes have proxies, pods in ambient mode are members, and the mesh's own ztunnels and the settings for them are not there.
func TestByNode(t *testing.T) {
	m := meshOf(t, "ambient/cluster.yaml")
	config := map[string]any{"defaultConfig": map[string]any{"proxyMetadata": map[string]any{takesHBONE: "true", "A": "b"}}}
	m.ControlPlane = &ControlPlane{Revisions: []Revision{{Name: "default", Env: []Variable{{Name: servesZtunnels, Value: "true"}, {Name: "X", Value: "y"}}, MeshConfig: config}}}
	by, without := m.ByNode(false)
	if without != nil {
		t.Errorf("without %v", without)
	}
	if members, outside := by.Members(); members != 3 || outside != 1 {
		t.Errorf("%d members and %d others, want the 3 pods in ambient mode and the waypoint", members, outside)
	}
	if members, outside := m.Members(); members != 0 || outside != 44 {
		t.Errorf("the mesh itself has become one of %d members and %d others", members, outside)
	}
	for _, s := range by.Topology().Services {
		if s.ByNode != (s.Name == "cart") || s.Outside == s.ByNode {
			t.Errorf("%s: by its node %v, outside %v", s.Name, s.ByNode, s.Outside)
		}
	}
	for _, w := range by.Workloads {
		if got := w.Template().Annotations[redirection]; (got == "enabled") != (w.Name == "cart") {
			t.Errorf("pods of %s have %s %q", w.Name, redirection, got)
		}
	}
	r := by.ControlPlane.Revisions[0]
	if env, not := r.Settings(); len(not) > 0 || len(env) != 1 || env[0] != "X=y" {
		t.Errorf("settings %v, not reproduced %v", env, not)
	}
	if _, not := r.Configuration("istiod"); len(not) > 0 {
		t.Errorf("of the mesh configuration is not reproduced: %v", not)
	}
	if _, not := m.ControlPlane.Revisions[0].Configuration("istiod"); len(not) != 1 || config["defaultConfig"].(map[string]any)["proxyMetadata"].(map[string]any)[takesHBONE] != "true" {
		t.Errorf("of the mesh itself is not reproduced: %v, and its configuration is %v", not, config)
	}
}

// Sidecars of such a replay take HBONE. Where the captured ones do not, that is a difference.
func TestWithoutHBONE(t *testing.T) {
	config := func(value string) map[string]any {
		return map[string]any{"defaultConfig": map[string]any{"proxyMetadata": map[string]any{takesHBONE: value}}}
	}
	for name, test := range map[string]struct {
		proxy  Proxy
		config map[string]any
		want   int
	}{
		"nothing is known":      {Sidecar, nil, 0},
		"they do":               {Sidecar, config("true"), 0},
		"they do not":           {Sidecar, config("false"), 1},
		"a gateway, not stated": {Gateway, map[string]any{}, 1},
		"there are no sidecars": {Ambient, map[string]any{}, 0},
	} {
		m := Mesh{Workloads: []Workload{{Spec: WorkloadSpec{Proxy: test.proxy, Replicas: 1}}}}
		m.ControlPlane = &ControlPlane{Revisions: []Revision{{Name: "default", MeshConfig: test.config}}}
		if got := m.withoutHBONE(); len(got) != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Who takes part in ambient mode is said by labels of namespaces and pods, and by what the node's agent wrote.
func TestWhoIsAmbient(t *testing.T) {
	const ambient, injected = "istio.io/dataplane-mode: ambient", "istio-injection: enabled"
	sidecar := "spec: {containers: [{name: app}, {name: istio-proxy, args: [proxy, sidecar]}]}"
	native := "spec: {initContainers: [{name: istio-proxy, restartPolicy: Always, args: [proxy, sidecar]}], containers: [{name: app}]}"
	for _, c := range []struct {
		name, namespace, pod, spec string
		want                       Proxy
	}{
		{"of an ambient namespace", ambient, "", "spec: {containers: [{name: app}]}", Ambient},
		{"that left it", ambient, "labels: {istio.io/dataplane-mode: none}", "spec: {containers: [{name: app}]}", NoProxy},
		{"of another namespace", "", "labels: {istio.io/dataplane-mode: ambient}", "spec: {containers: [{name: app}]}", Ambient},
		{"that is redirected", "", "annotations: {ambient.istio.io/redirection: enabled}", "spec: {containers: [{name: app}]}", Ambient},
		{"with a sidecar", ambient, "", sidecar, Sidecar},
		{"with a native sidecar", injected, "", native, Sidecar},
		{"that was there before injection", injected, "", "spec: {containers: [{name: app}]}", NoProxy},
		{"a waypoint by its class", "", "labels: {gateway.networking.k8s.io/gateway-class-name: istio-waypoint}", "spec: {containers: [{name: istio-proxy}]}", Waypoint},
		{"a gateway", "", "", "spec: {containers: [{name: istio-proxy, args: [proxy, router, --domain, x]}]}", Gateway},
		{"a gateway by two templates", "", `annotations: {inject.istio.io/templates: "gateway,own"}`, "spec: {containers: [{name: istio-proxy}]}", Gateway},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := meshOfText(t, fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {%s}}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: shop, %s}\n%s\n", c.namespace, c.pod, c.spec))
			if got := m.Workloads[0].Spec.Proxy; got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// meshOfText returns the mesh of one file.
func meshOfText(t *testing.T, text string) Mesh {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := FromFiles(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return readAgain(t, m)
}

// Pods of one owner that services tell apart are workloads of their own.
func TestPodsThatDiffer(t *testing.T) {
	for _, c := range []struct {
		file      string
		workloads []string
		endpoints map[string]int
	}{
		{"per-pod-labels/statefulset.yaml", []string{"broker-0 1", "broker-1 1", "broker-2 1"},
			map[string]int{"data/broker": 3, "data/broker-0": 1, "data/broker-1": 1, "data/broker-2": 1}},
		{"per-pod-labels/operator.yaml", []string{"pg 2", "pg-2 1"}, map[string]int{"data/pg-rw": 1, "data/pg-ro": 2, "data/pg-r": 3}},
	} {
		t.Run(c.file, func(t *testing.T) {
			m := readAgain(t, meshOf(t, c.file))
			var names []string
			for _, w := range m.Workloads {
				names = append(names, fmt.Sprint(w.Name, " ", w.Spec.Replicas))
			}
			if diff := cmp.Diff(c.workloads, names); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(c.endpoints, endpoints(m)); diff != "" {
				t.Error(diff)
			}
			if found := m.Dangling(); len(found) > 0 {
				t.Errorf("refers to nothing: %v", found)
			}
			if err := m.Anonymize(); err != nil {
				t.Fatal(err)
			}
			if found := m.Dangling(); len(found) > 0 {
				t.Errorf("without names, refers to nothing: %v", found)
			}
		})
	}
}

// A StatefulSet whose pods were not given has the pods that Kubernetes makes of it.
func TestPodsOfStatefulSet(t *testing.T) {
	m := meshOfText(t, `apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: data}
spec: {replicas: 3, ordinals: {start: 5}, template: {metadata: {labels: {app: db}}, spec: {containers: [{name: db, ports: [{containerPort: 5432}]}]}}}
---
apiVersion: v1
kind: Service
metadata: {name: last, namespace: data}
spec: {selector: {statefulset.kubernetes.io/pod-name: db-7}, ports: [{port: 5432}]}
---
apiVersion: v1
kind: Pod
metadata: {name: db-6, namespace: data, labels: {app: db, statefulset.kubernetes.io/pod-name: db-6, apps.kubernetes.io/pod-index: "6"}, ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: u, controller: true}]}
spec: {containers: [{name: db, ports: [{containerPort: 5432}]}]}
`)
	if len(m.Workloads) != 3 || m.Workloads[0].Name != "db-5" || m.Workloads[2].Name != "db-7" || m.Endpoints() != 1 || len(m.Dangling()) > 0 {
		t.Errorf("workloads %v, %d endpoints, dangling %v", m.Workloads, m.Endpoints(), m.Dangling())
	}
}

// Pods that differ only in what nobody asks for are one workload.
func TestPodsThatAreAlike(t *testing.T) {
	var text strings.Builder
	text.WriteString("apiVersion: v1\nkind: Service\nmetadata: {name: executors, namespace: spark}\nspec: {selector: {spark-role: executor}, ports: [{port: 7078}]}\n")
	for i := range 50 {
		fmt.Fprintf(&text, `---
apiVersion: v1
kind: Pod
metadata: {name: exec-%[1]d, namespace: spark, labels: {spark-role: executor, spark-exec-id: "%[1]d"}, ownerReferences: [{apiVersion: v1, kind: Pod, name: driver, uid: u, controller: true}]}
spec: {containers: [{name: executor}]}
`, i)
	}
	m := meshOfText(t, text.String())
	if len(m.Workloads) != 1 || m.Workloads[0].Spec.Replicas != 50 || m.Endpoints() != 50 || m.Workloads[0].Spec.Labels["spark-exec-id"] != "" {
		t.Errorf("%d workloads, %d endpoints, want one of 50 pods without the label of each: %v", len(m.Workloads), m.Endpoints(), m.Workloads)
	}
}

// During a canary some pods of a Rollout have another hash, which a service selects.
func TestPodsOfCanary(t *testing.T) {
	text := "apiVersion: v1\nkind: Service\nmetadata: {name: canary, namespace: shop}\nspec: {selector: {app: cart, rollouts-pod-template-hash: b}, ports: [{port: 80}]}\n"
	for i, hash := range []string{"a", "a", "a", "b"} {
		text += fmt.Sprintf("---\napiVersion: v1\nkind: Pod\nmetadata: {name: cart-%[2]s-%[1]d, namespace: shop, labels: {app: cart, rollouts-pod-template-hash: %[2]s}, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: cart-%[2]s, uid: u, controller: true}]}\nspec: {containers: [{name: app}]}\n", i, hash)
	}
	m := meshOfText(t, text)
	if m.Endpoints() != 1 || len(m.Workloads) != 2 || len(m.Dangling()) > 0 {
		t.Errorf("%d endpoints of %d workloads, want 1 of 2; dangling %v", m.Endpoints(), len(m.Workloads), m.Dangling())
	}
}

// A hundred copies of Services of type LoadBalancer need no node ports, of which a cluster has fewer.
func TestManyPorts(t *testing.T) {
	m := meshOf(t, "scale/nodeports.yaml")
	hundred, err := m.Times(100)
	if err != nil {
		t.Fatal(err)
	}
	ports := 0
	for _, o := range hundred.Surroundings(nil) {
		if o.GetKind() != "Service" {
			continue
		}
		if allocate, there, _ := unstructured.NestedBool(o.Object, "spec", "allocateLoadBalancerNodePorts"); allocate || !there {
			t.Fatalf("%s/%s gets node ports", o.GetNamespace(), o.GetName())
		}
		of, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports")
		ports += len(of)
	}
	if sidecars, _ := hundred.Members(); ports != 3000 || sidecars != 1 {
		t.Errorf("%d ports and %d proxies, want 3000 and 1", ports, sidecars)
	}
	readAgain(t, hundred)
	for i := range m.Services {
		m.Services[i].Spec.Type = corev1.ServiceTypeNodePort
		for port := range int32(1000) {
			m.Services[i].Spec.Ports = append(m.Services[i].Spec.Ports, corev1.ServicePort{Name: fmt.Sprintf("p-%d", port), Port: 10_000 + port})
		}
	}
	if _, err := m.Times(100); err == nil || !strings.Contains(err.Error(), "the mesh has 303000 ports of services of type NodePort: want 65535 at most") {
		t.Errorf("with ports of nodes: %v", err)
	}
}

// A Service's named port may be one of a container that starts before the others and stays; one that ends has none,
// and those of the first container that has the name count, of its protocol.
func TestWhosePortCounts(t *testing.T) {
	for _, c := range []struct {
		name, spec string
		want       int32
	}{
		{"the second container's", "containers: [{name: a, ports: [{name: other, containerPort: 1}]}, {name: b, ports: [{name: web, containerPort: 2}]}]", 2},
		{"of both, the first one's", "containers: [{name: a, ports: [{name: web, containerPort: 1}]}, {name: b, ports: [{name: web, containerPort: 2}]}]", 1},
		{"of the protocol", "containers: [{name: a, ports: [{name: web, containerPort: 1, protocol: UDP}]}, {name: b, ports: [{name: web, containerPort: 2}]}]", 2},
		{"of one that stays", "initContainers: [{name: a, restartPolicy: Always, ports: [{name: web, containerPort: 1}]}], containers: [{name: b}]", 1},
		{"after all others", "initContainers: [{name: a, restartPolicy: Always, ports: [{name: web, containerPort: 1}]}], containers: [{name: b, ports: [{name: web, containerPort: 2}]}]", 2},
		{"of one that ends", "initContainers: [{name: a, ports: [{name: web, containerPort: 1}]}], containers: [{name: b}]", 0},
		{"nobody's", "containers: [{name: a}]", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := meshOfText(t, "apiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: shop}\nspec: {selector: {app: a}, ports: [{port: 80, targetPort: web}]}\n---\n"+
				"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a, namespace: shop}\nspec: {template: {metadata: {labels: {app: a}}, spec: {"+c.spec+"}}}\n")
			if got := Target(m.Services[0].Spec.Ports[0], &m.Workloads[0]); got != c.want {
				t.Errorf("got port %d, want %d", got, c.want)
			}
		})
	}
}

// What no cluster would have is left out with the reason, and the rest is captured.
func TestWhatAClusterWouldRefuse(t *testing.T) {
	m := meshOfText(t, `apiVersion: v1
kind: Service
metadata: {name: Not_A_Name, namespace: shop}
spec: {ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: good, namespace: shop}
spec: {ports: [{port: 80}]}
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: s, namespace: shop, labels: {"a b": c}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: twice, namespace: shop}
spec: {template: {spec: {containers: [{name: a}, {name: a}]}}}
`)
	if len(m.Services) != 1 || len(m.Workloads)+len(m.Objects) > 0 || len(m.LeftOut) != 3 {
		t.Errorf("%d services, %d workloads, %d objects, left out %v", len(m.Services), len(m.Workloads), len(m.Objects), m.LeftOut)
	}
	checkCounts(t, m)
	if err := m.Anonymize(); err != nil {
		t.Fatal(err)
	}
	for _, l := range m.LeftOut {
		if l.Reason != "a cluster would refuse it" {
			t.Errorf("without names: %v", l)
		}
	}
}

// A mode of mutual TLS that injection gives a pod is no part of the mesh, and one that somebody gave it is.
func TestTLSMode(t *testing.T) {
	for _, c := range []struct{ containers, mode, want string }{
		{"[{name: app}, {name: istio-proxy}]", "istio", ""},
		{"[{name: app}, {name: istio-proxy}]", "disabled", "disabled"},
		{"[{name: app}]", "istio", "istio"},
	} {
		m := meshOfText(t, fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: cart, namespace: shop, labels: {app: cart, %s: %s}}\nspec: {containers: %s}\n", tlsModeLabel, c.mode, c.containers))
		if got := m.Workloads[0].Template().Labels[tlsModeLabel]; got != c.want {
			t.Errorf("%s with %s: got %q, want %q", c.mode, c.containers, got, c.want)
		}
	}
}

// Of the addresses of services those stay that a replay can have; the others are named, and a capture of the replay has them again.
func TestAddressesOfServices(t *testing.T) {
	m := meshOfText(t, `{apiVersion: v1, kind: Service, metadata: {name: plain, namespace: shop}, spec: {clusterIP: 10.0.0.3, ipFamilies: [IPv4], ipFamilyPolicy: SingleStack, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: both, namespace: shop}, spec: {clusterIP: 10.0.0.4, clusterIPs: [10.0.0.4, "fd00::4"], ipFamilies: [IPv4, IPv6], ipFamilyPolicy: RequireDualStack, externalIPs: [192.0.2.3], ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: edge, namespace: shop}, spec: {type: LoadBalancer, ipFamilies: [IPv6], ports: [{port: 443}]}, status: {loadBalancer: {ingress: [{ip: 192.0.2.4}]}}}
`)
	var got []string
	for _, d := range m.Differences() {
		got = append(got, d.What+" = "+d.Value)
	}
	if diff := cmp.Diff([]string{"addresses of load balancers = 1 service", "IP families IPv4,IPv6 = 1 service", "IP families IPv6 = 1 service"}, got); diff != "" {
		t.Error("not reproduced:", diff)
	}
	for _, o := range m.Surroundings(nil) {
		spec, _, _ := unstructured.NestedMap(o.Object, "spec")
		if spec["ipFamilies"] != nil || spec["ipFamilyPolicy"] != nil || spec["clusterIPs"] != nil {
			t.Errorf("%s %s: a cluster with IPv4 alone would refuse %v", o.GetKind(), o.GetName(), spec)
		}
		if addresses, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "externalIPs"); (o.GetName() == "both") != slices.Equal(addresses, []string{"192.0.2.3"}) {
			t.Errorf("%s %s has the external addresses %v", o.GetKind(), o.GetName(), addresses)
		}
	}
	again := replayOf(t, m)
	if diff := cmp.Diff(m.Services, again.Services); diff != "" {
		t.Error("a capture of the replay differs:", diff)
	}
	to, _, err := m.Into("own-", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range to.Services {
		if s.Spec.IPFamilies != nil || s.Spec.ExternalIPs != nil {
			t.Errorf("in another cluster %s has %v, %v", s.Name, s.Spec.IPFamilies, s.Spec.ExternalIPs)
		}
	}
	if err := m.Anonymize(); err != nil {
		t.Fatal(err)
	}
	if text := written(t, m); strings.Contains(text, "192.0.2.3") {
		t.Error("an external address is in the file without names")
	}
}

// How many endpoints a port has that pods have only from injection is not known; one that they may lack is counted.
func TestInjectedPorts(t *testing.T) {
	m := meshOfText(t, `{apiVersion: v1, kind: Service, metadata: {name: istiod, namespace: istio-system, labels: {app: istiod}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: istio-sidecar-injector, namespace: istio-system}, data: {config: "templates: {extra: 'spec: {containers: [{name: agent, ports: [{name: agent-http, containerPort: 9}]}]}'}"}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {selector: {app: web}, ports: [
  {name: http, port: 80, targetPort: web}, {name: stats, port: 81, targetPort: http-envoy-prom}, {name: agent, port: 82, targetPort: agent-http}, {name: none, port: 83, targetPort: nobody}]}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio-injection: enabled}}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {replicas: 2, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, ports: [{name: web, containerPort: 8080}]}]}}}}
`)
	mesh := m.Topology()
	if diff := cmp.Diff(map[string]bool{"shop/web:stats": true, "shop/web:agent": true}, mesh.Uncounted); diff != "" {
		t.Error("uncounted:", diff)
	}
	if mesh.Endpoints != 2 {
		t.Errorf("%d endpoints, want 2: those of the port that pods have", mesh.Endpoints)
	}
}

// Pods of an earlier template that have other ports, or a proxy of another revision, are a workload of their own.
func TestPodsOfTwoTemplates(t *testing.T) {
	for name, c := range map[string]struct {
		port     int
		revision string
		want     []string
	}{
		"alike":             {80, "old", []string{"cart 3 [80]"}},
		"other ports":       {8080, "old", []string{"cart 2 [80]", "cart-2 1 [8080]"}},
		"of a new revision": {80, "new", []string{"cart 2 [80]", "cart-2 1 [80]"}},
	} {
		text := `{apiVersion: apps/v1, kind: Deployment, metadata: {name: cart, namespace: shop}, spec: {replicas: 3, template: {metadata: {labels: {app: cart}}, spec: {containers: [{name: app, ports: [{containerPort: 80}]}]}}}}
`
		for i, of := range []struct {
			port     int
			revision string
		}{{80, "old"}, {80, "old"}, {c.port, c.revision}} {
			text += fmt.Sprintf("---\n{apiVersion: v1, kind: Pod, metadata: {name: cart-%d, namespace: shop, labels: {app: cart, pod-template-hash: a}, annotations: {istio.io/rev: %s}, "+
				"ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: cart-a, uid: u, controller: true}]}, spec: {containers: [{name: app, ports: [{containerPort: %d}]}, {name: istio-proxy}]}}\n", i, of.revision, of.port)
		}
		var got []string
		for _, w := range meshOfText(t, text).Workloads {
			var ports []int32
			for _, p := range w.Spec.Containers[0].Ports {
				ports = append(ports, p.Port)
			}
			got = append(got, fmt.Sprintf("%s %d %v", w.Name, w.Spec.Replicas, ports))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
