package external

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/scenario"
)

// Objects is part of controlplane.Mesh.
func (s *server) Objects(topology.Mesh, scenario.Settings) []*unstructured.Unstructured { return nil }

// Wants is part of controlplane.Mesh: what the file states or, without one, that
// everything that the sidecar asked for was answered.
func (s *server) Wants(mesh topology.Mesh, _ scenario.Settings, service int) []convergence.Want {
	if s.expects == nil {
		return []convergence.Want{{Key: convergence.AskedFor()}}
	}
	return s.expects.Wants(mesh, service)
}

// Holds is part of controlplane.Mesh: what else the server sends is not known.
func (s *server) Holds(topology.Mesh, scenario.Settings, int) []convergence.Key { return nil }

// EndpointHealth is part of controlplane.Mesh. Of an endpoint that is not ready it
// is not known whether the server sends it, so only those that are ready are
// expected.
func (s *server) EndpointHealth(ready, _, _ bool) (health convergence.Health, ok bool) {
	return convergence.Healthy, ready
}
