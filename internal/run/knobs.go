package run

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strconv"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Knobs returns the mesh's settings: those of the mode, each replaced by what was
// asked for it alone.
func (s Spec) Knobs() scenario.Settings {
	if s.Captured != nil {
		return capturedKnobs
	}
	driver, _ := s.Driver() // Validate refuses an unknown one
	mode, _ := driver.Mode(s.Mode())
	own := s.Mesh.Settings
	return scenario.Settings{
		MTLS: cmp.Or(own.MTLS, mode.Knobs.MTLS), Scope: cmp.Or(own.Scope, mode.Knobs.Scope), Authz: cmp.Or(own.Authz, mode.Knobs.Authz),
	}
}

// checkKnobs checks the knobs that were set by themselves, which not every control
// plane allows.
func (s Spec) checkKnobs(d controlplane.Driver) error {
	if s.Captured != nil {
		return nil
	}
	if d.CheckKnobs != nil {
		return d.CheckKnobs(s.Knobs())
	}
	return s.refuse([]refusal{
		{s.Mesh.Settings.MTLS != "", "mesh.settings.mtls"},
		{s.Mesh.Settings.Scope != "", "mesh.settings.scope"},
		{s.Mesh.Settings.Authz != "", "mesh.settings.authz"},
	}, "none with controlPlane.name "+s.ControlPlane.Name+", whose mode sets all settings")
}

// modes returns the modes that a run may have; a captured mesh has none but its own.
func (s Spec) modes(d controlplane.Driver) []string {
	if s.Captured != nil {
		return []string{s.Mode()}
	}
	return d.ModeNames()
}

// preset returns the mode that the run is recorded with: "" when any knob was set by
// itself.
func (s Spec) preset() string {
	switch {
	case s.Captured != nil:
		return record.CapturedMode
	case s.Mesh.Settings != (scenario.Settings{}):
		return ""
	}
	return s.Mode()
}

// Name returns the run's name, also its folder's in the record: control plane, mode
// and size, as in istiod-strict-200. When knobs were set by themselves all three
// take the mode's place, in the order of scenario.Settings:
// istiod-permissive-declared-none-200. The repeats of a run carry their number,
// from -r2 on. A data plane other than sidecars follows the control plane:
// istiod-ambient-strict-200, and then what has waypoints:
// istiod-ambient-namespace-waypoints-strict-200.
func (s Spec) Name() string {
	driver, _ := s.Driver() // Validate refuses an unknown one
	name := driver.Name + "-"
	if !s.WithSidecars() {
		name += s.Dataplane() + "-"
	}
	if w := s.waypointsName(); w != "" {
		name += w + "-waypoints-"
	}
	if s.upgrade() != nil {
		name += "upgrade-"
	}
	name += s.modeOrKnobs() + "-" + strconv.Itoa(s.Pods())
	if s.Repeat > 1 {
		name += "-r" + strconv.Itoa(s.Repeat)
	}
	return name
}

// longestName is the length of a run's name at which the name of a node, which adds an ID and a number, is still a label.
const longestName = 42

// shortName returns the run's name where that is short enough for the names of its nodes, and else its beginning and a digest.
func (s Spec) shortName() string {
	name := s.Name()
	if len(name) <= longestName {
		return name
	}
	digest := fmt.Sprintf("-%x", sha256.Sum256([]byte(name)))[:9]
	return name[:longestName-len(digest)] + digest
}

// modeOrKnobs returns the mode whose knobs these are, else the knobs, as in
// permissive-declared-none.
func (s Spec) modeOrKnobs() string {
	if mode := s.preset(); mode != "" {
		return mode
	}
	k := s.Knobs()
	if k.Scope == "" {
		return k.MTLS + "-" + k.Authz
	}
	return k.MTLS + "-" + k.Scope + "-" + k.Authz
}
