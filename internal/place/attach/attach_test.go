package attach

import (
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/internal/controlplane/drivers"
	"scaler.mesh/scaler/internal/place/existing"
)

// The guide has the ClusterRoles that are checked.
func TestGuideHasRole(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/guides/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []*rbacv1.ClusterRole{
		existing.Role(existing.RoleName, existing.Rights(drivers.Default().Installed.Rights)),
		existing.Role(existing.MeshesRoleName, drivers.Default().Installed.MeshRights),
		existing.Role(existing.WorkersRoleName, existing.WorkerRights()),
		existing.Role(existing.KwokRoleName, existing.KwokRights()),
		existing.Role(existing.KubeletRoleName, existing.KubeletRights()),
	} {
		role, err := yaml.Marshal(wanted)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(guide), "```yaml\n"+string(role)+"```") {
			t.Errorf("docs/guides/permissions.md lacks the role:\n%s", role)
		}
	}
}
