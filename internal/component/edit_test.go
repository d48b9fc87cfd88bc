package component

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEdit(t *testing.T) {
	e := edit{"a.test/m", "x.go", "port = 1", "port = portOf(1)"}
	for text, want := range map[string]string{
		"const port = 1\n":   "const port = portOf(1)\n",
		"const port = 2\n":   "",
		"port = 1; port = 1": "",
	} {
		got, err := e.apply(text)
		if got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		if (err == nil) != (want != "") || err != nil && !strings.Contains(err.Error(), "editing x.go of a.test/m: \"port = 1\" is in it") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestEditOfANewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new.go")
	if err := (edit{"a.test/m", "new.go", "", "package m\n"}).write(path); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); string(text) != "package m\n" {
		t.Errorf("it is %q, %v", text, err)
	}
	if err := (edit{"a.test/m", "other.go", "package", "package m\n"}).write(path + "x"); err == nil || !strings.Contains(err.Error(), "reading a source of a.test/m") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// What is edited is part of what names a build: a changed edit never meets an old program.
func TestEditsNameBuilds(t *testing.T) {
	g, p := pinned.find(OSMController)
	changed := *g
	changed.edits = append(changed.edits[:0:0], g.edits...)
	changed.edits[0].new += "\n"
	if g.key(p, "go1", "") == changed.key(p, "go1", "") {
		t.Error("an edit that changed names the same build")
	}
}
