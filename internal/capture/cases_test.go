package capture

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// meshOf is the mesh of files below testdata/cases.
func meshOf(t *testing.T, files ...string) Mesh {
	t.Helper()
	for i := range files {
		files[i] = filepath.Join("testdata", "cases", files[i])
	}
	m, err := FromFiles(files...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// readAgain is a mesh as a rollout reads it from its file. It has to be the same.
func readAgain(t *testing.T, m Mesh) Mesh {
	t.Helper()
	again := read(t, written(t, m))
	if diff := cmp.Diff(m, again, cmpopts.IgnoreUnexported(Mesh{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("read is not what was written:\n%s", diff)
	}
	return again
}

// Three kinds of one name are three workloads, whose Deployments have names of their own.
func TestKindsOfOneName(t *testing.T) {
	m := readAgain(t, meshOf(t, "unreadable/cluster.yaml"))
	var names []string
	for _, w := range m.Workloads {
		names = append(names, w.Name+" "+w.Spec.Owner)
	}
	want := []string{"collector Deployment", "collector-daemonset DaemonSet", "collector-statefulset StatefulSet"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Error(diff)
	}
}

// A policy without specification says something: it denies everything.
func TestPolicyWithoutSpecification(t *testing.T) {
	m := readAgain(t, meshOf(t, "unreadable/base.yaml", "unreadable/no-spec.yaml"))
	if len(m.Objects) != 1 || m.Objects[0].GetName() != "allow-nothing" {
		t.Errorf("objects %v, want the policy", m.Objects)
	}
}
