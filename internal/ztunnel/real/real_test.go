package real

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestParseDump(t *testing.T) {
	got, err := parseDump([]byte(`{
		"workloads": [{"uid": "Kubernetes//Pod/a/b", "name": "b"}],
		"services": [{"name": "s", "namespace": "a", "hostname": "s.a.svc.cluster.local"}],
		"policies": [{"name": "p", "namespace": "a", "scope": "WorkloadSelector"}],
		"certificates": [{"identity": "spiffe://x", "state": "Available"}, {"identity": "spiffe://y", "state": "Initializing"}]
	}`))
	want := Dump{
		Addresses: []string{"Kubernetes//Pod/a/b", "a/s.a.svc.cluster.local"}, Authorizations: []string{"a/p"}, Identities: []string{"spiffe://x"},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("parseDump is %+v (%v), want %+v", got, err, want)
	}
	for _, text := range []string{``, `{}`, `{"workloads": []}`, `not found`} {
		if _, err := parseDump([]byte(text)); err == nil {
			t.Errorf("parseDump(%q): no error", text)
		}
	}
}

func TestVersion(t *testing.T) {
	dir := t.TempDir()
	program := func(name, script string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	got, err := Version(t.Context(), program("ztunnel", `echo 'version.BuildInfo{Version:"1.31.0", GitRevision:"abc"}'`))
	if err != nil || got != "1.31.0" {
		t.Errorf("Version is %q (%v), want 1.31.0", got, err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none"):           "no such file",
		program("other", "echo version 1.2"): "it states no version of one",
		program("broken", "exit 3"):          "exit status 3",
	} {
		_, err := Version(t.Context(), path)
		if err == nil || !strings.HasPrefix(err.Error(), `ztunnel: got "`+path+`", want the path of a ztunnel: `) || !strings.Contains(err.Error(), want) {
			t.Errorf("Version of %s: %v, want it to say %q", path, err, want)
		}
	}
}
