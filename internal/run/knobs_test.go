package run

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/place/attach"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/scenario"
)

func TestKnobs(t *testing.T) {
	strict, permissive := controlplane.Modes["strict"], controlplane.Modes["permissive"]
	for _, c := range []struct {
		mode       string
		own        scenario.Settings
		want       scenario.Settings
		preset     string
		name       string
		complaints string // of Validate; "" means none
	}{
		{"permissive", scenario.Settings{}, permissive, "permissive", "istiod-permissive-200", ""},
		{"strict", scenario.Settings{}, strict, "strict", "istiod-strict-200", ""},
		{"permissive", scenario.Settings{Scope: "declared"}, scenario.Settings{MTLS: "permissive", Scope: "declared", Authz: "none"}, "", "istiod-permissive-declared-none-200", ""},
		{"strict", scenario.Settings{MTLS: "permissive"}, scenario.Settings{MTLS: "permissive", Scope: "declared", Authz: "declared"}, "", "istiod-permissive-declared-declared-200", ""},
		{"permissive", strict, strict, "", "istiod-strict-declared-declared-200", ""},
		{"lenient", scenario.Settings{}, scenario.Settings{}, "lenient", "istiod-lenient-200", "mesh.mode"},
		{"strict", scenario.Settings{Authz: "maybe"}, scenario.Settings{MTLS: "strict", Scope: "declared", Authz: "maybe"}, "", "istiod-strict-declared-maybe-200", "mesh.settings.authz"},
	} {
		s := DefaultSpec()
		s.Mesh.Mode, s.Mesh.Settings = []string{c.mode}, c.own
		if got := s.Knobs(); got != c.want {
			t.Errorf("%s, %+v: knobs are %+v, want %+v", c.mode, c.own, got, c.want)
		}
		if s.preset() != c.preset || s.Name() != c.name {
			t.Errorf("%s, %+v: preset %q, name %q, want %q, %q", c.mode, c.own, s.preset(), s.Name(), c.preset, c.name)
		}
		if err := s.Validate(); (err == nil) != (c.complaints == "") || err != nil && !strings.Contains(err.Error(), c.complaints) {
			t.Errorf("%s, %+v: Validate is %v, want an error with %q", c.mode, c.own, err, c.complaints)
		}
	}
}

// The names of nodes, which are labels, contain that of the run, which may be longer than a label.
func TestNamesOfNodesAreLabels(t *testing.T) {
	repeats, _ := scenario.Of("repeats")
	seen := map[string]bool{}
	for _, waypoints := range []string{"none", "namespace"} {
		for _, mtls := range []string{"permissive", "strict"} {
			s := DefaultSpec()
			s.Mesh.Pods, s.Repeat = []int{scenario.MaxPods}, int(repeats.Max)
			s.Mesh.Settings = scenario.Settings{MTLS: mtls, Authz: "declared"}
			s.Mesh.Dataplane, s.Mesh.Waypoints = scenario.List[string]{"ambient"}, waypoints
			s.ControlPlane.Version, s.ControlPlane.Upgrade.To = "1.29.1", "1.31.0"
			name := (&Existing{Place: attach.Place{ID: "12345678"}}).Label(s.shortName())
			for _, of := range []string{s.shortName(), name, kwok.PoolOf(name).Node(scenario.MaxPods, name).Name} {
				if problems := validation.IsDNS1123Label(of); problems != nil || seen[of] {
					t.Errorf("%s: %v, again: %t", of, problems, seen[of])
				}
				seen[of] = true
			}
		}
	}
	if s := DefaultSpec(); s.shortName() != s.Name() {
		t.Errorf("got %s for %s", s.shortName(), s.Name())
	}
}

// TestAskedDoesNotDependOnAddresses checks that equal scenarios with pointers in them have the same text.
func TestAskedDoesNotDependOnAddresses(t *testing.T) {
	one, other := DefaultSpec(), DefaultSpec()
	one.Mesh.Parts.Zones, other.Mesh.Parts.Zones = new(3), new(3)
	if one.Asked() != other.Asked() {
		t.Errorf("%s\n%s", one.Asked(), other.Asked())
	}
	other.Mesh.Parts.Zones = new(4)
	if one.Asked() == other.Asked() {
		t.Error("another scenario has the same text")
	}
}
