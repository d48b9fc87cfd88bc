package component

import "slices"

// AllGraphs gives all pinned graphs, those of every release of Istio included.
func AllGraphs() []Graph {
	all := slices.Clone(pinned)
	for _, release := range istioReleases {
		if release != IstioDefault {
			all = append(all, istioGraphs(release)...)
		}
	}
	return all
}
