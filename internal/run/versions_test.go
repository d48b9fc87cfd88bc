package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/component"
)

// The versions in the record are those of the programs that run, from a folder
// that the user named, too.
func TestVersionsOfProgramsInAFolder(t *testing.T) {
	dir := t.TempDir()
	for name, script := range map[string]string{
		component.KubeAPIServer: "echo Kubernetes v1.35.2",
		component.Kwok:          "echo kwok version v0.7.1 go1.26.8",
		component.Envoy:         "echo 'envoy  version: 9e5580933739775e8bce696a57a2e1bc99368f23/1.39.1/Clean/RELEASE/BoringSSL'",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	paths, err := component.Paths(t.Context(), component.Options{BinDir: dir, CacheDir: t.TempDir()}, component.KubeAPIServer, component.Kwok, component.Envoy)
	if err != nil {
		t.Fatal(err)
	}
	p := programs{paths: paths, versions: new(component.Versions)}
	kwok, err := p.askVersions(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	kubernetes, err := embeddedPlace{}.kubernetes(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if kubernetes != "v1.35.2" || kwok != "v0.7.1" || p.envoy.Version != "1.39.1" {
		t.Errorf("kubernetes %s, kwok %s, envoy %s", kubernetes, kwok, p.envoy.Version)
	}
	paths[component.Kwok] = filepath.Join(dir, "gone")
	if _, err := p.askVersions(t.Context(), 0); err == nil || !strings.Contains(err.Error(), component.Kwok) {
		t.Errorf("error %v: want one that names the program", err)
	}
}
