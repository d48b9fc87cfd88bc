package run

import (
	"strings"
	"testing"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
)

// A control plane states what its mesh can be asked for: what it cannot is refused
// before anything is started, and its modes are its own.
func TestDriverOfAnotherKind(t *testing.T) {
	another := controlplane.Driver{
		Name: "another",
		Dataplane: controlplane.Dataplane{
			Modes: []controlplane.Mode{{Name: "open", Knobs: controlplane.Knobs{MTLS: "always", Scope: "none", Authz: "none"}}, {Name: "closed"}},
			Proxy: controlplane.Proxy{XDS: &controlplane.XDS{Variants: []string{"sotw"}}, Certificates: &controlplane.Certificates{}},
		},
	}
	for name, tc := range map[string]struct {
		change func(*Spec)
		want   string // in the error; "" = none
	}{
		"as it is":     {func(*Spec) {}, ""},
		"another mode": {func(s *Spec) { s.Mode = "closed" }, ""},
		"no mode":      {func(s *Spec) { s.Mode = "strict" }, "--mode"},
		"knob":         {func(s *Spec) { s.Mesh.Settings.Scope = "all" }, "parsing --scope \"all\": want none with --control-plane another, whose --mode sets all knobs"},
		"delta":        {func(s *Spec) { s.Mesh.Sidecars.XDS = "delta" }, "--xds"},
		"storm":        {func(s *Spec) { s.Load.CertificateStorm = true }, "--certificate-storm"},
		"lifetime":     {func(s *Spec) { s.Mesh.Sidecars.CertificateLifetime = time.Minute }, "--certificate-lifetime"},
		"real":         {func(s *Spec) { s.Mesh.Sidecars.Real = 1 }, "--real-sidecars"},
	} {
		s := DefaultSpec()
		s.Drivers = []controlplane.Driver{another}
		s.ControlPlane.Name, s.Mode, s.Mesh.Sidecars.XDS = "another", "open", another.Proxy.Variants()[0]
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
