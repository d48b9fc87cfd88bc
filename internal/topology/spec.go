package topology

import "scaler.mesh/scaler/pkg/scenario"

// MaxPods is the largest mesh that can be built. It protects against typing errors.
const MaxPods = scenario.MaxPods

// Spec describes the size of a mesh and its call graph.
type Spec struct {
	Pods       int    // 1 to MaxPods
	Services   int    // 0 means one for every 10 pods, the last of them begun
	Namespaces int    // 0 means one for every 50 services, the last of them begun
	Shape      string // Star, Layers or Random; "" means Layers. Captured has its own numbers, and no call graph
	FanOut     int    // how many services each one calls, or fewer if there are not as many; 0 means 3
	Seed       uint64 // decides who calls whom; every value is valid

	Profile string         // Plain or Typical; "" means Plain
	Own     scenario.Parts // over those of Profile
}

// Defaults returns s with its zero values replaced by the defaults.
func (s Spec) Defaults() Spec {
	if s.Shape == Captured {
		return s
	}
	if s.Services == 0 {
		s.Services = (s.Pods + 9) / 10
	}
	if s.Namespaces == 0 {
		s.Namespaces = (s.Services + 49) / 50
	}
	if s.Shape == "" {
		s.Shape = Layers
	}
	if s.FanOut == 0 {
		s.FanOut = 3
	}
	return s
}

// Validate returns an error of type *[scenario.Error] for the first field whose value contradicts another or that
// Build cannot take, and nil if Build can be called. Zero values count as their defaults. The bounds of single parts are
// those of the table of parameters.
func (s Spec) Validate() error {
	if s.Pods < 1 || s.Pods > MaxPods {
		return scenario.Refuse("mesh.pods", s.Pods, "1 to %d", MaxPods)
	}
	if s.Shape == Captured {
		return nil
	}
	s = s.Defaults()
	if s.Services < 1 || s.Services > s.Pods {
		return scenario.Refuse("mesh.services", s.Services, "1 to %d, no more than pods", s.Pods)
	}
	if s.Namespaces < 1 || s.Namespaces > s.Services {
		return scenario.Refuse("mesh.namespaces", s.Namespaces, "1 to %d, no more than services", s.Services)
	}
	if err := scenario.CheckOneOf("mesh.topology", s.Shape, []string{Star, Layers, Random}); err != nil {
		return err
	}
	if s.FanOut < 1 {
		return scenario.Refuse("mesh.fanOut", s.FanOut, "1 or more")
	}
	return s.checkProfile()
}
