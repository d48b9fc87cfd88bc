package run

import (
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/scenario"
)

// A control plane states what its mesh can be asked for: what it cannot is refused
// before anything is started, and its modes are its own.
func TestDriverOfAnotherKind(t *testing.T) {
	another := controlplane.Driver{
		Name: "another",
		Dataplane: controlplane.Dataplane{
			Modes: []controlplane.Mode{{Name: "open", Knobs: scenario.Settings{MTLS: "always", Scope: "none", Authz: "none"}}, {Name: "closed"}},
			Proxy: controlplane.Proxy{XDS: &controlplane.XDS{Variants: []string{"sotw"}}, Certificates: &controlplane.Certificates{}},
		},
	}
	for name, tc := range map[string]struct {
		change func(*Spec)
		want   string // in the error; "" = none
	}{
		"as it is":     {func(*Spec) {}, ""},
		"another mode": {func(s *Spec) { s.Mesh.Mode = []string{"closed"} }, ""},
		"no mode":      {func(s *Spec) { s.Mesh.Mode = []string{"strict"} }, `mesh.mode: got "strict", want open or closed or both`},
		"knob":         {func(s *Spec) { s.Mesh.Settings.Scope = "all" }, `mesh.settings.scope: got "all", want none with controlPlane.name another, whose mode sets all settings`},
		"delta":        {func(s *Spec) { s.Mesh.Sidecars.XDS = "delta" }, "mesh.sidecars.xds"},
		"storm":        {func(s *Spec) { s.Load.CertificateStorm = true }, "load.certificateStorm"},
		"lifetime":     {func(s *Spec) { s.Mesh.Sidecars.CertificateLifetime = scenario.Duration(time.Minute) }, "mesh.sidecars.certificateLifetime"},
		"real":         {func(s *Spec) { s.Mesh.Sidecars.Real = 1 }, "mesh.sidecars.real"},
	} {
		s := DefaultSpec()
		s.Drivers = []controlplane.Driver{another}
		s.ControlPlane.Name, s.Mesh.Mode, s.Mesh.Sidecars.XDS = "another", []string{"open"}, another.Proxy.Variants()[0]
		tc.change(&s)
		err := s.Validate()
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
		if name == "as it is" && (s.Name() != "another-open-200" || s.Knobs() != another.Modes[0].Knobs) {
			t.Errorf("it is called %s and has the knobs %+v", s.Name(), s.Knobs())
		}
	}
}
