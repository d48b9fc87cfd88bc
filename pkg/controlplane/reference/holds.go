package reference

import (
	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/topology"
)

// Holds are the keys of the wanted resources: the server sends no others.
func (c *ControlPlane) Holds(mesh topology.Mesh, knobs controlplane.Knobs, service int) []convergence.Key {
	var keys []convergence.Key
	for _, w := range c.Wants(mesh, knobs, service) {
		keys = append(keys, w.Key)
	}
	return keys
}
