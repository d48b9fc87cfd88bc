package record

// PodCount is the number of pods with sidecars, or served by the proxies of nodes, that the run was asked for; 0 where
// it is not known.
func (r *Run) PodCount() int { return r.Spec.Pods }

// ServiceCount is the number of services of the mesh.
func (r *Run) ServiceCount() int { return r.Spec.Services }

// NamespaceCount is the number of namespaces of the mesh.
func (r *Run) NamespaceCount() int { return r.Spec.Namespaces }

// ModeName is the mode of the mesh: named settings. It is "" where a setting was chosen by itself.
func (r *Run) ModeName() string { return r.Spec.Mode }

// Waypoints is what had a waypoint each: namespace or service; "" = nothing.
func (r *Run) Waypoints() string { return r.Spec.Waypoints }

// Slowdown is the factor K by which time was slowed down; 1 = it was not.
func (r *Run) Slowdown() float64 { return max(1, r.Spec.Dilation) }
