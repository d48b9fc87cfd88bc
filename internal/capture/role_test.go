package capture

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"

	"scaler.mesh/scaler/test/readingrole"
)

// The role of the document is for what is read, and for nothing else.
func TestRole(t *testing.T) {
	all, home, err := readingrole.Rules(filepath.Join("..", "..", "docs"))
	if err != nil {
		t.Fatal(err)
	}
	rights := func(rules []rbacv1.PolicyRule) map[string]string {
		given := map[string]string{}
		for _, rule := range rules {
			for _, group := range rule.APIGroups {
				for _, name := range rule.Resources {
					given[strings.TrimSuffix(name+"."+group, ".")] = strings.Join(rule.Verbs, " ")
				}
			}
		}
		return given
	}
	want := map[string]string{}
	for _, r := range Resources() {
		want[r.name()] = "list"
	}
	want[webhooks.name()] = "get list" // doctor reads one
	if diff := cmp.Diff(want, rights(all)); diff != "" {
		t.Error("of the cluster:", diff)
	}
	if diff := cmp.Diff(map[string]string{configMaps.name(): "get", autoscalers.name(): "list", "pods/portforward": "create"}, rights(home)); diff != "" {
		t.Error("of the control plane's namespace:", diff)
	}
}
