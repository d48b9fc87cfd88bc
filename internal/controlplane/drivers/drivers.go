// Package drivers lists the control planes that scaler can measure. To add one,
// write its adapter in a package below internal/controlplane and its line here; nothing
// else names it.
package drivers

import (
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/external"
	"scaler.mesh/scaler/internal/controlplane/istio"
	"scaler.mesh/scaler/internal/controlplane/linkerd"
	"scaler.mesh/scaler/internal/controlplane/osm"
	"scaler.mesh/scaler/internal/controlplane/reference"
)

// All are the drivers; the first is the default.
func All() []controlplane.Driver {
	return []controlplane.Driver{
		istio.Driver(),
		osm.Driver(),
		linkerd.Driver(),
		reference.Driver(),
		external.Driver(),
	}
}

// Default is the control plane that is measured when none is asked for.
func Default() controlplane.Driver { return All()[0] }
