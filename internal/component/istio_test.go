package component

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every release has its module files, and programs, stamps and keys of its own.
func TestIstioReleases(t *testing.T) {
	keys := map[string]string{}
	for _, release := range IstioReleases() {
		version := istioModuleVersion(release)
		for _, g := range istioGraphs(release) {
			if version == "" || !strings.Contains(g.Sum, istioModulePath+" "+version+" h1:") {
				t.Fatalf("%s: modules/ does not pin %s %s", release, istioModulePath, version)
			}
			if (release == IstioDefault) != (g.SumFrom == "") {
				t.Errorf("%s: the rest of its hashes is from %q", release, g.SumFrom)
			}
			for _, p := range g.Programs {
				key := p.Name + "/" + g.key(p, "go1.26.8", "")
				if other, taken := keys[key]; taken {
					t.Errorf("%s of %s and of %s are both in %s", p.Name, other, release, key)
				}
				keys[key] = release
				if IstioLine(p.Version) != IstioLine(release) || !strings.Contains(g.ldflags(), "buildVersion="+p.Version) {
					t.Errorf("%s of %s is of version %s, stamped %s", p.Name, release, p.Version, g.ldflags())
				}
			}
		}
	}
}

func TestIstioVersionOption(t *testing.T) {
	for value, want := range map[string]string{
		"": IstioDefault, "1.29.1": "1.29.1", "1.29": "1.29.1", "1.31": "1.31.0", "1.30": "1.30-20260826", "1.31-20260423": "1.31-20260423",
		"1.29.2": "1.29.2", "1.32.0-rc.1": "1.32.0-rc.1", "1.2": "", "1": "", "v1.29.2": "", "v1.29.1": "", "1.29.2-distroless": "", "0.29.2": "", "9.9.9": "", "latest": "",
	} {
		got, err := Options{Istio: value}.release()
		if got != want || (err == nil) != (want != "") {
			t.Errorf("--istio-version %q is %q, %v; want %q", value, got, err, want)
		}
		if err != nil && (!strings.Contains(err.Error(), "controlPlane.version: got") || !strings.Contains(err.Error(), "1.29.1") || !strings.Contains(err.Error(), "or the number of another release")) {
			t.Errorf("--istio-version %q: error %v states neither what is wrong nor what there is", value, err)
		}
	}
	if err := (Options{Istio: "1.29.1", BinDir: "bin"}).Validate(); err == nil || !strings.Contains(err.Error(), `none with programs of folder "bin"`) {
		t.Errorf("with a folder of programs: %v", err)
	}
	if err := (Options{Istio: "1.29.1"}).Validate(Etcd, Prometheus); err == nil {
		t.Error("no error where no program of Istio runs")
	}
	if err := (Options{Istio: "1.29.1"}).Validate(Etcd, Istiod); err != nil {
		t.Error(err)
	}
}

// The programs of another release take the place of those of the default one.
func TestGraphsOfRelease(t *testing.T) {
	if got, want := graphsOf("1.29.1").names(), Names(); !slices.Equal(got, want) {
		t.Errorf("programs %v, want %v", got, want)
	}
}

// With a folder of ready programs, the manifests are those of its istiod's line.
func TestManifestsOfReadyPrograms(t *testing.T) {
	for name, tc := range map[string]struct {
		report string // what istiod prints
		own    bool   // the folder has manifests of its own
		want   string // in the error; "" = none
	}{
		"default line":         {`{"clientVersion": {"version": "1.31.4"}}`, false, ""},
		"unknown line":         {`{"clientVersion": {"version": "1.33.0"}}`, false, `istiod is of version "1.33.0"`},
		"no version":           {`{"clientVersion": {"version": "unknown"}}`, false, `istiod is of version "unknown"`},
		"own manifests":        {`{"clientVersion": {"version": "1.33.0"}}`, true, ""},
		"the folder is no use": {``, false, "is broken"},
	} {
		dir := t.TempDir()
		script := "echo '" + tc.report + "'"
		if tc.report == "" {
			script = "exit 1"
		}
		fake(t, dir, Istiod, script)
		if tc.own {
			write(t, filepath.Join(dir, IstioManifests, IstioManifestsFile), "kind: List\n")
		}
		got, err := Paths(t.Context(), Options{BinDir: dir, CacheDir: filepath.Join(dir, "cache")}, IstioManifests)
		if tc.want != "" {
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), dir) {
				t.Errorf("%s: error %v, want %q in it", name, err, tc.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := read(t, filepath.Join(got[IstioManifests], IstioManifestsFile))
		if own := text == "kind: List\n"; own != tc.own || !own && !strings.Contains(text, "otelResourceAttributes") {
			t.Errorf("%s: the manifests are %d bytes in %s", name, len(text), got[IstioManifests])
		}
	}
}

// What was changed in the cache since it was made is made anew.
func TestManifestsAreVerified(t *testing.T) {
	options := Options{CacheDir: t.TempDir()}
	manifests := func() (path, text string) {
		got, err := Paths(t.Context(), options, IstioManifests)
		if err != nil {
			t.Fatal(err)
		}
		path = filepath.Join(got[IstioManifests], IstioManifestsFile)
		return path, read(t, path)
	}
	path, want := manifests()
	write(t, path, "kind: List\n")
	if _, got := manifests(); got != want {
		t.Errorf("changed manifests of %d bytes are used", len(got))
	}
}
