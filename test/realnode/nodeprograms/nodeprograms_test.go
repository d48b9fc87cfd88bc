package nodeprograms_test

import (
	"slices"
	"strings"
	"testing"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/test/modulefiles"
	"scaler.mesh/scaler/test/realnode/nodeprograms"
)

func TestModuleFiles(t *testing.T) { modulefiles.Check(t, nodeprograms.Graphs()) }

// The versions reported must be the versions pinned.
func TestPinned(t *testing.T) {
	modules := map[string]string{
		"kubernetes-node": "k8s.io/kubernetes ", "containerd": "github.com/containerd/containerd/v2 ", "cni": "github.com/containernetworking/plugins ",
	}
	for _, g := range nodeprograms.Graphs() {
		for _, p := range g.Programs {
			if module := modules[g.Name]; module == "" || !strings.Contains(g.Mod, module+p.Version) {
				t.Errorf("%s: modules/%s.mod does not pin %q", p.Name, g.Name, module+p.Version)
			}
			if slices.Contains(component.Names(), p.Name) {
				t.Errorf("%s of a real node is among the programs that every scaler has", p.Name)
			}
		}
	}
}

// Programs are looked for in the cache, and listed, where their graphs are given, and nowhere else.
func TestKnownWhereGiven(t *testing.T) {
	without := component.Options{CacheDir: t.TempDir()}
	with := without
	with.Graphs = nodeprograms.Graphs()
	if st, err := component.Find(t.Context(), with, nodeprograms.Kubelet); err != nil || st.Version != component.Version(component.KubeAPIServer) || st.Source != component.SourceBuild {
		t.Errorf("with the graphs: %+v, %v", st, err)
	}
	if st, err := component.Find(t.Context(), without, nodeprograms.Kubelet); err == nil {
		t.Errorf("without the graphs: %+v", st)
	}
	if _, err := component.Paths(t.Context(), without, nodeprograms.Kubelet); err == nil || !strings.Contains(err.Error(), `unknown program "kubelet"`) {
		t.Errorf("without the graphs: %v", err)
	}
}
