// Package workload creates a mesh's pods: a plan that states how many
// replicas each workload has at what moment, which is pure, and an applier that
// obeys it. What the objects mean to a control plane, and whether the mesh has
// converged, is left to others.
package workload

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/topology"
)

// Bounds of a burst's interval: what a cluster can distinguish, and what a person
// would wait for.
const (
	minInterval = time.Millisecond
	maxInterval = time.Hour
)

// Burst states how pods arrive. The zero value means all at once.
type Burst struct {
	Size     int           // pods that arrive together; 0 means all
	Interval time.Duration // from one burst to the next
}

// ParseBurst parses the value of --burst: "all", or SIZE/INTERVAL as in
// "100/10s". Its error names the flag, the value and what is wanted.
func ParseBurst(s string) (Burst, error) {
	wrong := func(want string) (Burst, error) {
		return Burst{}, fmt.Errorf("parsing --burst %q: want %s", s, want)
	}
	if s == "all" {
		return Burst{}, nil
	}
	left, right, _ := strings.Cut(s, "/")
	size, sizeErr := strconv.Atoi(left)
	interval, intervalErr := time.ParseDuration(right)
	switch {
	case sizeErr != nil || intervalErr != nil:
		return wrong("all or SIZE/INTERVAL, as in 100/10s")
	case size < 1 || size > topology.MaxPods:
		return wrong(fmt.Sprintf("a size of 1 to %d", topology.MaxPods))
	case interval < minInterval || interval > maxInterval:
		return wrong("an interval of 1ms to 1h")
	}
	return Burst{size, interval}, nil
}

// String returns the burst as ParseBurst reads it.
func (b Burst) String() string {
	if b.Size == 0 {
		return "all"
	}
	return fmt.Sprintf("%d/%s", b.Size, b.Interval)
}

// Step is one burst of a plan.
type Step struct {
	At       time.Duration // since the first step
	Replicas map[int]int   // by index of a service: how many it has from then on; services that stay as they are are not in it
}

// Plan returns the steps in which the mesh's pods arrive, each of b.Size pods but
// the last. Services fill up in their order, so that a burst brings whole
// workloads as far as they fit, and one workload is touched by few steps.
func Plan(mesh topology.Mesh, b Burst) []Step {
	size := b.Size
	if size == 0 {
		size = math.MaxInt
	}
	var steps []Step
	room := 0 // in the last step
	for i, service := range mesh.Services {
		for have := 0; have < service.Pods; {
			if room == 0 {
				steps = append(steps, Step{At: time.Duration(len(steps)) * b.Interval, Replicas: make(map[int]int)})
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
