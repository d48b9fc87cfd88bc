package capture

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The replay has no labels by which the API server refuses pods, and all others.
func TestReplayIsAdmitted(t *testing.T) {
	m, err := FromFiles(t.Context(), filepath.Join("testdata", "cases", "pod-security.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if m.Namespaces[1].Labels["pod-security.kubernetes.io/enforce"] != "restricted" {
		t.Errorf("captured labels %v, want all", m.Namespaces[1].Labels)
	}
	m.Namespaces[0].Labels["team"] = "front"
	var labels []string
	for _, object := range m.Surroundings(map[string]string{"istio-injection": "enabled"}) {
		if object.GetKind() == "Namespace" {
			for name := range object.GetLabels() {
				labels = append(labels, object.GetName()+" "+name)
			}
		}
	}
	slices.Sort(labels)
	if got, want := strings.Join(labels, ", "), "front istio-injection, front team, pay istio-injection"; got != want {
		t.Errorf("namespaces have %s, want %s", got, want)
	}
}

// Pods ask for templates of injection that there are, and the captured mesh stays as it was.
func TestWithTemplates(t *testing.T) {
	m, err := FromFiles(t.Context(), filepath.Join("testdata", "cases", "injection-templates.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const asked = "sidecar,team-tuning"
	client := m.Workloads[1]
	if got := client.Spec.Annotations[templatesKey]; got != asked {
		t.Fatalf("captured %q, want %q", got, asked)
	}
	for _, test := range []struct {
		known  []string
		asks   string
		others string
	}{
		{[]string{"sidecar", "gateway"}, "sidecar", "team-tuning"},
		{[]string{"sidecar", "team-tuning"}, asked, ""},
		{nil, "", asked},
	} {
		w, others := client.WithTemplates(test.known)
		if got := w.Template().Annotations[templatesKey]; got != test.asks || strings.Join(others, ",") != test.others {
			t.Errorf("with %v it asks for %q, without %v; want %q and %q", test.known, got, others, test.asks, test.others)
		}
	}
	if got := client.Spec.Annotations[templatesKey]; got != asked {
		t.Errorf("the workload asks for %q now", got)
	}
	gateway := Workload{Spec: WorkloadSpec{Proxy: Gateway, Annotations: map[string]string{templatesKey: gatewayTemplate}}}
	if w, others := gateway.WithTemplates(nil); others != nil || w.Template().Annotations[templatesKey] != gatewayTemplate {
		t.Errorf("a gateway loses %v", others)
	}
	gateway.Spec.Annotations = map[string]string{templatesKey: "gateway,team-tuning"}
	if w, others := gateway.WithTemplates([]string{"gateway"}); len(others) != 1 || w.Template().Annotations[templatesKey] != gatewayTemplate {
		t.Errorf("a gateway with another template loses %v and asks for %q", others, w.Template().Annotations[templatesKey])
	}
}
