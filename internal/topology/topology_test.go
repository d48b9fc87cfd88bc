package topology

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/test/golden"
)

func TestBuildGolden(t *testing.T) {
	for _, shape := range []string{Star, Layers, Random} {
		t.Run(shape, func(t *testing.T) {
			mesh := Build(Spec{Pods: 20, Services: 9, Namespaces: 2, Shape: shape, FanOut: 2, Seed: 1})
			got, err := json.MarshalIndent(mesh, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Compare(t, filepath.Join("testdata", shape+".json"), string(got)+"\n")
		})
	}
}

// TestBuildProperties checks what the shapes promise over many sizes and seeds.
func TestBuildProperties(t *testing.T) {
	for _, shape := range []string{Star, Layers, Random} {
		for pods := 1; pods <= 200; pods += 7 {
			for seed := range uint64(3) {
				spec := Spec{Pods: pods, Services: (pods + 2) / 3, Shape: shape, FanOut: int(seed) + 1, Seed: seed}
				t.Run(fmt.Sprintf("%s/%d/%d", shape, pods, seed), func(t *testing.T) {
					if err := spec.Validate(); err != nil {
						t.Fatal(err)
					}
					checkMesh(t, spec.Defaults(), Build(spec))
				})
			}
		}
	}
}

func checkMesh(t *testing.T, spec Spec, mesh Mesh) {
	t.Helper()
	if diff := cmp.Diff(mesh, Build(spec)); diff != "" {
		t.Errorf("building twice differs:\n%s", diff)
	}
	if len(mesh.Namespaces) != spec.Namespaces || len(mesh.Services) != spec.Services {
		t.Fatalf("%d namespaces, %d services, want %d, %d", len(mesh.Namespaces), len(mesh.Services), spec.Namespaces, spec.Services)
	}
	pods := 0
	names := make(map[string]bool)
	called := make([]int, len(mesh.Services))
	for i, s := range mesh.Services {
		pods += s.Pods
		names[s.Name] = true
		if s.Pods < spec.Pods/spec.Services || s.Pods > spec.Pods/spec.Services+1 {
			t.Errorf("%s has %d pods, not an even share", s.Name, s.Pods)
		}
		if want := mesh.Namespaces[i%spec.Namespaces]; s.Namespace != want {
			t.Errorf("%s in namespace %s, want %s", s.Name, s.Namespace, want)
		}
		if !slices.IsSorted(s.Calls) || len(slices.Compact(slices.Clone(s.Calls))) != len(s.Calls) {
			t.Errorf("calls of %s: %v, want ascending without duplicates", s.Name, s.Calls)
		}
		for _, j := range s.Calls {
			called[j]++
			if j == i {
				t.Errorf("%s calls itself", s.Name)
			}
			if spec.Shape == Layers && j < i {
				t.Errorf("%d calls %d: not forward", i, j)
			}
		}
		if spec.Shape == Random && len(s.Calls) != min(spec.FanOut, spec.Services-1) {
			t.Errorf("%s calls %d, want %d", s.Name, len(s.Calls), spec.FanOut)
		}
	}
	if pods != spec.Pods || len(names) != spec.Services {
		t.Errorf("%d pods, %d names, want %d, %d", pods, len(names), spec.Pods, spec.Services)
	}
	if spec.Shape == Star && (called[0] != spec.Services-1 || len(mesh.Services[0].Calls) != 0) {
		t.Errorf("hub called by %d and calls %v, want by all others and none", called[0], mesh.Services[0].Calls)
	}
}

func TestLayersSpreadCalls(t *testing.T) {
	mesh := Build(Spec{Pods: 400, Services: 40, Shape: Layers, FanOut: 3, Seed: 7})
	called := make([]int, 40)
	for i, s := range mesh.Services {
		if want := 3; i < 30 && len(s.Calls) != want {
			t.Errorf("service %d calls %d, want %d", i, len(s.Calls), want)
		}
		for _, j := range s.Calls {
			if j/10 != i/10+1 {
				t.Errorf("%d calls %d: not the next layer", i, j)
			}
			called[j]++
		}
	}
	for j, n := range called {
		if want := 3; j >= 10 && n != want {
			t.Errorf("service %d called by %d, want %d", j, n, want)
		}
	}
}

func TestSeedDecidesCalls(t *testing.T) {
	for _, shape := range []string{Layers, Random} {
		a := Build(Spec{Pods: 400, Shape: shape, Seed: 0})
		b := Build(Spec{Pods: 400, Shape: shape, Seed: 1})
		if cmp.Equal(a, b) {
			t.Errorf("%s: seeds 0 and 1 give the same mesh", shape)
		}
	}
}

func TestDefaults(t *testing.T) {
	got := Spec{Pods: 1601}.Defaults()
	want := Spec{Pods: 1601, Services: 161, Namespaces: 4, Shape: Layers, FanOut: 3}
	if got != want {
		t.Errorf("defaults are %+v, want %+v", got, want)
	}
}

func TestValidate(t *testing.T) {
	tests := []struct {
		spec Spec
		want string // "" means valid
	}{
		{Spec{Pods: 1}, ""},
		{Spec{Pods: MaxPods}, ""},
		{Spec{Pods: 5, Services: 5, Namespaces: 5, FanOut: 1_000_000}, ""},
		{Spec{}, "mesh.pods: got 0, want 1 to 100000"},
		{Spec{Pods: -5}, "mesh.pods: got -5, want 1 to 100000"},
		{Spec{Pods: 1_000_000_000}, "mesh.pods: got 1000000000, want 1 to 100000"},
		{Spec{Pods: 10, Services: 11}, "mesh.services: got 11, want 1 to 10, no more than pods"},
		{Spec{Pods: 10, Services: -1}, "mesh.services: got -1, want 1 to 10, no more than pods"},
		{Spec{Pods: 10, Services: 2, Namespaces: 3}, "mesh.namespaces: got 3, want 1 to 2, no more than services"},
		{Spec{Pods: 10, Namespaces: -3}, "mesh.namespaces: got -3, want 1 to 1, no more than services"},
		{Spec{Pods: 10, Shape: "ring"}, `mesh.topology: got "ring", want star, layers or random`},
		{Spec{Pods: 10, FanOut: -1}, "mesh.fanOut: got -1, want 1 or more"},
	}
	for _, test := range tests {
		err := test.spec.Validate()
		if got := fmt.Sprint(err); err != nil && got != test.want || err == nil && test.want != "" {
			t.Errorf("%+v: got %q, want %q", test.spec, got, test.want)
		}
		var field *scenario.Error
		if err != nil && !errors.As(err, &field) {
			t.Errorf("%+v: %T is no *scenario.Error", test.spec, err)
		}
	}
}
