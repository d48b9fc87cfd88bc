package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"scaler.mesh/scaler/pkg/scenario"
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
		at("outside.yaml"): "mesh.file: got \"" + at("outside.yaml") + "\", want one with a sidecar or a pod in ambient mode at least",
		at("ambient.yaml"): "",
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

// A captured mesh with pods in ambient mode has the data plane that its pods have, unless that is stated or the command is of sidecars alone.
func TestCapturedDataplane(t *testing.T) {
	dir := t.TempDir()
	workload := func(name, proxy string, replicas int) string {
		return fmt.Sprintf("---\napiVersion: scaler.mesh/v2\nkind: Workload\nmetadata: {name: %s, namespace: shop}\nspec: {owner: Deployment, proxy: %s, replicas: %d}\n", name, proxy, replicas)
	}
	ambient := strings.ReplaceAll(smallMesh, "proxy: sidecar", "proxy: ambient") + workload("ztunnel", "ztunnel", 7)
	waypoint := "---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: w, namespace: shop}\nspec: {gatewayClassName: istio-waypoint}\n" +
		strings.Replace(workload("w", "waypoint", 2), "replicas: 2", "replicas: 2, labels: {gateway.networking.k8s.io/gateway-name: w}", 1)
	for name, c := range map[string]struct {
		text        string
		set         []string // path and value, in turns
		dataplane   string
		pods, nodes int
		want        string // error
	}{
		"sidecars":   {smallMesh, nil, "sidecar", 2, 1, ""},
		"ambient":    {ambient, nil, "ambient", 2, 7, ""},
		"two copies": {ambient, []string{"mesh.scale", "2"}, "ambient", 4, 14, ""},
		"zones": {strings.Replace(ambient, "replicas: 2", "replicas: 30, zones: [{zone: a, pods: 10}, {zone: b, pods: 10}, {zone: c, pods: 10}]", 1),
			nil, "ambient", 30, 7, ""},
		"both":                 {ambient + workload("old", "sidecar", 3), nil, "mixed", 5, 7, ""},
		"stated pods of nodes": {ambient, []string{"mesh.podsPerNode", "2"}, "ambient", 2, 1, ""},
		"those of the file":    {ambient, []string{"mesh.podsPerNode", "1"}, "ambient", 2, 7, ""},
		"as sidecars":          {ambient + workload("old", "sidecar", 3), []string{"mesh.dataplane", "sidecar"}, "sidecar", 3, 1, ""},
		"an upgrade":           {ambient + workload("old", "sidecar", 3), []string{"controlPlane.upgrade.to", "1.31.0"}, "mixed", 5, 7, ""},
		"no sidecars":          {ambient, []string{"mesh.dataplane", "sidecar"}, "sidecar", 0, 1, "one with a sidecar at least: its 2 pods in ambient mode are not replayed here"},
		"sidecars as ambient":  {ambient + workload("old", "sidecar", 3), []string{"mesh.dataplane", "ambient"}, "ambient", 5, 7, "none with mesh.file, which has 3 pods with sidecars, too"},
		"no pod in it":         {smallMesh, []string{"mesh.dataplane", "mixed"}, "mixed", 2, 1, "none with mesh.file, which has no pods in ambient mode"},
		"probes":               {ambient + workload("old", "sidecar", 3), []string{"load.probes", "3"}, "mixed", 5, 7, ""},
		"a waypoint":           {ambient + waypoint, nil, "ambient", 2, 7, ""},
		"its pods alone":       {ambient + waypoint, []string{"mesh.waypoints", "none"}, "ambient", 2, 7, ""},
		"waypoints of others":  {ambient + waypoint, []string{"mesh.waypoints", "namespace", "mesh.dataplane", "ambient"}, "ambient", 2, 7, "captured or none with mesh.file"},
		"no waypoint in it":    {ambient, []string{"mesh.waypoints", "captured", "mesh.dataplane", "ambient"}, "ambient", 2, 7, "none: the mesh has no waypoint"},
		"changes":              {ambient + workload("old", "sidecar", 3), []string{"load.changes", "1/s"}, "mixed", 5, 7, ""},
		"a start delay":        {ambient + workload("old", "sidecar", 3), []string{"mesh.sidecars.startDelay", "1s"}, "sidecar", 3, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".yaml")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			d := scenario.New(scenario.Default())
			for i := 0; i < len(c.set); i += 2 {
				if err := d.Set(c.set[i], c.set[i+1], ""); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.Set("mesh.file", path, ""); err != nil {
				t.Fatal(err)
			}
			s, err := New(Spec{}, d)
			if err != nil {
				t.Fatal(err)
			}
			if s.Dataplane() != c.dataplane || s.Pods() != c.pods || len(s.nodeLabels()) != c.nodes {
				t.Errorf("data plane %s, %d pods, %d nodes", s.Dataplane(), s.Pods(), len(s.nodeLabels()))
			}
			if replayed := s.Mesh.Waypoints == "captured"; replayed != (name == "a waypoint" || name == "no waypoint in it") || replayed && c.want == "" && len(s.Captured.Mesh.Waypoints) != 1 {
				t.Errorf("waypoints %s: %v", s.Mesh.Waypoints, s.Captured.Mesh.Waypoints)
			}
			driver, err := s.Driver()
			if err != nil {
				t.Fatal(err)
			}
			if err := s.checkMesh(driver); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}
