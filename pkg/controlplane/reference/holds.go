package reference

import (
	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/topology"
)

// Holds are the wanted resources: the server sends nothing of its own accord. Their
// sizes are not predicted.
func (c *ControlPlane) Holds(mesh topology.Mesh, knobs controlplane.Knobs, service int) []controlplane.Holding {
	var holdings []controlplane.Holding
	for _, w := range c.Wants(mesh, knobs, service) {
		holdings = append(holdings, controlplane.Holding{Key: w.Key})
	}
	return holdings
}
