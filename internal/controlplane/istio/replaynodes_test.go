package istio

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/scenario"
)

// A ztunnel of a captured mesh holds all services, and the endpoints of those whose pods are all followed.
func TestReplayedNodes(t *testing.T) {
	service := func(name, spec string) string {
		return "---\napiVersion: v1\nkind: Service\nmetadata: {name: " + name + ", namespace: b}\nspec: " + spec + "\n"
	}
	text := strings.Replace(meshHead, "replicas: 2, proxy: sidecar, labels: {app: web}", "replicas: 2, proxy: ambient, labels: {app: web, tier: all}", 1) + `---
apiVersion: scaler.mesh/v2
kind: Workload
metadata: {name: job, namespace: b}
spec: {owner: Job, replicas: 1, proxy: none, labels: {app: job, tier: all}, containers: [{name: job, ports: [{port: 8080}]}]}
` + service("shared", "{selector: {tier: all}, ports: [{name: http, port: 80, targetPort: 8080}]}") +
		service("named", "{selector: {app: web}, ports: [{name: http, port: 80, targetPort: none}]}") +
		service("alone", "{ports: [{name: http, port: 80}]}") +
		service("other", "{type: ExternalName, externalName: example.com, ports: [{name: http, port: 80}]}")
	mesh, err := capture.Read("mesh.yaml", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	by, _ := mesh.ByNode(false)
	c := captured{&ControlPlane{}}
	nodes := c.parts().Nodes(&by)
	var got []string
	for _, w := range nodes.Wants(topology.Mesh{}, scenario.Settings{}) {
		got = append(got, strings.TrimSpace(w.Key.Name+" "+w.Service))
	}
	slices.Sort(got)
	want := []string{
		"b/alone.b.svc.cluster.local", "b/named.b.svc.cluster.local", "b/peers.b.svc.cluster.local", "b/shared.b.svc.cluster.local", "b/web.b.svc.cluster.local",
	}
	for _, name := range want {
		if !slices.Contains(got, name) {
			t.Errorf("%s is not wanted: %q", name, got)
		}
	}
	var followed []string
	for _, text := range got {
		if _, service, ok := strings.Cut(text, " "); ok {
			followed = append(followed, service[strings.LastIndex(service, " ")+1:])
		}
	}
	if !slices.Equal(followed, []string{"b/peers:http", "b/web:http"}) || len(got) != len(want)+2 {
		t.Errorf("the endpoints of %q are followed, of %q", followed, got)
	}
	if _, ok := nodes.Serves(topology.Mesh{}, "b"); ok {
		t.Error("a whole namespace is served")
	}

	web := slices.IndexFunc(by.Workloads, func(w capture.Workload) bool { return w.Name == "web" })
	probes, _ := c.Probes(&by)
	if object, concerned := probes.Probe(controlplane.PolicyProbe, by.Topology(), scenario.Settings{}, web, "marker"); object == nil || concerned != nil {
		t.Errorf("a policy for pods in ambient mode is %v, and concerns the sidecars of %v", object, concerned)
	}
	for _, want := range []string{"named", "peers"} {
		change := nodes.ServiceProbe(by.Topology(), web, true)
		if change == nil || change.Name != want || change.Changes != addressOf("b", want+".b.svc.cluster.local") || !strings.Contains(string(change.Patch), `"PreferClose"`) {
			t.Fatalf("the change of a Service is %+v, want one of %s", change, want)
		}
		at := slices.IndexFunc(by.Services, func(s corev1.Service) bool { return s.Name == want })
		by.Services[at].Annotations = map[string]string{capture.TrafficDistribution: "PreferSameZone"} // which a change back would not restore
	}
	if back := nodes.ServiceProbe(by.Topology(), web, false); back == nil || !strings.Contains(string(back.Patch), "null") {
		t.Errorf("the change back is %+v", back)
	}
}
