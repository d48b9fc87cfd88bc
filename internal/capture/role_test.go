package capture

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// The role of the document is for what is read, and for nothing else.
func TestRole(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "captured.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(guide), "```yaml\napiVersion: rbac")
	text, _, _ := strings.Cut("apiVersion: rbac"+after, "```")
	all, home, _ := strings.Cut(text, "---\n")
	rights := func(text string) map[string]string {
		var role rbacv1.ClusterRole
		if err := yaml.UnmarshalStrict([]byte(text), &role); err != nil {
			t.Fatal(err)
		}
		given := map[string]string{}
		for _, rule := range role.Rules {
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
