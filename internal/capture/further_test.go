package capture

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// workloadsOf describes the workloads of a mesh, as in "cart 2 sidecar".
func workloadsOf(m Mesh) (all []string) {
	for _, w := range m.Workloads {
		all = append(all, fmt.Sprint(w.Name, " ", w.Spec.Replicas, " ", w.Spec.Proxy))
	}
	return all
}

// expectWorkloads checks the workloads of a mesh, and its counts.
func expectWorkloads(t *testing.T, m Mesh, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, workloadsOf(m)); diff != "" {
		t.Error("workloads:", diff)
	}
	checkCounts(t, m)
}

// refusal is the error about a file.
func refusal(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cluster.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := FromFiles(t.Context(), path)
	if err == nil {
		t.Fatal("it is taken")
	}
	return err.Error()
}
