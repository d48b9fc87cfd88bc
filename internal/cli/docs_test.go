package cli

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra/doc"
)

var updateDocs = flag.Bool("update-docs", false, "write docs/reference/command-line anew")

// commandLine is the folder of the command line reference.
const commandLine = "../../docs/reference/command-line"

// TestCommandLineReference compares the committed command line reference with what cobra makes of
// the commands' help. hack/update-docs.sh writes it.
func TestCommandLineReference(t *testing.T) {
	// Defaults must not depend on the environment of whoever runs this.
	for _, name := range []string{"SCALER_BIN_DIR", "SCALER_CACHE_DIR", "SCALER_ENVOY", "SCALER_IMAGE_REGISTRY"} {
		t.Setenv(name, "")
	}
	root := newRootCommand(streams{out: io.Discard, err: io.Discard})
	root.DisableAutoGenTag = true
	fresh := t.TempDir()
	if err := doc.GenMarkdownTree(root, fresh); err != nil {
		t.Fatal(err)
	}
	if *updateDocs {
		if err := os.RemoveAll(commandLine); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(commandLine, os.DirFS(fresh)); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, got := contents(t, fresh), contents(t, commandLine)
	for name := range want {
		if !bytes.Equal(want[name], got[name]) {
			t.Errorf("docs/reference/command-line/%s differs from the commands' help: run hack/update-docs.sh", name)
		}
	}
	for name := range got {
		if want[name] == nil {
			t.Errorf("docs/reference/command-line/%s is of no command: run hack/update-docs.sh", name)
		}
	}
}

// contents reads the files of a folder.
func contents(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]byte{}
	for _, file := range files {
		if all[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
