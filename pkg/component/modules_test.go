package component

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// modules lets hack/update-modules.sh and hack/verify-modules.sh use the table of programs. It
// downloads what is not in the module cache, so plain test runs leave it out.
var modules = flag.String("modules", "", `"update" rewrites modules/*.sum from the .mod files, "verify" compares`)

func TestModuleFiles(t *testing.T) {
	if *modules == "" {
		t.Skip("-modules is not set; see hack/update-modules.sh and hack/verify-modules.sh")
	}
	all := slices.Clone(pinned)
	for _, release := range IstioReleases() {
		if release != IstioDefault {
			all = append(all, istioGraphs(release)...)
		}
	}
	for i, g := range all {
		hasFiles := func(other graph) bool { return other.mod == g.mod }
		if g.wheel != "" || slices.ContainsFunc(all[:i], hasFiles) {
			continue
		}
		t.Run(g.name, func(t *testing.T) {
			dir := t.TempDir()
			mod, sum := filepath.Join(dir, "go.mod"), filepath.Join(dir, "go.sum")
			write(t, mod, g.mod)
			if g.sumFrom != "" {
				write(t, sum, g.sum) // not every version is in the checksum database
			}
			for _, g := range all {
				if !hasFiles(g) {
					continue
				}
				args := []string{"list", "-mod=mod", "-deps", "-tags", g.tags}
				for _, p := range g.programs {
					args = append(args, p.pkg)
				}
				cmd := exec.Command("go", args...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "PWD="+dir, "GOWORK=off", "GOFLAGS=-mod=mod", "CGO_ENABLED=0")
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %v\n%s", cmd.Args, err, lastLines(string(out), 20))
				}
			}
			if got := read(t, mod); got != g.mod {
				t.Errorf("modules/%s.mod is not complete: go would make it\n%s", g.name, got)
			}
			switch got := withoutLines(read(t, sum), restOfSum(t, g.sumFrom, dir)); {
			case got == g.sum:
			case *modules == "update":
				write(t, filepath.Join("modules", g.name+".sum"), got)
				t.Logf("wrote modules/%s.sum", g.name)
			default:
				t.Errorf("modules/%s.sum does not fit modules/%s.mod: run hack/update-modules.sh", g.name, g.name)
			}
		})
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// restOfSum is the go.sum of a module that was downloaded for the module file in dir; "" of none.
func restOfSum(t *testing.T, module, dir string) string {
	t.Helper()
	if module == "" {
		return ""
	}
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PWD="+dir, "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	return read(t, filepath.Join(strings.TrimSpace(string(out)), "go.sum"))
}

// withoutLines is a text without the lines of another.
func withoutLines(text, others string) string {
	left := map[string]bool{}
	for line := range strings.Lines(others) {
		left[line] = true
	}
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if !left[line] {
			kept.WriteString(line)
		}
	}
	return kept.String()
}
