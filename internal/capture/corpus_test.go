package capture

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"scaler.mesh/scaler/test/corpus"
)

// TestCorpus checks of files that others wrote that what is captured of each is whole, see checkWhole and checkProperty, and that others are
// refused: those of which client-go does not read objects, and no others. Meshes that are equal are checked once.
func TestCorpus(t *testing.T) {
	for name, test := range map[string]struct {
		folder   func(testing.TB) corpus.Folder
		captured int // files at least
	}{
		"cases": {corpus.Cases, 18},
		"Istio": {corpus.Istio, 700},
	} {
		t.Run(name, func(t *testing.T) {
			folder := test.folder(t)
			var captured, without, refused atomic.Int32
			var meshes sync.Map // that were checked, as text
			t.Run("files", func(t *testing.T) {
				for _, file := range folder.Files {
					t.Run(file, func(t *testing.T) {
						t.Parallel()
						path := filepath.Join(folder.Path, file)
						objects, readable := readObjects(t, path)
						m, err := FromFiles(t.Context(), path)
						const nothing = "nothing of the files can be captured"
						switch {
						case err == nil:
							captured.Add(1)
							checkWhole(t, objects, m)
							part := m
							part.Header = Header{}
							if _, seen := meshes.LoadOrStore(written(t, part), true); !seen {
								checkProperty(t, m)
							}
						case !readable && strings.Contains(err.Error(), path+": "):
							refused.Add(1)
						case readable && strings.Contains(err.Error(), nothing) && (ofMesh(objects) == 0 || strings.Contains(err.Error(), "; left out: ")):
							without.Add(1)
						default:
							t.Errorf("it has %d objects, %d of them of a mesh: %v", len(objects), ofMesh(objects), err)
						}
					})
				}
			})
			t.Logf("of %d files %d are captured, %d have nothing to capture, and %d are refused as no files of objects", len(folder.Files), captured.Load(), without.Load(), refused.Load())
			if int(captured.Load()) < test.captured {
				t.Errorf("%d files are captured, want %d at least", captured.Load(), test.captured)
			}
		})
	}
}

// TestCorpusTogether checks the same of the samples of Istio as one mesh.
func TestCorpusTogether(t *testing.T) {
	folder := corpus.Istio(t).Below("samples")
	var paths []string
	var objects []*unstructured.Unstructured
	for _, file := range folder.Files {
		path := filepath.Join(folder.Path, file)
		if of, readable := readObjects(t, path); readable {
			paths, objects = append(paths, path), append(objects, of...)
		}
	}
	m, err := FromFiles(t.Context(), paths...)
	if err != nil || len(m.Services) < 20 || len(m.Objects) < 40 {
		t.Fatalf("of %d files %d services and %d objects of configuration: %v", len(paths), len(m.Services), len(m.Objects), err)
	}
	checkWhole(t, objects, m)
	checkProperty(t, m)
}

// checkProperty checks that whatever is captured can be read, that a replay of it is captured as the same mesh, and that both hold without
// names and for several copies.
func checkProperty(t *testing.T, m Mesh) {
	t.Helper()
	checkReplay(t, "captured", m)
	switch three, err := m.Times(3); {
	case err == nil:
		checkReplay(t, "three copies", three)
	case !strings.Contains(err.Error(), "mesh.scale: ") || !strings.Contains(err.Error(), "which is another's"):
		t.Errorf("three copies: %v", err)
	}
	if err := m.Anonymize(); err != nil {
		t.Errorf("without names: %v", err)
		return
	}
	checkCounts(t, m)
	checkReplay(t, "without names", m)
}

func checkReplay(t *testing.T, what string, m Mesh) {
	t.Helper()
	checkReadable(t, what, m)
	again := replayOf(t, m)
	m.Header, again.Header = Header{}, Header{}
	used := map[string]bool{}
	for _, n := range again.Namespaces {
		used[n.Name] = true
	}
	for _, o := range m.Objects {
		used[o.GetNamespace()] = true // or something is lost
	}
	m.Namespaces = slices.DeleteFunc(slices.Clone(m.Namespaces), func(n Namespace) bool { return !used[n.Name] }) // those that only objects which Anonymize leaves out were in
	if !equal(m, again) {
		t.Errorf("%s: a replay is captured as another mesh:\n%s", what, cmp.Diff(written(t, m), written(t, again)))
	}
}

// readObjects returns the objects of a file as client-go reads them. readable reports whether the file has nothing else.
func readObjects(t *testing.T, path string) (all []*unstructured.Unstructured, readable bool) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for decoder := yaml.NewYAMLOrJSONDecoder(f, 4096); ; {
		var value any
		switch err := decoder.Decode(&value); {
		case errors.Is(err, io.EOF):
			return all, len(all) > 0
		case err != nil:
			return nil, false
		case value == nil: // between two marks
			continue
		}
		fields, _ := value.(map[string]any)
		o := whole(&unstructured.Unstructured{Object: fields})
		if o.GetAPIVersion() == "" || o.GetKind() == "" {
			return nil, false
		}
		if !o.IsList() {
			all = append(all, o)
			continue
		}
		list, err := o.ToList()
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			all = append(all, &list.Items[i])
		}
	}
}

// ofMesh counts the objects that are services, workloads or configuration, and not the control plane's own.
func ofMesh(objects []*unstructured.Unstructured) (n int) {
	for _, o := range objects {
		switch _, ok := Configuration(o.GroupVersionKind()); {
		case isControlPlane(o): // it is described, and not captured
		case ok:
			n++
		case slices.Contains([]string{"Service", "Pod", "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps"}, o.GroupVersionKind().GroupKind().String()):
			n++
		}
	}
	return n
}

// checkWhole checks that each object is counted, and that the mesh has the configuration of all objects that are not left out.
func checkWhole(t *testing.T, objects []*unstructured.Unstructured, m Mesh) {
	t.Helper()
	checkCounts(t, m)
	read, specs := map[string]int{}, map[string][]any{}
	for _, o := range objects {
		read[plural(o)]++
		specs[plural(o)+" "+o.GetName()] = append(specs[plural(o)+" "+o.GetName()], o.Object["spec"])
	}
	for _, c := range m.Captured {
		if read[c.Kind] != c.Read {
			t.Errorf("%d %s are counted, want %d", c.Read, c.Kind, read[c.Kind])
		}
		delete(read, c.Kind)
	}
	if len(read) > 0 {
		t.Errorf("not counted: %v", read)
	}
	for _, o := range m.Objects {
		same := false
		for _, spec := range specs[plural(o)+" "+o.GetName()] {
			same = same || cmp.Equal(spec, o.Object["spec"])
		}
		if !same {
			t.Errorf("%s: its specification is not the one in the file", Identity(o.GetKind(), o.GetNamespace(), o.GetName()))
		}
	}
}
