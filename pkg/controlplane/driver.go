package controlplane

import (
	"context"
	"strings"

	"k8s.io/client-go/rest"

	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/component"
	"scaler.mesh/scaler/pkg/record"
)

// Driver is one kind of control plane that scaler can measure: what is known of
// it before it runs, and how it is started. Each is one literal, in its own
// package; package drivers lists them. Nothing else knows a control plane by its
// name.
type Driver struct {
	Name    string // as in --control-plane, and of its process and its metrics
	Summary string // one line, for people

	Programs        []string // components that it starts, its own first; nil = none
	SidecarPrograms []string // components of a real sidecar; nil = it has no real sidecars
	Modes           []Mode   // presets of knobs that it has, at least one; the first is the default

	// HostWorkloads says that real proxies of workloads of this host can be part of
	// its mesh, which `scaler latency` needs.
	HostWorkloads bool

	// Limits are the bounds that it holds itself to with this environment
	// (NAME=VALUE), which plans take for records without any; nil = none is known.
	Limits func(env []string) *record.Limits

	// Start starts one and returns once it serves. What it started joined the
	// options' Group, also with an error.
	Start func(ctx context.Context, o StartOptions) (*ControlPlane, error)
}

// Mode is a preset of knobs.
type Mode struct {
	Name  string
	Knobs Knobs
}

// StandardModes are the modes of a control plane that has all knobs.
func StandardModes() []Mode {
	return []Mode{{"permissive", Modes["permissive"]}, {"strict", Modes["strict"]}}
}

// Mode is the mode of this name.
func (d Driver) Mode(name string) (Mode, bool) {
	for _, m := range d.Modes {
		if m.Name == name {
			return m, true
		}
	}
	return Mode{}, false
}

// ModeNames are those of its modes, in their order.
func (d Driver) ModeNames() []string {
	var names []string
	for _, m := range d.Modes {
		names = append(names, m.Name)
	}
	return names
}

// StartOptions say where a control plane runs and what it is given.
type StartOptions struct {
	Programs   map[string]string   // paths of Driver.Programs, by component
	Versions   *component.Versions // knows what programs report; nil = they are asked
	Scaler     string              // scaler's own version, for control planes that are part of it
	Kubeconfig string              // file that the control plane reads
	REST       *rest.Config        // the same cluster, for scaler's own requests
	Group      *process.Group      // the children that it joins
	LogDir     string              // takes its logs
	Progress   func(string)        // nil = silent
	Resources  Resources           // what it is given of this machine; zero = all

	// RealSidecars says that real proxies join, which are upstream's Envoy. False
	// leaves the control plane as its project configures it.
	RealSidecars bool
}

// Find is the driver with this name.
func Find(all []Driver, name string) (Driver, bool) {
	for _, d := range all {
		if d.Name == name {
			return d, true
		}
	}
	return Driver{}, false
}

// Names are those of the drivers, in their order.
func Names(all []Driver) []string {
	var names []string
	for _, d := range all {
		names = append(names, d.Name)
	}
	return names
}

// Choices are the names of the drivers as help prints them: "a, b or c".
func Choices(all []Driver) string {
	names := Names(all)
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
