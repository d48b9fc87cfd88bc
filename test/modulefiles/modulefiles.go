// Package modulefiles compares the module files of pinned module graphs with what Go makes of them.
// hack/update-modules.sh and hack/verify-modules.sh run it.
package modulefiles

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/component"
)

// mode is set by the scripts in hack. Go downloads what is not in the module cache, so plain test
// runs leave it out.
var mode = flag.String("modules", "", `"update" rewrites modules/*.sum from the .mod files, "verify" compares`)

// Check fails the test if the files of a graph, in the folder modules, are not complete, or if its programs are not
// in the modules that they pin. With -modules=update it writes the .sum files.
func Check(t *testing.T, graphs []component.Graph) {
	if *mode == "" {
		t.Skip("-modules is not set; see hack/update-modules.sh and hack/verify-modules.sh")
	}
	for i, g := range graphs {
		hasFiles := func(other component.Graph) bool { return other.Mod == g.Mod }
		if g.Mod == "" || slices.ContainsFunc(graphs[:i], hasFiles) {
			continue
		}
		t.Run(g.Name, func(t *testing.T) {
			dir := t.TempDir()
			mod, sum := filepath.Join(dir, "go.mod"), filepath.Join(dir, "go.sum")
			write(t, mod, g.Mod)
			rest := ""
			if g.SumFrom != "" { // not every module that it needs is in the checksum database
				write(t, sum, g.Sum)
				module := downloaded(t, g.SumFrom, dir)
				rest = read(t, filepath.Join(module, "go.sum"))
				if *mode == "verify" {
					verifyRelease(t, g, module, mod, sum)
					return
				}
				write(t, sum, read(t, sum)+rest)
			}
			for _, g := range graphs {
				if !hasFiles(g) {
					continue
				}
				args := []string{"list", "-mod=mod", "-deps", "-tags", g.Tags}
				for _, p := range g.Programs {
					args = append(args, p.Package)
				}
				cmd := exec.Command("go", args...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "PWD="+dir, "GOWORK=off", "GOFLAGS=-mod=mod", "CGO_ENABLED=0")
				if out, err := cmd.CombinedOutput(); err != nil {
					lines := strings.Split(strings.TrimSpace(string(out)), "\n")
					t.Fatalf("%v: %v\n%s", cmd.Args, err, strings.Join(lines[max(0, len(lines)-20):], "\n"))
				}
			}
			if got := read(t, mod); got != g.Mod {
				t.Errorf("modules/%s.mod is not complete: go would make it\n%s", g.Name, got)
			}
			switch got := withoutLines(read(t, sum), rest); {
			case got == g.Sum:
			case *mode == "update":
				write(t, filepath.Join("modules", g.Name+".sum"), got)
				t.Logf("wrote modules/%s.sum", g.Name)
			default:
				t.Errorf("modules/%s.sum does not fit modules/%s.mod: run hack/update-modules.sh", g.Name, g.Name)
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

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// verifyRelease checks the module that completes a graph, by its hash, and that it has the
// programs. What else it needs is in its own go.sum; downloading that for every release takes
// longer than all the rest of a test run.
func verifyRelease(t *testing.T, g component.Graph, module, mod, sum string) {
	t.Helper()
	if got := read(t, mod); got != g.Mod {
		t.Errorf("modules/%s.mod is not complete: go would make it\n%s", g.Name, got)
	}
	if got := read(t, sum); got != g.Sum {
		t.Errorf("modules/%s.sum does not have the hash of %s: go would make it\n%s", g.Name, g.SumFrom, got)
	}
	for _, p := range g.Programs {
		folder, ok := strings.CutPrefix(p.Package, g.SumFrom+"/")
		if !ok {
			t.Errorf("%s is not of %s", p.Package, g.SumFrom)
		}
		if files, err := filepath.Glob(filepath.Join(module, folder, "*.go")); err != nil || len(files) == 0 {
			t.Errorf("%s has no package %s: %v", g.SumFrom, p.Package, err)
		}
	}
}

// downloaded returns the folder of a module that the module file in dir requires, whose hash was
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

// withoutLines returns a text without the lines of another.
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
