package run

import (
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/topology"
)

func TestDataplane(t *testing.T) {
	for name, c := range map[string]struct {
		set        func(*Spec)
		complaints string // "" = none
	}{
		"ambient":              {func(*Spec) {}, ""},
		"one that is not":      {func(s *Spec) { s.Dataplane = "none" }, `--dataplane "none": want sidecar or ambient or mixed`},
		"mixed":                {mixedOf(2), ""},
		"mixed and scope":      {and(mixedOf(3), func(s *Spec) { s.Mesh.Settings = controlplane.Knobs{Scope: "all"} }), ""},
		"mixed, a namespace":   {mixedOf(1), "--namespaces 1: want 2 or more with --dataplane mixed"},
		"mixed, waypoints":     {and(mixedOf(2), func(s *Spec) { s.Mesh.Waypoints = controlplane.ServiceWaypoints }), `--waypoints "service": want none with --dataplane mixed`},
		"mixed, real sidecars": {and(mixedOf(2), func(s *Spec) { s.Mesh.Sidecars.Real = 1 }), "--real-sidecars 1"},
		"mixed, changes":       {and(mixedOf(2), func(s *Spec) { s.Load.Changes.PerSecond = 1 }), "--change"},
		"another plane's":      {func(s *Spec) { s.ControlPlane.Name = "reference" }, "--dataplane"},
		"no pods on a node":    {func(s *Spec) { s.Mesh.PodsPerNode = 0 }, "--pods-per-node 0"},
		"too many":             {func(s *Spec) { s.Mesh.PodsPerNode = 251 }, "--pods-per-node 251"},
		"scope":                {func(s *Spec) { s.Mesh.Settings = controlplane.Knobs{Scope: "all"} }, `--scope "all"`},
		"real sidecars":        {func(s *Spec) { s.Mesh.Sidecars.Real = 1 }, "--real-sidecars 1"},
		"short certificates":   {func(s *Spec) { s.Mesh.Sidecars.CertificateLifetime = time.Minute }, "--certificate-lifetime 1m0s"},
		"a profile":            {func(s *Spec) { s.Topology.Profile = topology.Typical }, "--dataplane"},
		"state of the world":   {func(s *Spec) { s.Mesh.Sidecars.XDS = "sotw" }, `--xds "sotw"`},
		"sidecars and scope":   {func(s *Spec) { s.Dataplane, s.Mesh.Settings = controlplane.Sidecars, controlplane.Knobs{Scope: "all"} }, ""},
		"a knob of its modes":  {func(s *Spec) { s.Mesh.Settings = controlplane.Knobs{MTLS: "strict"} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := DefaultSpec()
			s.Dataplane = "ambient"
			c.set(&s)
			err := s.Validate()
			if (err == nil) != (c.complaints == "") || err != nil && !strings.Contains(err.Error(), c.complaints) {
				t.Errorf("the error is %v, want one of %q", err, c.complaints)
			}
		})
	}
}

// mixedOf is a run of a mixed mesh.
func mixedOf(namespaces int) func(*Spec) {
	return func(s *Spec) { s.Dataplane, s.Topology.Namespaces = "mixed", namespaces }
}

func and(first, second func(*Spec)) func(*Spec) {
	return func(s *Spec) {
		first(s)
		second(s)
	}
}

// Nodes, names and knobs follow the data plane.
func TestRunsOfBothDataplanes(t *testing.T) {
	spec := DefaultSpec()
	spec.Mesh.PodsPerNode = 30
	l := Ladder{Spec: spec, Pods: []int{100}, Modes: []string{"strict"}, Dataplanes: []string{"sidecar", "ambient"}}
	if err := l.Validate(); err != nil {
		t.Fatal(err)
	}
	runs := l.Runs()
	if len(runs) != 2 || runs[0].Name() != "istiod-strict-100" || runs[1].Name() != "istiod-ambient-strict-100" {
		t.Fatalf("the runs are %s and others, %d", runs[0].Name(), len(runs))
	}
	if got := runs[0].nodes(topology.Profile{}); got != 1 {
		t.Errorf("sidecars have %d nodes, want 1", got)
	}
	if got := runs[1].nodes(topology.Profile{}); got != 4 {
		t.Errorf("there are %d nodes with a proxy, want 4", got)
	}
	if sidecars, ambient := runs[0].Knobs().Scope, runs[1].Knobs().Scope; sidecars != "declared" || ambient != "" {
		t.Errorf("the scopes are %q and %q", sidecars, ambient)
	}
	l.Dataplanes = []string{"ambient", "ambient"}
	if err := l.Validate(); err == nil {
		t.Error("a data plane is there twice")
	}
}
