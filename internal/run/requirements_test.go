package run

import (
	"strings"
	"testing"

	"scaler.mesh/scaler/pkg/scenario"
)

// A mesh for which this machine has too little memory, open files or disk is refused with the size for which it has enough.
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
		have []resource
		want string
	}{
		"enough":                        {synthetic(200), []resource{memory(synthetic(200).requirements().Memory())}, ""},
		"a warning's":                   {synthetic(200), []resource{memory(synthetic(200).requirements().Memory() * 2 / 3)}, ""},
		"too many pods":                 {synthetic(4000), []resource{memory(synthetic(1000).requirements().Memory())}, "mesh.pods: got 4000, want 1000 at most: about 13.6GiB of memory are needed, and this machine has 4.22GiB free"},
		"none fits":                     {synthetic(1), []resource{memory(1e6)}, ""}, // as a check of the machine says
		"too many copies":               {captured(100), []resource{memory(captured(10).requirements().Memory())}, "mesh.scale: got 100, want 10 at most: "},
		"no copy fits":                  {captured(100), []resource{memory(captured(1).requirements().Memory() - 1)}, "mesh.file: got \"sample:bookinfo\", want a smaller mesh: "},
		"too many copies for the files": {captured(100), []resource{files(captured(30).requirements().OpenFiles())}, "mesh.scale: got 100, want 30 at most: 1700 open files are needed, and the hard limit is 860 (ulimit -Hn)"},
		"too many copies for the disk":  {captured(100), []resource{disk(recordBytes(30), "out")}, "mesh.scale: got 100, want 5 at most: about 129MiB of disk are needed for the record, and out has 101MiB free"},
		"too many pods for the files":   {synthetic(4000), []resource{files(2500)}, "mesh.pods: got 4000, want 1000 at most: 8500 open files are needed, and the hard limit is 2500 (ulimit -Hn)"},
		"the least of all":              {captured(100), []resource{memory(captured(20).requirements().Memory()), files(captured(10).requirements().OpenFiles())}, "mesh.scale: got 100, want 10 at most: about "},
		"no files for a run":            {captured(100), []resource{files(100)}, ""},
		"no disk for a run":             {captured(100), []resource{disk(1e6, "out")}, ""},
		"enough for copies":             {captured(100), []resource{memory(captured(100).requirements().Memory())}, ""},
	} {
		err := test.spec.checkSize(test.have)
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
		if got := spec.fittingShare([]resource{memory(free)}); got != want {
			t.Errorf("%d bytes: got %s, want %s", free, got, want)
		}
	}
	if err, want := spec.checkSize([]resource{memory(need(0.45))}), "mesh.share: got \"100%\", want 45% at most: "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("a mesh that does not fit: %v, want %q", err, want)
	}
	if err, want := spec.checkSize([]resource{memory(need(0.05) - 1)}), "mesh.file: got "; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("a mesh of which no share fits: %v, want %q", err, want)
	}
	if spec.Pods() != 6000 {
		t.Errorf("the specification has %d pods now", spec.Pods())
	}
}
