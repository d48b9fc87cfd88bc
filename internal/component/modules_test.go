package component

import (
	"encoding/json"
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
	all := slices.Concat(pinned, nodeGraphs)
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
			rest := ""
			if g.sumFrom != "" { // not every module that it needs is in the checksum database
				write(t, sum, g.sum)
				module := downloaded(t, g.sumFrom, dir)
				rest = read(t, filepath.Join(module, "go.sum"))
				if *modules == "verify" {
					verifyRelease(t, g, module, mod, sum)
					return
				}
				write(t, sum, read(t, sum)+rest)
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
			switch got := withoutLines(read(t, sum), rest); {
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

// verifyRelease checks the module that completes a graph, by its hash, and that it has the
// programs. What else it needs is in its own go.sum; downloading that for every release takes
// longer than all the rest of a test run.
func verifyRelease(t *testing.T, g graph, module, mod, sum string) {
	t.Helper()
	if got := read(t, mod); got != g.mod {
		t.Errorf("modules/%s.mod is not complete: go would make it\n%s", g.name, got)
	}
	if got := read(t, sum); got != g.sum {
		t.Errorf("modules/%s.sum does not have the hash of %s: go would make it\n%s", g.name, g.sumFrom, got)
	}
	for _, p := range g.programs {
		folder, ok := strings.CutPrefix(p.pkg, g.sumFrom+"/")
		if !ok {
			t.Errorf("%s is not of %s", p.pkg, g.sumFrom)
		}
		if files, err := filepath.Glob(filepath.Join(module, folder, "*.go")); err != nil || len(files) == 0 {
			t.Errorf("%s has no package %s: %v", g.sumFrom, p.pkg, err)
		}
	}
}

// downloaded is the folder of a module that the module file in dir requires, whose hash was
// compared with the one in go.sum there.
func downloaded(t *testing.T, module, dir string) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PWD="+dir, "GOWORK=off", "GOFLAGS=-mod=mod")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	var found struct{ Dir string }
	if err := json.Unmarshal(out, &found); err != nil || found.Dir == "" {
		t.Fatalf("%v gives no folder: %v\n%s", cmd.Args, err, out)
	}
	return found.Dir
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
