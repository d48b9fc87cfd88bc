package controlplane

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/internal/process"
)

func TestResources(t *testing.T) {
	all := "GOMAXPROCS=" + strconv.Itoa(runtime.NumCPU())
	for _, test := range []struct {
		name      string
		resources Resources
		want      []string
	}{
		{"all of the machine", Resources{}, []string{"A=1", "B=2", all}},
		{"processors", Resources{MaxProcs: 3, Quota: process.Quota{Processors: 1}}, []string{"A=1", "B=2", "GOMAXPROCS=3"}},
		{"memory", Resources{MemoryBytes: 1000}, []string{"A=1", "B=2", all, "GOMEMLIMIT=900"}},
		{"its own way", Resources{MemoryBytes: 1000, Env: []string{"GOMEMLIMIT=off", "B=", "C=x=y"}}, []string{"A=1", "B=", all, "GOMEMLIMIT=off", "C=x=y"}},
	} {
		if diff := cmp.Diff(test.want, test.resources.Environment("A=1", "B=2")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	p := Resources{Quota: process.Quota{Processors: 0.5}, MaxProcs: 1, MemoryBytes: 1000, Env: []string{"X=1"}}
	want := map[string]string{"mine": "kept", "GOMEMLIMIT": "900", "X": "1"}
	if diff := cmp.Diff(want, p.Settings(map[string]string{"mine": "kept"})); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if spec := p.Apply(process.Spec{Name: "x"}); spec.Name != "x" || spec.Priority != process.PriorityFirst || spec.MemoryLimit != 0 || spec.Quota.Processors != 0.5 {
		t.Errorf("a limit that is not enforced: %+v", spec)
	}
	p.Enforced = true
	if spec := p.Apply(process.Spec{}); spec.MemoryLimit != 1000 {
		t.Errorf("a limit that is enforced: %+v", spec)
	}
}
