package hack

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
)

// The program that only reads records compiles for macOS. Its types are checked from the sources, all modules included,
// which takes seconds where compiling for another system takes minutes.
func TestProgramForMacOS(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := packages.Load(&packages.Config{
		Context: t.Context(), Dir: root, Mode: packages.LoadAllSyntax,
		Env: append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0"),
	}, "./cmd/scaler")
	if err != nil || len(loaded) != 1 {
		t.Fatalf("%d packages, %v", len(loaded), err)
	}
	checked := 0
	packages.Visit(loaded, nil, func(p *packages.Package) {
		if strings.HasPrefix(p.PkgPath, "scaler.mesh/scaler/") {
			checked++
		}
		for _, err := range p.Errors {
			t.Error(err)
		}
	})
	if checked < 50 {
		t.Errorf("%d packages of scaler were checked, want all", checked)
	}
}

// The archives of a release are the same with each umask, and everybody may read what is in them.
func TestArchivesOfARelease(t *testing.T) {
	dir := t.TempDir()
	script := exec.Command("bash", "-euo", "pipefail", "-c", `
eval "$(sed -n '/^archive() {/,/^}/p' release.sh)"
stamp=2026-11-24T00:00:00Z
for mask in 022 077 002; do
	umask $mask
	work=$1/$mask
	mkdir "$work"
	cp -r chart/scaler "$work/scaler"
	touch "$work/scaler/program"
	chmod u+x "$work/scaler/program"
	archive scaler "$1/$mask.tgz"
done
tar --numeric-owner -tvf "$1/077.tgz"`, "archives", dir)
	script.Stderr = os.Stderr
	listed, err := script.Output()
	if err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(filepath.Join(dir, "022.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	for _, mask := range []string{"077", "002"} {
		other, err := os.ReadFile(filepath.Join(dir, mask+".tgz"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, other) {
			t.Errorf("the archive differs with umask %s:\n%s", mask, listed)
		}
	}
	for line := range bytes.SplitSeq(bytes.TrimSpace(listed), []byte("\n")) {
		if mode, _, _ := bytes.Cut(line, []byte(" ")); string(mode) != "drwxr-xr-x" && string(mode) != "-rw-r--r--" && string(mode) != "-rwxr-xr-x" {
			t.Errorf("%s: want it readable for all and writable for its owner", line)
		}
	}
}
