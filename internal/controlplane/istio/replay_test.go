package istio

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// meshHead is a mesh of two namespaces: a client in one, services with and without an address in the other.
const meshHead = `apiVersion: scaler.mesh/v2
kind: Mesh
---
apiVersion: v1
kind: Namespace
metadata: {name: a}
---
apiVersion: v1
kind: Namespace
metadata: {name: b}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: b}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: peers, namespace: b}
spec: {clusterIP: None, selector: {app: web}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: scaler.mesh/v2
kind: Workload
metadata: {name: client, namespace: a}
spec: {owner: Deployment, replicas: 1, proxy: sidecar}
---
apiVersion: scaler.mesh/v2
kind: Workload
metadata: {name: gateway, namespace: a}
spec: {owner: Deployment, replicas: 1, proxy: gateway}
---
apiVersion: scaler.mesh/v2
kind: Workload
metadata: {name: web, namespace: b}
spec: {owner: Deployment, replicas: 2, proxy: sidecar, labels: {app: web}, containers: [{name: web, ports: [{port: 8080}]}]}
`

func destinationRule(namespace, spec string) string {
	return "---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: rule, namespace: " + namespace + "}\nspec: " + spec + "\n"
}

func serviceEntry(name, spec string) string {
	return "---\napiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: " + name + ", namespace: b}\nspec: " + spec + "\n"
}

// What a sidecar of another namespace must hold of rules and hosts outside the cluster, in addition to the
// clusters of services, and what is not checked.
func TestReplayedRules(t *testing.T) {
	const v1 = "outbound|80|v1|web.b.svc.cluster.local"
	const web = "subsets: [{name: v1, labels: {app: web}}, {name: v2, labels: {app: web, version: v2}}]"
	external := func(more string) string {
		return serviceEntry("external", "{hosts: [api.example.com], ports: [{number: 443, name: tls, protocol: TLS}], resolution: DNS"+more+"}")
	}
	const externalCluster, externalListener = "CDS outbound|443||api.example.com", "LDS 0.0.0.0_443"
	subsets := []string{"CDS " + v1, "EDS " + v1 + " of b/web:http", "CDS outbound|80|v2|web.b.svc.cluster.local", "EDS outbound|80|v2|web.b.svc.cluster.local"}
	tests := []struct {
		name, objects string
		want          []string
		unchecked     string
	}{
		{"none", "", nil, ""},
		{"of the service's namespace", destinationRule("b", "{host: web, "+web+"}"), subsets, "cluster-settings"},
		{"of the client's namespace", destinationRule("a", "{host: web.b.svc.cluster.local, "+web+"}"), subsets, "cluster-settings"},
		{"of the root namespace", strings.ReplaceAll(meshNamespace, "NAME", namespace) + destinationRule(namespace, "{host: web.b.svc.cluster.local, "+web+"}"), subsets, "cluster-settings"},
		{"of a third namespace", strings.ReplaceAll(meshNamespace, "NAME", "c") + destinationRule("c", "{host: web.b.svc.cluster.local, "+web+"}"), nil, "cluster-settings"},
		{"not exported", destinationRule("b", "{host: web, exportTo: [\".\"], "+web+"}"), nil, "cluster-settings"},
		{"for some workloads", destinationRule("b", "{host: web, workloadSelector: {matchLabels: {app: x}}, "+web+"}"), nil, "cluster-settings"},
		{"of a wildcard", destinationRule("b", "{host: \"*.b.svc.cluster.local\", "+web+"}"), nil, "cluster-settings"},
		{"two of them", destinationRule("b", "{host: web, "+web+"}") + destinationRule("a", "{host: web.b.svc.cluster.local, "+web+"}"), nil, "cluster-settings"},
		{"headless", destinationRule("b", "{host: peers, subsets: [{name: v1, labels: {app: web}}]}"), []string{"CDS outbound|80|v1|peers.b.svc.cluster.local"}, "cluster-settings"},
		{"a host by DNS", external(""), []string{externalCluster, externalListener}, ""},
		{"with an address", external(", addresses: [203.0.113.1]"), []string{externalCluster}, "service-entries"},
		{"with workloads", external(", workloadSelector: {labels: {app: x}}"), nil, "service-entries"},
		{"not exported host", external(", exportTo: [\".\"]"), nil, ""},
		{"twice", external("") + strings.Replace(external(""), "name: external", "name: again", 1), nil, "service-entries"},
		{"static", serviceEntry("static", "{hosts: [static.example.com], ports: [{number: 9000, name: tcp, protocol: TCP}], resolution: STATIC, endpoints: [{address: 203.0.113.1}]}"),
			[]string{"CDS outbound|9000||static.example.com", "EDS outbound|9000||static.example.com"}, "service-entries"},
		{"a wildcard without resolution", serviceEntry("any", "{hosts: [\"*.example.com\"], ports: [{number: 443, name: tls, protocol: TLS}]}"),
			[]string{"CDS outbound|443||*.example.com"}, "service-entries"},
		{"with proxies of other settings", external("") + "---\napiVersion: networking.istio.io/v1beta1\nkind: ProxyConfig\nmetadata: {name: all, namespace: a}\nspec: {}\n",
			[]string{externalCluster}, "patches"},
		{"a patch that removes", external("") + "---\napiVersion: networking.istio.io/v1alpha3\nkind: EnvoyFilter\nmetadata: {name: all, namespace: a}\nspec: {configPatches: [{applyTo: CLUSTER, patch: {operation: REMOVE}}]}\n",
			nil, "patches"},
	}
	plain := replayedWants(t, "", 0)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var more []string
			for _, w := range replayedWants(t, test.objects, 0) {
				if !slices.Contains(plain, w) {
					more = append(more, w)
				}
			}
			slices.Sort(more)
			slices.Sort(test.want)
			if diff := cmp.Diff(test.want, more); diff != "" {
				t.Errorf("wants differ (-want +got):\n%s", diff)
			}
			mesh := readMesh(t, test.objects)
			for _, n := range newReplayed(configuration{&ControlPlane{}}, mesh).notChecked() {
				if what := string(n.What); what != "other-resources" && what != "mesh-config" && what != "gateway-listeners" && what != test.unchecked {
					t.Errorf("not checked: %s", what)
				}
			}
		})
	}
}

