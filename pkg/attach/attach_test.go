package attach

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/pkg/controlplane/drivers"
	"scaler.mesh/scaler/pkg/environment/existing"
)

// The guide has the ClusterRole that is checked.
func TestGuideHasRole(t *testing.T) {
	role, err := yaml.Marshal(existing.Role(existing.Rights(drivers.Default().Installed.Rights)))
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../../docs/guides/own-cluster.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(guide), "```yaml\n"+string(role)+"```") {
		t.Errorf("docs/guides/own-cluster.md lacks the role:\n%s", role)
	}
}
