package fidelity

import (
	"fmt"
	"math/rand/v2"

	"scaler.mesh/scaler/internal/topology"
)

// meshChange is one random change of the mesh. A change is described absolutely, so that
// a plan can be followed and undone without remembering earlier changes.
type meshChange struct {
	kind    meshChangeKind
	service int  // index into the mesh
	value   int  // of scaling: replicas; of others: number of the object, or of the marker
	on      bool // made or changed; else taken away
}

type meshChangeKind string

// The kinds of change: everything that changes in a mesh.
const (
	scaleChange   meshChangeKind = "scale"   // a workload has more or fewer pods
	healthChange  meshChangeKind = "health"  // a pod turns unready, or ready again
	routeChange   meshChangeKind = "route"   // how a service is reached
	policyChange  meshChangeKind = "policy"  // changes the callers that a service allows
	serviceChange meshChangeKind = "service" // a service more, of several protocols, or fewer
)

// String describes the change, for logs.
func (c meshChange) String() string {
	if !c.on {
		return fmt.Sprintf("%s of service %d is taken away", c.kind, c.service)
	}
	return fmt.Sprintf("%s of service %d: %d", c.kind, c.service, c.value)
}

// replicasMost is the largest number of replicas that a workload is scaled to.
const replicasMost = 6

// planMeshChanges draws n changes of these kinds. The service with index observed is not
// scaled, because its pods are compared; -1 = there is none.
func planMeshChanges(mesh topology.Mesh, observed int, kinds []meshChangeKind, n int, seed uint64) []meshChange {
	random := rand.New(rand.NewPCG(seed, 0))
	on := map[meshChangeKind]map[int]bool{}
	for _, kind := range kinds {
		on[kind] = map[int]bool{}
	}
	replicas := map[int]int{}
	for i, s := range mesh.Services {
		replicas[i] = s.Pods
	}
	var changes []meshChange
	for len(changes) < n {
		c := meshChange{kind: kinds[random.IntN(len(kinds))], service: random.IntN(len(mesh.Services)), value: len(changes), on: true}
		switch c.kind {
		case scaleChange:
			if c.service == observed {
				continue
			}
			c.value = 1 + random.IntN(replicasMost)
			if c.value == replicas[c.service] {
				continue
			}
			replicas[c.service] = c.value
		case healthChange, serviceChange: // on and off again
			c.on = !on[c.kind][c.service]
		default: // mostly changed, sometimes taken away
			c.on = !on[c.kind][c.service] || random.IntN(4) > 0
		}
		on[c.kind][c.service] = c.on
		changes = append(changes, c)
	}
	return changes
}
