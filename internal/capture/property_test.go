package capture

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/equality"
)

// checkReadable checks that what is written of a mesh is read as it was.
func checkReadable(t *testing.T, what string, m Mesh) {
	t.Helper()
	var text bytes.Buffer
	if err := m.Write(&text); err != nil {
		t.Fatalf("%s: writing it: %v", what, err)
	}
	again, err := Read("mesh.yaml", &text)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if !equal(m, again) {
		t.Fatalf("%s: read is not what was written:\n%s", what, cmp.Diff(m, again, cmpopts.IgnoreUnexported(Mesh{}), cmpopts.EquateEmpty()))
	}
}

// equal reports whether two meshes have the same content. It ignores the file from which they were read.
func equal(a, b Mesh) bool {
	parts := func(m Mesh) []any {
		return []any{m.Namespaces, m.Services, m.Slices, m.Workloads, m.Objects, m.Waypoints}
	}
	return cmp.Equal(a.Header, b.Header, cmpopts.EquateEmpty()) && equality.Semantic.DeepEqual(parts(a), parts(b))
}

// FuzzCapture checks that whatever is captured can be read, also without names and in several copies, and
// that nothing is lost without a reason. Seeds are the files of testdata.
func FuzzCapture(f *testing.F) {
	for _, pattern := range []string{"*.yaml", "controlplane/*.yaml", "endpoints/*.yaml", "cases/*.yaml", "cases/*/*"} {
		files, err := filepath.Glob(filepath.Join("testdata", pattern))
		if err != nil || len(files) == 0 {
			f.Fatalf("no seeds %s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		capture := func() (Mesh, error) {
			g := NewGatherer()
			err := eachValue(strings.NewReader(text), func(_ string, value []byte) error { return g.addValue(value) })
			return g.Mesh(), err
		}
		m, err := capture()
		if err != nil {
			return // it says what is wrong
		}
		checkCounts(t, m)
		checkReadable(t, "captured", m)
		if twice, err := m.Times(2); err == nil {
			checkReadable(t, "two copies", twice)
		} else if !strings.Contains(err.Error(), "mesh.scale: ") {
			t.Errorf("two copies: %v", err)
		}
		if err := m.Anonymize(); err != nil {
			t.Fatalf("without names: %v", err)
		}
		checkCounts(t, m)
		checkReadable(t, "without names", m)
	})
}
