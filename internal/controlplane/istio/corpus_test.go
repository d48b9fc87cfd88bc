package istio

import (
	"bytes"
	"go/build"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/capture"
)

// corpus are files with objects of Kubernetes and Istio: the cases of package capture, and, where a module
// of Istio is in the cache, its samples. Others are none: templates and values.
func corpus(t *testing.T) (files []string) {
	t.Helper()
	cache := os.Getenv("GOMODCACHE")
	if cache == "" {
		cache = filepath.Join(build.Default.GOPATH, "pkg", "mod")
	}
	modules, err := filepath.Glob(filepath.Join(cache, "istio.io", "istio@*", "samples"))
	if err != nil {
		t.Fatal(err)
	}
	roots := []string{filepath.Join("..", "..", "capture", "testdata", "cases")}
	if len(modules) > 0 {
		roots = append(roots, slices.Max(modules))
	}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && slices.Contains([]string{".yaml", ".json", ".jsonl"}, filepath.Ext(path)) {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// Whatever capture writes, a rollout reads, and istiod as well: also without names, and twice.
func TestCorpus(t *testing.T) {
	readable := func(file, what string, m capture.Mesh) {
		t.Helper()
		var text bytes.Buffer
		if err := m.Write(&text); err != nil {
			t.Errorf("%s, %s: %v", file, what, err)
			return
		}
		again, err := capture.Read("mesh.yaml", bytes.NewReader(text.Bytes()))
		if err == nil {
			err = checkMesh(&again)
		}
		var same bytes.Buffer
		if err == nil {
			err = again.Write(&same)
		}
		if err != nil {
			t.Errorf("%s, %s: %v", file, what, err)
		} else if !bytes.Equal(text.Bytes(), same.Bytes()) {
			t.Errorf("%s, %s: read and written again differs", file, what)
		}
	}
	captured := 0
	for _, file := range corpus(t) {
		m, err := capture.FromFiles(t.Context(), file)
		if err != nil {
			if !strings.Contains(err.Error(), file) && !strings.Contains(err.Error(), "nothing of the files can be captured") {
				t.Errorf("%s: the error does not name it: %v", file, err)
			}
			continue
		}
		captured++
		for _, c := range m.LeftOut {
			if strings.HasPrefix(c.Reason, "a cluster would refuse it") {
				t.Errorf("%s: left out: %s", file, c.Reason)
			}
		}
		readable(file, "captured", m)
		if twice, err := m.Times(2); err != nil {
			t.Errorf("%s, twice: %v", file, err)
		} else {
			readable(file, "twice", twice)
		}
		if err := m.Anonymize(); err != nil {
			t.Errorf("%s, without names: %v", file, err)
		} else {
			readable(file, "without names", m)
		}
	}
	if captured < 12 {
		t.Errorf("%d files were captured, want 12 at least", captured)
	}
	t.Logf("%d files", captured)
}
