package hack

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/yaml"
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

// The manifest of krew and the formula of Homebrew name each archive of the release once, with its checksum.
func TestPackagesOfARelease(t *testing.T) {
	text, err := os.ReadFile("release.sh")
	if err != nil {
		t.Fatal(err)
	}
	loop := regexp.MustCompile(`(?m)^for platform in (.*); do$`).FindSubmatch(text)
	if loop == nil {
		t.Fatal("release.sh has no loop over platforms")
	}
	dir := t.TempDir()
	want := map[string]string{} // checksums by URL
	for platform := range strings.FieldsSeq(string(loop[1])) {
		name := "scaler-v1.2.3-" + platform + ".tar.gz"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(platform), 0o644); err != nil {
			t.Fatal(err)
		}
		digest := sha256.Sum256([]byte(platform))
		want["https://downloads.example/v1.2.3/"+name] = hex.EncodeToString(digest[:])
	}
	fill := func(template string) string {
		script := exec.Command("bash", "-euo", "pipefail", "-c", `
eval "$(sed -n '/^fill() {/,/^}/p' release.sh)"
version=v1.2.3 url=https://downloads.example/v1.2.3 out=$1
fill "release/$2"`, "fill", dir, template)
		script.Stderr = os.Stderr
		filled, err := script.Output()
		if err != nil || bytes.Contains(filled, []byte("{{")) {
			t.Fatalf("%s: %v, and not all is filled in:\n%s", template, err, filled)
		}
		return string(filled)
	}
	var manifest struct {
		Spec struct {
			Version   string
			Platforms []struct {
				Selector    struct{ MatchLabels map[string]string }
				URI, SHA256 string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(fill("mesh-scaler.yaml")), &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest.Spec.Platforms) != len(want) || manifest.Spec.Version != "v1.2.3" {
		t.Errorf("the manifest has %+v, want the archives %v", manifest.Spec, want)
	}
	for _, p := range manifest.Spec.Platforms {
		if want[p.URI] != p.SHA256 || !strings.Contains(p.URI, p.Selector.MatchLabels["os"]+"-"+p.Selector.MatchLabels["arch"]) {
			t.Errorf("the manifest has %+v, want %s", p, want[p.URI])
		}
	}
	formula := fill("scaler.rb")
	named := regexp.MustCompile(`url "(.*)"\s+sha256 "(.*)"`).FindAllStringSubmatch(formula, -1)
	urls := map[string]string{}
	for _, n := range named {
		urls[n[1]] = n[2]
	}
	if !maps.Equal(urls, want) || len(named) != len(want) || !strings.Contains(formula, `version "1.2.3"`) {
		t.Errorf("the formula names %v, want %v:\n%s", urls, want, formula)
	}
}

// The checksums of a release are signed, and a signature of other checksums, or by another key, is none.
func TestSignatureOfARelease(t *testing.T) {
	dir := t.TempDir()
	script := exec.Command("bash", "-euo", "pipefail", "-c", `
eval "$(sed -n '/^sign() {/,/^}/p' release.sh)"
cd ..
go build -trimpath -modfile=hack/minisign/go.mod -o "$1/minisign" aead.dev/minisign/cmd/minisign
minisign() { "$1/minisign" "${@:2}"; }
minisign "$1" -G -W -p "$1/key.pub" -s "$1/key"
minisign "$1" -G -W -p "$1/other.pub" -s "$1/other"
version=v1.2.3 key=$1/key
echo "digest scaler.tar.gz" >"$1/SHA256SUMS"
sign "$1/SHA256SUMS"
cp "$1/SHA256SUMS.minisig" "$1/first"
sign "$1/SHA256SUMS"
cmp "$1/first" "$1/SHA256SUMS.minisig"
minisign "$1" -V -Q -p "$1/key.pub" -m "$1/SHA256SUMS"
if minisign "$1" -V -q -p "$1/other.pub" -m "$1/SHA256SUMS"; then echo "the signature is by any key"; fi
echo "digest other.tar.gz" >>"$1/SHA256SUMS"
if minisign "$1" -V -q -p "$1/key.pub" -m "$1/SHA256SUMS"; then echo "the signature is of anything"; fi`, "sign", dir)
	var stderr bytes.Buffer
	script.Stderr = &stderr
	said, err := script.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	if got := string(bytes.TrimSpace(said[bytes.LastIndex(bytes.TrimSpace(said), []byte("\n"))+1:])); got != "Trusted comment: scaler v1.2.3" {
		t.Errorf("got %q, want that scaler v1.2.3 is signed and nothing after it:\n%s", got, said)
	}
}
