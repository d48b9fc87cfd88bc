// Package workload creates a mesh's pods: a plan, which is pure and states how many
// replicas each workload has at what time, and an applier that follows it. It knows
// neither what the objects mean to a control plane nor whether the mesh has converged.
package workload

import (
	"math"
	"time"

	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/scenario"
)

// Step is one burst of a plan.
type Step struct {
	At       time.Duration // since the first step
	Replicas map[int]int   // by index of a service: its number from then on; unchanged services are left out
}

// Plan returns the steps in which the mesh's pods arrive, each of b.Size pods except the
// last. Services are filled in their order, so that a burst brings whole workloads as far
// as they fit, and each workload changes in few steps.
func Plan(mesh topology.Mesh, a scenario.Arrival) []Step {
	size, interval := a.Bursts()
	if size == 0 {
		size = math.MaxInt
	}
	var steps []Step
	room := 0 // in the last step
	for i, service := range mesh.Services {
		for have := 0; have < service.Pods; {
			if room == 0 {
				steps = append(steps, Step{At: time.Duration(len(steps)) * interval, Replicas: make(map[int]int)})
				room = size
			}
			more := min(service.Pods-have, room)
			have += more
			room -= more
			steps[len(steps)-1].Replicas[i] = have
		}
	}
	return steps
}
