// Package drivers lists the control planes that scaler can measure. To add one,
// write its adapter in a package below internal/controlplane and its line here; nothing
// else names it.
package drivers

import (
	"slices"
	"sync"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/external"
	"scaler.mesh/scaler/internal/controlplane/istio"
	"scaler.mesh/scaler/internal/controlplane/linkerd"
	"scaler.mesh/scaler/internal/controlplane/osm"
	"scaler.mesh/scaler/internal/controlplane/reference"
)

// All returns the drivers; the first is the default.
func All() []controlplane.Driver { return slices.Clone(all()) }

// all makes the drivers once, because making the names of all their metrics takes a millisecond, and a scenario
// looks for its driver many times.
var all = sync.OnceValue(func() []controlplane.Driver {
	return []controlplane.Driver{
		istio.Driver(),
		osm.Driver(),
		linkerd.Driver(),
		reference.Driver(),
		external.Driver(),
	}
})

// Default returns the control plane that is measured when none is asked for.
func Default() controlplane.Driver { return All()[0] }
