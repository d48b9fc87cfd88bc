package record

import (
	"slices"
	"testing"

	"scaler.mesh/scaler/pkg/scenario"
)

// notConditions are fields of the scenario by which runs are compared that no condition states as a
// text, with the reason.
var notConditions = map[string]string{
	"controlPlane.env": "the settings of the control plane, one by one, are what is compared",
	"controlPlane.set": "the settings of the control plane, one by one, are what is compared",
	"repeats":          "the runs of a scenario have their number, Run.Repeat",
}

// TestEveryParameterIsACondition checks that each field of a scenario in which runs must be alike, or
// by which they are compared, is stated by one condition of the same kind.
func TestEveryParameterIsACondition(t *testing.T) {
	stated := map[string]scenario.Comparability{}
	names := map[string]bool{}
	for _, c := range Conditions {
		if names[c.Name] {
			t.Errorf("%s is there twice", c.Name)
		}
		names[c.Name] = true
		for _, path := range c.Paths {
			if _, ok := scenario.Of(path); !ok {
				t.Errorf("%s states %s, which is no field", c.Name, path)
			}
			if stated[path] != "" {
				t.Errorf("%s is stated twice", path)
			}
			stated[path] = c.Kind()
		}
	}
	for _, p := range scenario.Parameters {
		want := p.Compared
		rolls := slices.ContainsFunc(scenario.Rolling, p.AppliesTo) // records of latency alone are not compared
		if !rolls || want == scenario.Irrelevant || notConditions[p.Path] != "" {
			want = ""
		}
		if stated[p.Path] != want {
			t.Errorf("%s is stated as %q, want %q", p.Path, stated[p.Path], want)
		}
	}
}

func TestProgramSource(t *testing.T) {
	r := Run{Environment: Environment{
		ControlPlane: ControlPlaneSource{Program: "b"},
		Programs:     map[string]Program{"etcd": {Source: "build", Digest: "a"}, "plane": {Source: "image", Digest: "b"}},
	}}
	if got := r.programSource(); got != "image" {
		t.Errorf("%q, want that of the control plane's program", got)
	}
	r.Environment.ControlPlane.Program = "c"
	if got := r.programSource(); got != "" {
		t.Errorf("%q of an unknown program", got)
	}
}
