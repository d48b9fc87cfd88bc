package capture

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/test/golden"
)

// installed returns a mesh with its control plane.
func installed(t *testing.T) Mesh {
	t.Helper()
	m, err := FromFiles(t.Context(), filepath.Join("testdata", "controlplane", "istio.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The control plane is captured by revision, wherever its root namespace is, and without the value of any credential.
func TestControlPlane(t *testing.T) {
	m := installed(t)
	checkCounts(t, m)
	text := written(t, m)
	golden.Compare(t, filepath.Join("testdata", "controlplane", "mesh.yaml"), text)
	var summary bytes.Buffer
	if err := m.Summary(&summary); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, filepath.Join("testdata", "controlplane", "summary.txt"), summary.String())
	if strings.Contains(text+summary.String(), "hunter2") {
		t.Error("a credential is in the file or the summary")
	}
	if m.ControlPlane.Masked != 9 {
		t.Errorf("%d values are masked, want 9: of two settings, three arguments, two of the mesh configuration, of the values and of a template", m.ControlPlane.Masked)
	}
	readAgain(t, m)

	served := m.Served()
	if served.Name != "1-29" || m.Root() != "mesh-system" {
		t.Errorf("a replay runs revision %s with root namespace %s, want 1-29, which has most pods, and mesh-system", served.Name, m.Root())
	}
	env, _ := served.Settings()
	if diff := cmp.Diff([]string{"PILOT_DEBOUNCE_AFTER=250ms", "PILOT_PUSH_THROTTLE=50"}, env); diff != "" {
		t.Error("settings:", diff)
	}
	if served.Processors() != 2 || served.Memory() != 4<<30 || m.ControlPlane.Revisions[1].Processors() != 4 {
		t.Errorf("%d processors, %d bytes; and %d of a node", served.Processors(), served.Memory(), m.ControlPlane.Revisions[1].Processors())
	}
	config, _ := served.Configuration("istiod.istio-system.svc:15012")
	want := map[string]any{
		"accessLogFile": "/dev/stdout", "outboundTrafficPolicy": map[string]any{"mode": "REGISTRY_ONLY"}, "rootNamespace": "mesh-system", "trustDomain": "cluster.local",
		"discoverySelectors": []any{map[string]any{"matchExpressions": []any{map[string]any{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": []any{"batch"}}}}},
		"defaultConfig": map[string]any{
			"concurrency": int64(2), "discoveryAddress": "istiod.istio-system.svc:15012", "proxyMetadata": map[string]any{"ISTIO_META_DNS_CAPTURE": "true"},
			"tracing": map[string]any{"lightstep": map[string]any{"address": "tracer.observability:8282", "accessToken": "(masked)"}},
		},
		"extensionProviders": []any{map[string]any{"name": "otel", "opentelemetry": map[string]any{
			"service": "otel.observability.svc.cluster.local", "port": int64(4318),
			"http": map[string]any{"path": "/v1/traces", "headers": []any{map[string]any{"name": "api-key", "value": "(masked)"}}},
		}}},
	}
	if diff := cmp.Diff(want, config); diff != "" {
		t.Error("mesh configuration of a replay:", diff)
	}
	if served.MeshConfig["ca"] == nil {
		t.Error("the captured mesh configuration was changed")
	}
}

// Without names nothing is left of who wrote it, and in copies the namespaces of the copies follow.
func TestControlPlaneRewritten(t *testing.T) {
	m := installed(t)
	three, err := m.Times(3)
	if err != nil {
		t.Fatal(err)
	}
	served := three.Served()
	if diff := cmp.Diff([]string{"shop", "shop-2", "shop-3"}, served.Namespaces); diff != "" || served.Pods != 6 {
		t.Errorf("%d pods of %v", served.Pods, served.Namespaces)
	}
	if diff := cmp.Diff([]string{"batch", "batch-2", "batch-3"}, served.Undiscovered); diff != "" {
		t.Error(diff)
	}
	if slices.ContainsFunc(three.Namespaces, func(n Namespace) bool { return n.Name == "mesh-system-2" }) {
		t.Error("there are copies of the root namespace")
	}
	if err := m.Anonymize(); err != nil {
		t.Fatal(err)
	}
	text := written(t, m)
	golden.Compare(t, filepath.Join("testdata", "controlplane", "anonymized.yaml"), text)
	for _, name := range []string{"shop", "mesh-system", "corp", "tracer", "otel", "hunter2", "vendor", "team-tuning", "tuned", "batch", "vault", "1-29", "west"} {
		for line := range strings.Lines(text) {
			if !strings.Contains(line, "apiVersion") && strings.Contains(line, name) && !strings.Contains(line, "lightstep") && !strings.Contains(line, "opentelemetry") {
				t.Errorf("%q is in %s", name, line)
			}
		}
	}
	readAgain(t, m)
	if again := m.Served(); again.Root() != m.Root() || !slices.ContainsFunc(m.Objects, func(o *unstructured.Unstructured) bool { return o.GetNamespace() == m.Root() }) {
		t.Errorf("root namespace %q is that of no object", m.Root())
	}
}

// injectedPod returns a document with a pod that has a sidecar; metadata are further fields of its metadata.
func injectedPod(namespace, name, kind, owner, metadata string) string {
	return "---\n{apiVersion: v1, kind: Pod, metadata: {name: " + name + ", namespace: " + namespace + ", ownerReferences: [{apiVersion: apps/v1, kind: " + kind + ", name: " + owner +
		", uid: a, controller: true}], " + metadata + "}, spec: {containers: [{name: istio-proxy}, {name: app}]}, status: {phase: Running}}\n"
}

// Workloads whose pods have proxies of another revision than their namespace follows are named with that revision.
func TestWorkloadsOfRevisions(t *testing.T) {
	text := `
{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio.io/rev: prod}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: plain}}
---
{apiVersion: v1, kind: Service, metadata: {name: istiod-old, namespace: istio-system, labels: {app: istiod, istio.io/rev: old}}}
---
{apiVersion: v1, kind: Service, metadata: {name: istiod-new, namespace: istio-system, labels: {app: istiod, istio.io/rev: new}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-revision-tag-prod, labels: {app: sidecar-injector, istio.io/rev: old, istio.io/tag: prod}}
webhooks: [{name: a.b.c, clientConfig: {service: {name: istiod-old, namespace: istio-system}}, rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}]
`
	pod := func(namespace, name, kind, owner, metadata string) {
		text += injectedPod(namespace, name, kind, owner, metadata)
	}
	const byOld, byNew, asksNew = "annotations: {istio.io/rev: old}", "annotations: {istio.io/rev: new}", "labels: {istio.io/rev: new}"
	pod("shop", "web-0", "StatefulSet", "web", byOld)
	pod("shop", "web-1", "StatefulSet", "web", byOld)
	pod("shop", "web-2", "StatefulSet", "web", byNew) // a workload of its own
	pod("shop", "web-x", "DaemonSet", "web", byNew)   // of the same name, which it keeps
	pod("plain", "batch-0", "StatefulSet", "batch", asksNew)
	pod("plain", "job-0", "StatefulSet", "job", byOld)
	m := meshOfText(t, text)
	check := func(m Mesh, old, current []string) {
		t.Helper()
		all := m.ControlPlane.Revisions
		if len(all) != 2 {
			t.Fatalf("%d revisions", len(all))
		}
		if diff := cmp.Diff([][]string{current, old}, [][]string{all[0].Workloads, all[1].Workloads}); diff != "" {
			t.Error(diff)
		}
	}
	check(m, []string{"plain/job"}, []string{"plain/batch", "shop/web", "shop/web-2"})
	two, err := m.Times(2)
	if err != nil {
		t.Fatal(err)
	}
	check(two, []string{"plain-2/job", "plain/job"}, []string{"plain-2/batch", "plain/batch", "shop-2/web", "shop-2/web-2", "shop/web", "shop/web-2"})
	if diff := cmp.Diff(map[string][]string{"prod": {"shop", "shop-2"}}, two.ControlPlane.Revisions[1].Tagged); diff != "" {
		t.Error(diff)
	}
	if err := m.Anonymize(); err != nil {
		t.Fatal(err)
	}
	for _, r := range m.ControlPlane.Revisions {
		for _, id := range r.Workloads {
			if !slices.ContainsFunc(m.Workloads, func(w Workload) bool { return w.ID() == id }) {
				t.Errorf("no workload is %s", id)
			}
		}
	}
}

// Settings are taken over unless a replay's own decide: those are named, but where they say nothing.
func TestSettings(t *testing.T) {
	for _, test := range []struct {
		variable  Variable
		taken     bool
		different bool
	}{
		{Variable{Name: "PILOT_PUSH_THROTTLE", Value: "50"}, true, false},
		{Variable{Name: "PILOT_ENABLE_CDS_CACHE", Value: "false"}, true, false},
		{Variable{Name: "PILOT_TRACE_SAMPLING", Value: "1"}, false, false},
		{Variable{Name: "PILOT_TRACE_SAMPLING", Value: "100"}, true, false},
		{Variable{Name: "POD_NAME", From: "field metadata.name"}, false, false},
		{Variable{Name: "NODE", From: "field spec.nodeName"}, false, true},
		{Variable{Name: "PILOT_ENABLE_AMBIENT", Value: "true"}, false, true},
		{Variable{Name: "PILOT_ENABLE_AMBIENT", Value: "false"}, false, false},
		{Variable{Name: "ENABLE_CA_SERVER", Value: "false"}, false, true},
		{Variable{Name: "ENABLE_CA_SERVER", Value: "true"}, false, false},
		{Variable{Name: "PILOT_CERT_PROVIDER", Value: "istiod"}, false, false},
		{Variable{Name: "PILOT_CERT_PROVIDER", Value: "kubernetes"}, false, true},
		{Variable{Name: "TOKEN_AUDIENCES", Value: "vendor"}, false, true},
		{Variable{Name: "LICENSE", From: "secret vendor, key license"}, false, true},
		{Variable{Name: "API_TOKEN", Value: "(masked)"}, false, true},
		{Variable{Name: "EMPTY"}, false, false},
		{Variable{Name: "vendor.mode", Value: "a"}, false, true},
	} {
		r := Revision{Env: []Variable{test.variable}}
		env, not := r.Settings()
		if (len(env) == 1) != test.taken || (len(not) == 1) != test.different {
			t.Errorf("%+v: taken over %v, not reproduced %v", test.variable, env, not)
		}
	}
	r := Revision{Args: []string{"discovery", "--domain", "corp.local", "--log_as_json", "--monitoringAddr=:15014", "--keepaliveMaxServerConnectionAge=30m"}}
	if _, not := r.Settings(); len(not) != 1 || not[0].What != "argument --domain" || not[0].Value != "corp.local" {
		t.Errorf("of the arguments not reproduced: %v", not)
	}
}

// A file that was edited is refused with the field.
func TestControlPlaneRefused(t *testing.T) {
	for edit, want := range map[string]string{
		"controlPlane: {revisions: []}":                                        `controlPlane.revisions "": want one at least`,
		"controlPlane: {revisions: [{namespace: a}]}":                          `controlPlane.revisions[0].name "": want the name of a revision`,
		"controlPlane: {revisions: [{name: a}, {name: a}]}":                    `controlPlane.revisions[1].name "a": want each revision of a namespace once`,
		"controlPlane: {revisions: [{name: a, limits: {memory: much}}]}":       `controlPlane.revisions[0].limits.memory "much": want a quantity`,
		"controlPlane: {revisions: [{name: a, env: [{name: A=B, value: c}]}]}": `controlPlane.revisions[0].env[0].name "A=B": want the name of a variable`,
		"controlPlane: {revisions: [{name: a, replicas: -1}]}":                 `controlPlane.revisions[0].replicas -1: want 0 or more`,
		"controlPlane: {revision: a}":                                          `unknown field "revision"`,
	} {
		_, err := Read("mesh.yaml", strings.NewReader("apiVersion: "+APIVersion+"\nkind: Mesh\n"+edit+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", edit, err, want)
		}
	}
}

func TestImageVersion(t *testing.T) {
	for image, want := range map[string]string{
		"docker.io/istio/pilot:1.29.1": "1.29.1", "registry:5000/istio/pilot:1.31.0-distroless@sha256:ab": "1.31.0", "istio/pilot@sha256:ab": "", "istio/pilot:latest": "",
	} {
		if got := ImageVersion(image); got != want {
			t.Errorf("%s: %q, want %q", image, got, want)
		}
	}
}

// A mesh of one revision has the proxies of its pods alone. Those of another one are endpoints, with the labels of their injection.
func TestOfARevision(t *testing.T) {
	workload := func(namespace, name string, replicas int, proxy Proxy, labels map[string]string) Workload {
		return Workload{Namespace: namespace, Name: name, Spec: WorkloadSpec{Owner: "Deployment", Replicas: replicas, Proxy: proxy, Labels: labels}}
	}
	m := Mesh{
		Header: Header{ControlPlane: &ControlPlane{Revisions: []Revision{
			{Name: "canary", Namespaces: []string{"shop"}, Workloads: []string{"bank/teller"}, Pods: 5},
			{Name: "idle"},
			{Name: "stable", Namespaces: []string{"bank", "edge"}, Pods: 9},
			{Name: "twice", Namespace: "a"}, {Name: "twice", Namespace: "b"},
		}}},
		Namespaces: []Namespace{{Name: "bank"}, {Name: "edge"}, {Name: "lost"}, {Name: "shop"}},
		Workloads: []Workload{
			workload("bank", "ledger", 4, Sidecar, map[string]string{"app": "books", "version": "v2"}),
			workload("bank", "teller", 2, Sidecar, nil),
			workload("edge", "gate", 1, Gateway, map[string]string{"app.kubernetes.io/name": "gate"}),
			workload("lost", "unlabelled", 4, Sidecar, nil),
			workload("shop", "cart", 3, Sidecar, map[string]string{"app": "cart"}),
			workload("shop", "job", 1, NoProxy, nil),
		},
	}
	before := m.Workloads[0].Spec.Labels["security.istio.io/tlsMode"]
	for name, want := range map[string]string{
		"canary": "canary 5 10: otherRevision sidecar otherRevision otherRevision sidecar none",
		"stable": "stable 9 6: sidecar otherRevision gateway sidecar otherRevision none",
	} {
		of, err := m.Of(name)
		if err != nil {
			t.Fatal(err)
		}
		sidecars, outside := of.Members()
		got := fmt.Sprintf("%s %d %d:", of.Served().Name, sidecars, outside)
		for _, w := range of.Workloads {
			got += " " + string(w.Spec.Proxy)
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		if scaled, err := of.Times(2); err != nil || scaled.Served().Name != name || scaled.Pods()[OtherRevision] != 2*of.Pods()[OtherRevision] {
			t.Errorf("%s: two copies are another mesh: %v", name, err)
		}
	}

	canary, _ := m.Of("canary")
	for i, want := range map[int]map[string]string{
		0: {"app": "books", "version": "v2", "security.istio.io/tlsMode": "istio", "service.istio.io/canonical-name": "books", "service.istio.io/canonical-revision": "v2", "sidecar.istio.io/inject": "false"},
		2: {"app.kubernetes.io/name": "gate", "service.istio.io/canonical-name": "gate", "service.istio.io/canonical-revision": "latest", "sidecar.istio.io/inject": "false"},
		4: {"app": "cart"},
	} {
		if diff := cmp.Diff(want, canary.Workloads[i].Template().Labels); diff != "" {
			t.Error(canary.Workloads[i].ID(), diff)
		}
	}
	if before != m.Workloads[0].Spec.Labels["security.istio.io/tlsMode"] || m.Served().Name != "stable" {
		t.Error("the whole mesh was changed")
	}

	for name, want := range map[string]string{
		"none":  "one of the revisions of the mesh: canary, idle, stable, twice, twice",
		"idle":  "a revision that serves pods: idle serves none",
		"twice": "a revision whose name the mesh has once: canary, idle, stable, twice, twice",
	} {
		if _, err := m.Of(name); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
	if _, err := new(Mesh).Of("stable"); err == nil || err.Error() != "none: the mesh has no control plane" {
		t.Errorf("without a control plane: %v", err)
	}
}

// During a move to another revision the tag "default" means the new one. Pods that were not restarted still have proxies of the old one,
// which has no name. An object with a label of one revision belongs to that revision only.
func TestOfARevisionWhileATagMoves(t *testing.T) {
	text := `
{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {istio-injection: enabled}}}
---
{apiVersion: v1, kind: Service, metadata: {name: istiod, namespace: istio-system, labels: {app: istiod, istio.io/rev: default}}}
---
{apiVersion: v1, kind: Service, metadata: {name: istiod-canary, namespace: istio-system, labels: {app: istiod, istio.io/rev: canary}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-revision-tag-default, labels: {app: sidecar-injector, istio.io/rev: canary, istio.io/tag: default}}
webhooks: [{name: a.b.c, clientConfig: {service: {name: istiod-canary, namespace: istio-system}}, rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}]
`
	for pod, revision := range map[string]string{"old-0": "default", "old-1": "default", "new-0": "canary"} {
		owner, _, _ := strings.Cut(pod, "-")
		text += injectedPod("shop", pod, "StatefulSet", owner, "annotations: {istio.io/rev: "+revision+"}")
	}
	for name, labels := range map[string]string{"all": "{}", "old": "{istio.io/rev: stable}", "new": "{istio.io/rev: canary}"} {
		text += "---\n{apiVersion: networking.istio.io/v1, kind: Sidecar, metadata: {name: " + name + ", namespace: shop, labels: " + labels + "}, spec: {egress: [{hosts: [./*]}]}}\n"
	}
	m := meshOfText(t, text)
	kind := Resources()[slices.IndexFunc(Resources(), func(r Resource) bool { return r.Kind == "Sidecar" })]
	for _, o := range m.Objects {
		if diff := cmp.Diff(o.Object, kind.trimmed(o).Object); diff != "" {
			t.Error("a capture of the replay has another object:", diff)
		}
	}
	for _, part := range []struct {
		name string
		mesh func() (Mesh, error)
	}{
		{"as captured", func() (Mesh, error) { return m, nil }},
		{"in two copies", func() (Mesh, error) { return m.Times(2) }},
	} {
		of, err := part.mesh()
		if err != nil {
			t.Fatal(err)
		}
		copies := max(1, of.Scale)
		for name, want := range map[string]string{"default": "2 of old: all", "canary": "1 of new: all new"} {
			one, err := of.Of(name)
			if err != nil {
				t.Fatalf("%s, %s: %v", part.name, name, err)
			}
			sidecars, _ := one.Members()
			var served, objects []string
			for _, w := range one.Workloads {
				if w.Spec.HasSidecar() && w.Namespace == "shop" {
					served = append(served, w.Name)
				}
			}
			for _, o := range one.Objects {
				if o.GetNamespace() == "shop" {
					objects = append(objects, o.GetName())
				}
			}
			if got := fmt.Sprintf("%d of %s: %s", sidecars/copies, strings.Join(served, " "), strings.Join(objects, " ")); got != want {
				t.Errorf("%s, revision %s: got %s, want %s", part.name, name, got, want)
			}
		}
	}
	if err := m.Anonymize(); err != nil {
		t.Fatal(err)
	}
	readAgain(t, m)
	for _, r := range m.ControlPlane.Revisions {
		if one, err := m.Of(r.Name); err != nil || len(one.Objects) != 1 && len(one.Objects) != 2 || len(one.Objects) == len(m.Objects) {
			t.Errorf("anonymized, revision %s: %d objects, %v", r.Name, len(one.Objects), err)
		}
	}
}

// The namespaces that a replay's control plane reads by itself are in the file, also where nothing of the mesh is in them.
func TestNamespacesOfTheControlPlane(t *testing.T) {
	const istiod = `{apiVersion: v1, kind: Service, metadata: {name: istiod, namespace: istio-system, labels: {app: istiod}}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: istio-system, labels: {team: a}}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: istio, namespace: istio-system}, data: {mesh: "rootNamespace: %s"}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {ports: [{port: 80}]}}
`
	for root, want := range map[string][]string{"istio-system": {"shop"}, "mesh-root": {"mesh-root", "shop"}} {
		m := meshOfText(t, fmt.Sprintf(istiod, root))
		checkCounts(t, m)
		var names []string
		for _, n := range m.Namespaces {
			names = append(names, n.Name)
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("root namespace %s: %s", root, diff)
		}
	}
	m := meshOfText(t, strings.Replace(fmt.Sprintf(istiod, "istio-system"), "team: a", "topology.istio.io/network: net1", 1))
	checkCounts(t, m)
	if n := m.Namespaces[0]; n.Name != "istio-system" || n.Labels["topology.istio.io/network"] != "net1" {
		t.Errorf("the first namespace is %+v, want that of the control plane with its network", n)
	}
}

// Networks are named where there are several, by whatever names them; the network of a cluster of its own changes nothing.
func TestNetworks(t *testing.T) {
	const home = "{apiVersion: v1, kind: Service, metadata: {name: istiod, namespace: istio-system, labels: {app: istiod}}}\n---\n" +
		"{apiVersion: v1, kind: Namespace, metadata: {name: istio-system, labels: {topology.istio.io/network: net1}}}\n---\n"
	for name, c := range map[string]struct{ objects, want string }{
		"none":                {`{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {ports: [{port: 80}]}}`, ""},
		"its own":             {home + `{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {ports: [{port: 80}]}}`, ""},
		"a gateway's Service": {`{apiVersion: v1, kind: Service, metadata: {name: east, namespace: istio-system, labels: {topology.istio.io/network: net2}}, spec: {ports: [{port: 15443}]}}`, "net2"},
		"a remote Gateway": {home + `{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: east, namespace: istio-system, labels: {topology.istio.io/network: net2}}, ` +
			`spec: {gatewayClassName: istio-remote, listeners: [{name: a, port: 15443, protocol: TLS}]}}`, "net1, net2"},
		"a machine": {home + `{apiVersion: networking.istio.io/v1, kind: WorkloadEntry, metadata: {name: vm, namespace: shop}, spec: {address: 192.0.2.1, network: net3}}`, "net1, net3"},
	} {
		got := ""
		m := meshOfText(t, c.objects)
		for _, d := range m.Differences() {
			if d.What == "networks" {
				got = d.Value
			}
		}
		if got != c.want {
			t.Errorf("%s: networks %q are not reproduced, want %q", name, got, c.want)
		}
	}
}
