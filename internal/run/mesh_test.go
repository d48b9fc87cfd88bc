package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const smallMesh = `apiVersion: scaler.mesh/v2
kind: Mesh
---
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: scaler.mesh/v2
kind: Workload
metadata: {name: cart, namespace: shop}
spec: {owner: Deployment, proxy: sidecar, replicas: 2}
`

// What is no file of a mesh is refused at once, with the field.
func TestReadMesh(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(
		os.WriteFile(at("mesh.yaml"), []byte(smallMesh), 0o600),
		os.WriteFile(at("windows.yaml"), []byte("\ufeff"+strings.ReplaceAll(smallMesh, "\n", "\r\n")), 0o600),
		os.WriteFile(at("outside.yaml"), []byte(strings.ReplaceAll(smallMesh, "proxy: sidecar", "proxy: none")), 0o600),
		os.WriteFile(at("ambient.yaml"), []byte(strings.ReplaceAll(smallMesh, "proxy: sidecar", "proxy: ambient")), 0o600),
		os.WriteFile(at("other.yaml"), []byte(strings.ReplaceAll(smallMesh, "proxy: sidecar", "proxy: otherRevision")), 0o600),
		os.WriteFile(at("v1.yaml"), []byte("apiVersion: scaler.mesh/v1\nkind: Mesh\n"), 0o600),
		os.WriteFile(at("large.yaml"), nil, 0o600),
		os.Truncate(at("large.yaml"), 1<<40),
		unix.Mkfifo(at("pipe"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		at("mesh.yaml"):    "",
		at("windows.yaml"): "",
		at("v1.yaml"):      "mesh.file: " + at("v1.yaml") + ": document 1: it is of format scaler.mesh/v1: want scaler.mesh/v2; capture the mesh again",
		at("outside.yaml"): "mesh.file: got \"" + at("outside.yaml") + "\", want one with a sidecar at least",
		at("ambient.yaml"): "mesh.file: got \"" + at("ambient.yaml") + "\", want one with a sidecar at least: its 2 pods in ambient mode, 0 ztunnels and 0 waypoints are not replayed",
		at("other.yaml"):   "mesh.file: " + at("other.yaml") + ": document 3: Workload shop/cart: spec.proxy \"otherRevision\": want none, sidecar, gateway, ambient, ztunnel or waypoint",
		at("none.yaml"):    "mesh.file: got \"" + at("none.yaml") + "\", want the file of a mesh: no such file or directory",
		at("pipe"):         "mesh.file: got \"" + at("pipe") + "\", want the file of a mesh: it is no regular file",
		"/dev/zero":        `mesh.file: got "/dev/zero", want the file of a mesh: it is no regular file`,
		dir:                "mesh.file: got \"" + dir + "\", want the file of a mesh: it is no regular file: it is a directory",
		at("large.yaml"):   "mesh.file: got \"" + at("large.yaml") + "\", want the file of a mesh: it is too large: it has 1099511627776 bytes, want 1073741824 at most",
	} {
		m, err := ReadMesh(path)
		switch {
		case want == "" && err != nil, want != "" && (err == nil || err.Error() != want):
			t.Errorf("%s: got %v, want %q", path, err, want)
		case want == "" && len(m.Mesh.Workloads) != 1:
			t.Errorf("%s: %d workloads, want 1", path, len(m.Mesh.Workloads))
		}
	}
}

// Pods are placed where they were: in their zones, those that had most first, or on a node without one.
func TestTemplatesOfZones(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mesh.yaml")
	const zoned = smallMesh + `---
apiVersion: scaler.mesh/v2
kind: Workload
metadata: {name: orders, namespace: shop}
spec: {owner: Deployment, proxy: sidecar, replicas: 3, labels: {app: orders}, zones: [{zone: a, pods: 1}, {zone: b, pods: 2}]}
`
	for _, test := range []struct{ text, want string }{
		{smallMesh, ""},
		{zoned, "DoesNotExist [] In [b a]"},
	} {
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := ReadMesh(path)
		if err != nil {
			t.Fatal(err)
		}
		templates, _ := m.templates(nil)
		var got []string
		for _, template := range templates {
			if a := template.Spec.Affinity; a != nil {
				on := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0]
				got = append(got, fmt.Sprint(on.Operator, " ", on.Values))
			}
		}
		if text := strings.Join(got, " "); text != test.want {
			t.Errorf("nodes %s, want %s", text, test.want)
		}
	}
}
