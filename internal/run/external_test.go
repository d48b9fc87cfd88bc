package run

import (
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/pkg/scenario"
)

// What an external control plane cannot be asked for, and what only one can, is
// refused before anything is started.
func TestExternalControlPlane(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Spec)
		want   string
	}{
		"as it is":    {func(*Spec) {}, ""},
		"storm":       {func(s *Spec) { s.Load.CertificateStorm = true }, "load.certificateStorm"},
		"lifetime":    {func(s *Spec) { s.Mesh.Sidecars.CertificateLifetime = scenario.Duration(time.Minute) }, "mesh.sidecars.certificateLifetime"},
		"real":        {func(s *Spec) { s.Mesh.Sidecars.Real = 1 }, "mesh.sidecars.real"},
		"processors":  {func(s *Spec) { s.ControlPlane.Processors = 1 }, "controlPlane.processors"},
		"memory":      {func(s *Spec) { s.ControlPlane.Memory = 1 << 30 }, "controlPlane.memory"},
		"environment": {func(s *Spec) { s.ControlPlane.Env = []string{"A=B"} }, "controlPlane.env"},
		"knob":        {func(s *Spec) { s.Mesh.Settings = scenario.Settings{Scope: "all"} }, "mesh.settings.scope"},
		"mode":        {func(s *Spec) { s.Mesh.Mode = []string{"strict"} }, "mesh.mode"},
		"kill": {func(s *Spec) {
			s.Load.Faults = []scenario.Fault{{Kind: scenario.KillControlPlane, Phase: scenario.PhaseSteady}}
		}, "load.faults"},
		"streams": {func(s *Spec) {
			s.Load.Faults = []scenario.Fault{{Kind: scenario.ResetStreams, Share: 1, Phase: scenario.PhaseSteady}}
		}, ""},
		"in probe": {func(s *Spec) {
			s.Load.Faults = []scenario.Fault{{Kind: scenario.ResetStreams, Share: 1, Phase: scenario.PhaseProbe}}
		}, "load.faults"},
		"no port":      {func(s *Spec) { s.ControlPlane.Name = "xds://localhost" }, "controlPlane.name"},
		"nothing else": {func(s *Spec) { s.ControlPlane.Name = "xds" }, "want istiod, osm, linkerd, reference or xds://HOST:PORT"},
	} {
		s := DefaultSpec()
		s.ControlPlane.Name, s.Mesh.Mode, s.ControlPlane.Connection.Plaintext = "xds://localhost:18000", []string{"served"}, true
		tc.change(&s)
		err := s.Validate()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
		if name == "as it is" && s.Name() != "xds-served-200" {
			t.Errorf("it is called %s", s.Name())
		}
	}
}

// With proxies that do not speak xDS there is no variant of it, and certificates have the lifetime that the control plane
// gives them.
func TestWithoutXDS(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Spec)
		want   string
	}{
		"as it is": {func(*Spec) {}, ""},
		"variant":  {func(s *Spec) { s.Mesh.Sidecars.XDS = "delta" }, `mesh.sidecars.xds: got "delta", want none`},
		"lifetime": {func(s *Spec) { s.Mesh.Sidecars.CertificateLifetime = scenario.Duration(time.Hour) }, "mesh.sidecars.certificateLifetime: got 1h0m0s, want none"},
		"storm":    {func(s *Spec) { s.Load.CertificateStorm = true }, ""},
	} {
		s := DefaultSpec()
		s.ControlPlane.Name, s.Mesh.Mode, s.Mesh.Sidecars.XDS = "linkerd", []string{"automatic"}, ""
		tc.change(&s)
		err := s.Validate()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}
