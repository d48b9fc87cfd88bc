package topology

import (
	"fmt"
	"strconv"
)

// MaxPods is the largest mesh that can be built: five times the largest cluster that
// Kubernetes is tested for. It protects against typing errors.
const MaxPods = 100_000

// Spec describes the size of a mesh and its call graph.
type Spec struct {
	Pods       int    // 1 to MaxPods
	Services   int    // 0 means one for every 10 pods, the last of them begun
	Namespaces int    // 0 means one for every 50 services, the last of them begun
	Shape      string // Star, Layers or Random; "" means Layers. Captured has its own numbers, and no call graph
	FanOut     int    // how many services each one calls, or fewer if there are not as many; 0 means 3
	Seed       uint64 // decides who calls whom; every value is valid

	Profile string  // Plain or Typical; "" means Plain
	Own     Profile // parts that were set, over those of Profile; 0 = as it says, None = none
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

// FieldError is the error for a field of a Spec with an invalid value.
type FieldError struct {
	Field string // as the flag that sets it, without dashes
	Value string
	Want  string
}

// Error returns the error as `pods 0: want 1 to 100000`.
func (e *FieldError) Error() string {
	return fmt.Sprintf("%s %s: want %s", e.Field, e.Value, e.Want)
}

// Validate returns a *FieldError for the first field whose value is out of bounds or
// contradicts another, and nil if Build can be called. Zero values count as their
// defaults.
func (s Spec) Validate() error {
	if s.Pods < 1 || s.Pods > MaxPods {
		return &FieldError{"pods", strconv.Itoa(s.Pods), fmt.Sprintf("1 to %d", MaxPods)}
	}
	if s.Shape == Captured {
		return nil
	}
	s = s.Defaults()
	if s.Services < 1 || s.Services > s.Pods {
		return &FieldError{"services", strconv.Itoa(s.Services), fmt.Sprintf("1 to %d, no more than pods", s.Pods)}
	}
	if s.Namespaces < 1 || s.Namespaces > s.Services {
		return &FieldError{"namespaces", strconv.Itoa(s.Namespaces), fmt.Sprintf("1 to %d, no more than services", s.Services)}
	}
	switch s.Shape {
	case Star, Layers, Random:
	default:
		return &FieldError{"topology", strconv.Quote(s.Shape), fmt.Sprintf("%s, %s or %s", Star, Layers, Random)}
	}
	if s.FanOut < 1 {
		return &FieldError{"fanout", strconv.Itoa(s.FanOut), "1 or more"}
	}
	return s.checkProfile()
}
