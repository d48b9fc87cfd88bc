package run

import (
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/scenario"
)

func TestDataplane(t *testing.T) {
	for name, c := range map[string]struct {
		set        func(*Spec)
		complaints string // "" = none
	}{
		"ambient":              {func(*Spec) {}, ""},
		"one that is not":      {func(s *Spec) { s.Mesh.Dataplane = []string{"none"} }, `mesh.dataplane: got "none", want sidecar or ambient or mixed`},
		"mixed":                {mixedOf(2), ""},
		"mixed and scope":      {and(mixedOf(3), func(s *Spec) { s.Mesh.Settings = scenario.Settings{Scope: "all"} }), ""},
		"mixed, a namespace":   {mixedOf(1), "mesh.namespaces: got 1, want 2 or more with mesh.dataplane mixed"},
		"mixed, waypoints":     {and(mixedOf(2), func(s *Spec) { s.Mesh.Waypoints = controlplane.ServiceWaypoints }), `mesh.waypoints: got "service", want none with mesh.dataplane mixed`},
		"mixed, real sidecars": {and(mixedOf(2), func(s *Spec) { s.Mesh.Sidecars.Real = 1 }), "mesh.sidecars.real: got 1"},
		"another plane's":      {func(s *Spec) { s.ControlPlane.Name = "reference" }, "mesh.dataplane"},
		"scope":                {func(s *Spec) { s.Mesh.Settings = scenario.Settings{Scope: "all"} }, `mesh.settings.scope: got "all"`},
		"real sidecars":        {func(s *Spec) { s.Mesh.Sidecars.Real = 1 }, "mesh.sidecars.real: got 1"},
		"short certificates":   {func(s *Spec) { s.Mesh.Sidecars.CertificateLifetime = scenario.Duration(time.Minute) }, "mesh.sidecars.certificateLifetime: got 1m0s"},
		"a profile":            {func(s *Spec) { s.Mesh.Profile = topology.Typical }, "mesh.dataplane"},
		"state of the world":   {func(s *Spec) { s.Mesh.Sidecars.XDS = "sotw" }, `mesh.sidecars.xds: got "sotw"`},
		"sidecars and scope": {func(s *Spec) {
			s.Mesh.Dataplane, s.Mesh.Settings = []string{controlplane.Sidecars}, scenario.Settings{Scope: "all"}
		}, ""},
		"a knob of its modes": {func(s *Spec) { s.Mesh.Settings = scenario.Settings{MTLS: "strict"} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := DefaultSpec()
			s.Mesh.Dataplane = []string{"ambient"}
			c.set(&s)
			err := s.Validate()
			if (err == nil) != (c.complaints == "") || err != nil && !strings.Contains(err.Error(), c.complaints) {
				t.Errorf("the error is %v, want one of %q", err, c.complaints)
			}
		})
	}
}

// mixedOf returns a run of a mixed mesh.
func mixedOf(namespaces int) func(*Spec) {
	return func(s *Spec) { s.Mesh.Dataplane, s.Mesh.Namespaces = []string{"mixed"}, namespaces }
}

func and(first, second func(*Spec)) func(*Spec) {
	return func(s *Spec) {
		first(s)
		second(s)
	}
}

// Nodes, names and knobs follow the data plane.
func TestRunsOfBothDataplanes(t *testing.T) {
	l := ladderOf([]int{100}, "strict")
	l.Spec.Mesh.PodsPerNode, l.Spec.Mesh.Dataplane = 30, []string{"sidecar", "ambient"}
	if err := l.Validate(); err != nil {
		t.Fatal(err)
	}
	runs := l.Runs()
	if len(runs) != 2 || runs[0].Name() != "istiod-strict-100" || runs[1].Name() != "istiod-ambient-strict-100" {
		t.Fatalf("the runs are %s and others, %d", runs[0].Name(), len(runs))
	}
	if got := runs[0].nodes(scenario.Parts{}); got != 1 {
		t.Errorf("sidecars have %d nodes, want 1", got)
	}
	if got := runs[1].nodes(scenario.Parts{}); got != 4 {
		t.Errorf("there are %d nodes with a proxy, want 4", got)
	}
	if sidecars, ambient := runs[0].Knobs().Scope, runs[1].Knobs().Scope; sidecars != "declared" || ambient != "" {
		t.Errorf("the scopes are %q and %q", sidecars, ambient)
	}
	l.Spec.Mesh.Dataplane = []string{"ambient", "ambient"}
	if err := l.Validate(); err == nil || !strings.Contains(err.Error(), "mesh.dataplane") {
		t.Error("a data plane is there twice")
	}
}
