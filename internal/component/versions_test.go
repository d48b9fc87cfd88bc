package component

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fake writes a program that is a shell script.
func fake(t *testing.T, dir, name, script string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	write(t, path, "#!/bin/sh\n"+script+"\n")
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Versions are read from the programs, not from the pinned versions.
func TestVersions(t *testing.T) {
	dir := t.TempDir()
	var versions Versions
	for _, tc := range []struct{ name, script, want string }{
		{KubeAPIServer, "echo Kubernetes v1.35.2", "v1.35.2"},
		{Kwok, "echo kwok version v0.7.1 go1.26.8", "v0.7.1"},
		{Etcd, "echo etcd Version: 3.5.1", "v3.5.1"},
		{Istiod, `echo 2026/11/22 memory version: 9.9.9 >&2; echo '{"clientVersion": {"version": "1.30.3", "golang_version": "go1.25.1"}}'`, "1.30.3"},
		{PilotAgent, `echo '{"clientVersion": {"version": "unknown"}}'`, "unknown"},
		{Envoy, "echo '/x/envoy  version: 9e5580933739775e8bce696a57a2e1bc99368f23/1.39.1/Clean/RELEASE/BoringSSL'", "1.39.1"},
	} {
		path := fake(t, dir, tc.name, tc.script)
		got, err := versions.Of(t.Context(), tc.name, path)
		if err != nil || got.Version != tc.want || len(got.Digest) != 12 {
			t.Errorf("%s = %+v, %v; want %s", tc.name, got, err, tc.want)
		}
	}
}

// A file is asked once; another in its place is asked anew.
func TestVersionsAreAskedOnce(t *testing.T) {
	dir := t.TempDir()
	asked := filepath.Join(dir, "asked")
	path := fake(t, dir, Kwok, "echo x >>"+asked+"; echo kwok version v1.2.3")
	var versions Versions
	for range 3 {
		if _, err := versions.Of(t.Context(), Kwok, path); err != nil {
			t.Fatal(err)
		}
	}
	if text, _ := os.ReadFile(asked); string(text) != "x\n" {
		t.Errorf("asked %d times", strings.Count(string(text), "x"))
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	fake(t, dir, Kwok, "echo kwok version v1.2.4")
	if got, err := versions.Of(t.Context(), Kwok, path); err != nil || got.Version != "v1.2.4" {
		t.Errorf("another program in its place: %+v, %v", got, err)
	}
}

func TestVersionsOfWhatDoesNotAnswer(t *testing.T) {
	dir := t.TempDir()
	path := fake(t, dir, Istiod, "echo no such library >&2; exit 127")
	_, err := (*Versions)(nil).Of(t.Context(), Istiod, path)
	for _, want := range []string{"istiod", path, "no such library"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v: want %q in it", err, want)
		}
	}
	if _, err := new(Versions).Of(t.Context(), "nonsense", path); err == nil {
		t.Error("no error for an unknown program")
	}
}

// A program that reports no release is of that whose module it was built from.
func TestReleaseOfModule(t *testing.T) {
	for module, want := range map[string]string{
		"istio.io/istio@v0.0.0-20260827124520-eed52ebb66ad": "1.31.0",
		"istio.io/istio@v0.0.0-20260306174214-6991a379e1fc": "1.29.1",
		"istio.io/istio@v0.0.0-2025":                        "1.31-abc",
		"":                                                  "1.31-abc",
	} {
		if got := releaseOf(module, "1.31-abc"); got != want {
			t.Errorf("release of %q = %s, want %s", module, got, want)
		}
	}
	for text, want := range map[string]bool{"1.31.0": true, "v1.36.3": true, "1.32.0-rc.1": true, "1.31-eed52ebb66ad": false, "unknown": false, "1.31": false} {
		if got := release.MatchString(text); got != want {
			t.Errorf("%s is a release: %v", text, got)
		}
	}
}
