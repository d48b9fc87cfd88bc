package run

import (
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/scenario"
)

// A mesh for which the memory is not enough is refused with the size for which it is.
func TestCheckSize(t *testing.T) {
	synthetic := func(pods int) Spec {
		s := DefaultSpec()
		s.Mesh.Pods = scenario.List[int]{pods}
		return s
	}
	captured := func(scale int) Spec {
		m, err := ReadMesh("sample:bookinfo")
		if err != nil {
			t.Fatal(err)
		}
		all, err := m.times([]int{scale}, 0)
		if err != nil {
			t.Fatal(err)
		}
		s := DefaultSpec()
		s.UseMesh(all[0])
		return s
	}
	for name, test := range map[string]struct {
		spec Spec
		free uint64
		want string
	}{
		"enough":            {synthetic(200), synthetic(200).requirements().Memory(), ""},
		"a warning's":       {synthetic(200), synthetic(200).requirements().Memory() * 2 / 3, ""},
		"too many pods":     {synthetic(4000), synthetic(1000).requirements().Memory(), "mesh.pods: got 4000, want 1000 at most: about 13.6GiB of memory are needed, and this machine has 4.22GiB free"},
		"none fits":         {synthetic(1), 1e6, ""}, // as a check of the machine says
		"too many copies":   {captured(100), captured(10).requirements().Memory(), "mesh.scale: got 100, want 10 at most: "},
		"no copy fits":      {captured(100), captured(1).requirements().Memory() - 1, "mesh.file: got \"sample:bookinfo\", want a smaller mesh: "},
		"enough for copies": {captured(100), captured(100).requirements().Memory(), ""},
	} {
		err := test.spec.checkSize(test.free)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	if one, ten := captured(1).requirements(), captured(10).requirements(); ten.Pods != 10*one.Pods || ten.Objects != 10*one.Objects {
		t.Errorf("%+v, want ten times %+v", ten, one)
	}
}

// A captured mesh that does not fit has the largest share of its pods that does.
func TestFittingShare(t *testing.T) {
	m, err := ReadMesh("sample:bookinfo")
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Mesh.Workloads {
		m.Mesh.Workloads[i].Spec.Replicas = 1000
	}
	spec := DefaultSpec()
	spec.UseMesh(m)
	need := func(share float64) uint64 {
		part := *m
		part.Mesh = m.Mesh.Share(share)
		s := DefaultSpec()
		s.UseMesh(&part)
		return s.requirements().Memory()
	}
	for free, want := range map[uint64]scenario.Share{
		need(1): 0, (need(1) + 1) / 2: 0, need(0.45): 0.45, need(0.45) - 1: 0.4, need(0.05): 0.05, need(0.05) - 1: 0,
	} {
		if got := spec.fittingShare(free); got != want {
			t.Errorf("%d bytes: got %s, want %s", free, got, want)
		}
	}
	if err, want := spec.checkSize(need(0.45)), "mesh.share: got \"100%\", want 45% at most: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("a mesh that does not fit: %v, want %q", err, want)
	}
	if err, want := spec.checkSize(need(0.05)-1), "mesh.file: got "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("a mesh of which no share fits: %v, want %q", err, want)
	}
	if spec.Pods() != 6000 {
		t.Errorf("the specification has %d pods now", spec.Pods())
	}
}
