package drivers

import (
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/place/embedded"
)

// RunPrograms returns the names of the programs that a run against a control plane
// starts: cluster, control plane and Prometheus.
func RunPrograms(d controlplane.Driver) []string {
	return append(append(embedded.Components(), component.Prometheus), d.Programs.Own...)
}
