package istio

import (
	"path/filepath"
	"testing"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/test/corpus"
)

// TestCorpus checks that istiod's types read what is captured of files that others wrote, also without names, and twice.
func TestCorpus(t *testing.T) {
	samples := func(t testing.TB) corpus.Folder { return corpus.Istio(t).Below("samples") }
	for name, of := range map[string]func(testing.TB) corpus.Folder{"cases": corpus.Cases, "samples": samples} {
		t.Run(name, func(t *testing.T) {
			folder, captured := of(t), 0
			for _, file := range folder.Files {
				m, err := capture.FromFiles(t.Context(), filepath.Join(folder.Path, file))
				if err != nil {
					continue // a test of package capture checks why
				}
				captured++
				twice, err := m.Times(2)
				if err != nil {
					t.Errorf("%s, twice: %v", file, err)
				}
				hidden := m
				if err := hidden.Anonymize(); err != nil {
					t.Errorf("%s, without names: %v", file, err)
				}
				for what, m := range map[string]*capture.Mesh{"captured": &m, "twice": &twice, "without names": &hidden} {
					if err := checkMesh(m); err != nil {
						t.Errorf("%s, %s: %v", file, what, err)
					}
				}
			}
			if captured < 12 {
				t.Errorf("%d files were captured, want 12 at least", captured)
			}
		})
	}
}
