// Package readingrole reads the role that the documents state for who only reads a cluster, for tests that hold
// the program to it.
package readingrole

import (
	"fmt"
	"os"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// Rules returns the rules of docs/reference/captured.md, which is in the folder docs: those of the ClusterRole, and those of the Role in
// the namespace of the control plane.
func Rules(docs string) (cluster, home []rbacv1.PolicyRule, err error) {
	page, err := os.ReadFile(docs + "/reference/captured.md")
	if err != nil {
		return nil, nil, err
	}
	const begin = "apiVersion: rbac"
	_, text, _ := strings.Cut(string(page), "```yaml\n"+begin)
	text, _, _ = strings.Cut(text, "```")
	var roles [2]rbacv1.ClusterRole // a Role has the same rules
	documents := strings.Split(begin+text, "---\n")
	if len(documents) != len(roles) {
		return nil, nil, fmt.Errorf("the page has %d roles, want %d", len(documents), len(roles))
	}
	for i, document := range documents {
		if err := yaml.UnmarshalStrict([]byte(document), &roles[i]); err != nil {
			return nil, nil, err
		}
	}
	return roles[0].Rules, roles[1].Rules, nil
}
