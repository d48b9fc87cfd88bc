package record

import (
	"cmp"
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/scenario"
)

// PodCount returns the number of pods with sidecars, or served by the proxies of nodes, that the run was asked for; 0 where
// it is not known.
func (r *Run) PodCount() int {
	if r.Mesh != nil {
		return orZero(r.Pods).Requested
	}
	return r.Scenario.Mesh.Pods.First()
}

// ServiceCount returns the number of services of the mesh.
func (r *Run) ServiceCount() int {
	if r.Mesh != nil {
		return r.Mesh.Services
	}
	return r.Scenario.Mesh.Services
}

// NamespaceCount returns the number of namespaces of the mesh.
func (r *Run) NamespaceCount() int {
	if r.Mesh != nil {
		return r.Mesh.Namespaces
	}
	return r.Scenario.Mesh.Namespaces
}

// CapturedMode is the mode of a captured mesh, whose own configuration decides.
const CapturedMode = "captured"

// ModeName returns the mode of the mesh: named settings. It is "" where a setting was chosen by itself.
func (r *Run) ModeName() string {
	switch {
	case r.Mesh != nil:
		return CapturedMode
	case r.Scenario.Mesh.Settings != scenario.Settings{}:
		return ""
	}
	return r.Scenario.Mesh.Mode.First()
}

// Mode returns the mode of a run as it is grouped and named: with the data plane where that is
// not sidecars, as in "ambient strict" or "ambient with namespace waypoints strict"; without a mode its settings.
func (r *Run) Mode() string { return r.ModeOr(r.Environment.Knobs.Text()) }

// ModeOr is Mode with a text in place of the settings.
func (r *Run) ModeOr(settings string) string {
	mode := cmp.Or(r.ModeName(), settings)
	if d := r.Dataplane(); d != SidecarDataplane {
		mode = d + " " + mode
	}
	return mode
}

// SidecarDataplane is the data plane of which each pod has a proxy of its own.
const SidecarDataplane = "sidecar"

// Dataplane returns the data plane of the run's pods, as in sidecar or "ambient with namespace waypoints".
func (r *Run) Dataplane() string {
	name := r.Scenario.Mesh.Dataplane.First()
	switch w := r.Waypoints(); {
	case name == "":
		return SidecarDataplane
	case w != "":
		return name + " with " + w + " waypoints"
	}
	return name
}

// Waypoints returns the kind of object that has a waypoint each: namespace or service; "" = there are no waypoints.
func (r *Run) Waypoints() string {
	if w := r.Scenario.Mesh.Waypoints; w != "none" {
		return w
	}
	return ""
}

// StartDelay returns the time from a pod's address to the start of its sidecar; "" if there was none.
func (r *Run) StartDelay() string {
	if d := r.Scenario.Mesh.Sidecars.StartDelay; d != nil && *d != (scenario.Delay{}) {
		return d.String()
	}
	return ""
}

// Slowdown returns the factor K by which time was slowed down; 1 = it was not.
func (r *Run) Slowdown() float64 { return max(1, r.Scenario.Instrument.Dilation.Factor) }

// SlowdownIn returns the factor by which time was slowed down in a phase.
func (r *Run) SlowdownIn(phase PhaseName) float64 {
	if d := r.Environment.Dilation; d != nil && slices.Contains(d.RealTime, phase) {
		return 1
	}
	return r.Slowdown()
}

// realTimeText returns the phases of a run that were not slowed down, though others were; "none" if all were, or if
// time was not slowed down.
func (r *Run) realTimeText() string {
	d := r.Environment.Dilation
	if d == nil || len(d.RealTime) == 0 {
		return "none"
	}
	var names []string
	for _, phase := range d.RealTime {
		names = append(names, string(phase))
	}
	return strings.Join(names, ", ")
}
