package capture

import (
	"math"
	"slices"
)

// Share returns the mesh with a share, above 0 and up to 1, of the pods of each workload, of which one at least is left: fewer
// proxies and endpoints, with the same services, workloads and configuration.
func (m *Mesh) Share(share float64) Mesh {
	of := func(pods int) int { return int(math.Ceil(share*float64(pods) - 1e-9)) } // 0.1 x 30 is above 3
	to := *m
	to.Workloads = slices.Clone(m.Workloads)
	for i := range to.Workloads {
		w := &to.Workloads[i].Spec
		w.Replicas, w.Zones = of(w.Replicas), slices.Clone(w.Zones)
		for k := range w.Zones {
			w.Zones[k].Pods = of(w.Zones[k].Pods)
		}
	}
	return to
}