const meshNamespace = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: NAME}\n"

// A headless service is in routes and has clusters; gateways alone hold its endpoints.
func TestReplayedHeadless(t *testing.T) {
	const peers = "outbound|80||peers.b.svc.cluster.local"
	of := func(wants []string) (held []string) {
		for _, w := range wants {
			if strings.Contains(w, "peers") {
				held = append(held, w)
			}
		}
		return held
	}
	sidecar, gateway := of(replayedWants(t, "", 0)), of(replayedWants(t, "", 1))
	if diff := cmp.Diff([]string{"CDS " + peers, "RDS 80: peers.b.svc.cluster.local web.b.svc.cluster.local"}, sidecar); diff != "" {
		t.Errorf("a sidecar (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"CDS " + peers, "EDS " + peers + " of b/peers:http"}, gateway); diff != "" {
		t.Errorf("a gateway (-want +got):\n%s", diff)
	}
}

func readMesh(t *testing.T, objects string) *capture.Mesh {
	t.Helper()
	mesh, err := capture.Read("mesh.yaml", strings.NewReader(meshHead+objects))
	if err != nil {
		t.Fatal(err)
	}
	return &mesh
}

// replayedWants returns what the pods of a workload must hold, as text.
func replayedWants(t *testing.T, objects string, workload int) []string {
	t.Helper()
	return textsOf(newReplayed(configuration{&ControlPlane{}}, readMesh(t, objects)), workload)
}

// textsOf returns what the pods of a workload must hold, as text.
func textsOf(r *replayed, workload int) []string {
	var all []string
	for _, w := range r.Wants(topology.Mesh{}, scenario.Settings{}, workload) {
		text := w.Key.String()
		if w.Service != "" {
			text += " of " + w.Service
		}
		if w.Type == convergence.RDS {
			members := slices.Clone(w.Members)
			slices.Sort(members)
			text += ": " + strings.Join(members, " ")
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return all
}

// What pods set for their own proxies is not compared where it changes what istiod sends, and is named then.
func TestProxiesWithSettingsOfTheirOwn(t *testing.T) {
	external := serviceEntry("external", "{hosts: [out.example.com], ports: [{number: 8443, name: tls, protocol: TLS}], resolution: DNS}")
	for _, test := range []struct {
		name, annotations string
		listener          bool // of the external host
		redirected        bool
	}{
		{"none", "{}", true, true},
		{"a ProxyConfig", "{proxy.istio.io/config: 'concurrency: 2'}", false, true},
		{"no redirection", "{sidecar.istio.io/interceptionMode: NONE}", false, false},
		{"no redirection by a ProxyConfig", "{proxy.istio.io/config: 'interceptionMode: NONE'}", false, false},
		{"redirection in place of that of a ProxyConfig", "{proxy.istio.io/config: 'interceptionMode: NONE', sidecar.istio.io/interceptionMode: REDIRECT}", false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			mesh := readMesh(t, external+"---\napiVersion: scaler.mesh/v2\nkind: Workload\nmetadata: {name: zoo, namespace: b}\nspec: {owner: Deployment, replicas: 1, proxy: sidecar, labels: {app: web}, annotations: "+
				test.annotations+", containers: [{name: web, ports: [{port: 8080}]}]}\n")
			at := slices.IndexFunc(mesh.Workloads, func(w capture.Workload) bool { return w.Name == "zoo" })
			r := newReplayed(configuration{&ControlPlane{}}, mesh)
			wants := textsOf(r, at)
			for _, want := range []struct {
				text  string
				there bool
			}{
				{"CDS outbound|80||web.b.svc.cluster.local", true}, {"LDS 0.0.0.0_8443", test.listener},
				{"LDS virtualInbound", test.redirected}, {"LDS virtualOutbound", test.redirected}, {"CDS inbound|8080||", test.redirected},
				{"RDS 80: peers.b.svc.cluster.local web.b.svc.cluster.local", test.redirected},
			} {
				if slices.Contains(wants, want.text) != want.there {
					t.Errorf("%s: %v, want %v, in\n%s", want.text, !want.there, want.there, strings.Join(wants, "\n"))
				}
			}
			p := &replayedProbes{replayed: r}
			p.findRoutes()
			for _, kind := range []controlplane.ProbeKind{controlplane.MeshProbe, controlplane.PolicyProbe} {
				_, concerned := p.Probe(kind, topology.Mesh{Services: make([]topology.Service, len(mesh.Workloads))}, scenario.Settings{}, at, "marker")
				if slices.Contains(concerned, at) != test.redirected {
					t.Errorf("a change %v is expected at workloads %v, with %d among them: %v", kind, concerned, at, !test.redirected)
				}
			}
			if len(p.routes) > 0 != test.redirected {
				t.Errorf("routes that are changed: %v", p.routes)
			}
			named := slices.ContainsFunc(r.notChecked(), func(n record.NotChecked) bool { return n.What == record.UncheckedProxies && n.Count == 1 })
			if named != (test.annotations != "{}") {
				t.Errorf("named as not compared: %v", named)
			}
		})
	}
}
