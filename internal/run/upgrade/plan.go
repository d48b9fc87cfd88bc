// Package upgrade moves a rolled-out mesh from one version of its control plane to
// another, as a user does: the new one is started next to the old one, workloads are moved
// in waves by label and restart, and the old one is removed. Each stage is a phase of its own.
// The cluster, the programs and the pods are left to others.
package upgrade

import (
	"math"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/pkg/scenario"

	"scaler.mesh/scaler/internal/topology"
)

// Plan is the upgrade that a user asks for. The zero value is none.
type Plan struct {
	From, To string    // versions, as component.Options.Istio takes them
	Waves    []float64 // shares of the pods that are moved once each wave is done, ascending to 1; nil with InPlace
	// InPlace has the new version take the place of the old one, and restarts all workloads then.
	InPlace bool
	// RollbackAt is the wave after which all that was moved is moved back, and the new control
	// plane removed, from 1; 0 = none.
	RollbackAt int
	Rate       float64       // pods of workloads that are restarted a second, a workload at a time; 0 = all of a wave at once
	Pause      time.Duration // for which the new control plane runs before the first wave, and what is left after the old one is removed
	ToEnv      []string      // further NAME=VALUE for the new control plane
	// ByNamespace has each wave move whole namespaces, as somebody does who moves the label of a namespace; else workloads.
	ByNamespace bool
}

// unit is what a wave moves as a whole.
func (p Plan) unit() string {
	if p.ByNamespace {
		return "namespace"
	}
	return "workload"
}

// Revisions returns the names by which pods know the two control planes: their versions
// without dots, as in 1-31-0, the new one of the same version with -next; "" for an upgrade
// in place, which has no revisions.
func (p Plan) Revisions() (from, to string) {
	if p.InPlace {
		return "", ""
	}
	from, to = nameOf(p.From), nameOf(p.To)
	if from == to {
		to += "-next"
	}
	return from, to
}

// Next distinguishes the new control plane's name from that of the old one.
func (p Plan) Next() string {
	if _, to := p.Revisions(); to != "" {
		return to
	}
	return nameOf(p.To)
}

// nameOf returns a version as part of a name.
func nameOf(version string) string { return strings.ReplaceAll(version, ".", "-") }

// Validate names the first flag whose value cannot be used with a mesh, the value, and
// what is wanted.
func (p Plan) Validate(mesh topology.Mesh) error {
	if p.From == "" || p.To == "" {
		return scenario.Refuse("controlPlane.version", nil, "a version of Istio, and another one as controlPlane.upgrade.to")
	}
	if p.From == p.To && len(p.ToEnv) == 0 {
		return scenario.Refuse("controlPlane.upgrade.to", p.To, "another version than controlPlane.version, or a setting of the new control plane by controlPlane.upgrade.env")
	}
	if p.InPlace && p.RollbackAt != 0 {
		return scenario.Refuse("controlPlane.upgrade.rollbackAt", p.RollbackAt, "none with controlPlane.upgrade.inPlace, which has no waves")
	}
	if p.RollbackAt < 0 || p.RollbackAt > len(p.Waves) {
		return scenario.Refuse("controlPlane.upgrade.rollbackAt", p.RollbackAt, "a wave, 1 to %d", len(p.Waves))
	}
	more := "mesh.pods"
	if p.ByNamespace {
		more = "namespaces"
	}
	for i, wave := range p.WavesOf(mesh) {
		if len(wave) == 0 {
			return scenario.Refuse("controlPlane.upgrade.canary", scenario.Shares(p.Waves), "fewer waves, or more %s: wave %d has no %s to move; a %s is moved as a whole, and there are %d",
				more, i+1, p.unit(), p.unit(), len(p.units(mesh)))
		}
	}
	return nil
}

// units returns the workloads that have sidecars, by their index: those of each unit that is moved as a whole, in the
// order of the mesh.
func (p Plan) units(mesh topology.Mesh) (units [][]int) {
	at := map[string]int{} // by namespace
	for i, s := range mesh.Services {
		if s.Outside {
			continue
		}
		if of, known := at[s.Namespace]; p.ByNamespace && known {
			units[of] = append(units[of], i)
			continue
		}
		at[s.Namespace] = len(units)
		units = append(units, []int{i})
	}
	return units
}

// WavesOf are the workloads of each wave, by their index: as many units as it takes that the moved
// ones have at least the wave's share of the pods, in the order of the mesh.
func (p Plan) WavesOf(mesh topology.Mesh) [][]int {
	total := mesh.Sidecars()
	units := p.units(mesh)
	var waves [][]int
	moved := 0
	for _, share := range p.Waves {
		var wave []int
		for len(units) > 0 && moved < int(math.Ceil(share*float64(total)-1e-9)) {
			wave = append(wave, units[0]...)
			moved += pods(mesh, units[0])
			units = units[1:]
		}
		waves = append(waves, wave)
	}
	return waves
}

// pods returns the number of pods of workloads.
func pods(mesh topology.Mesh, workloads []int) (n int) {
	for _, i := range workloads {
		n += mesh.Services[i].Pods
	}
	return n
}

// due returns the time from the begin of a stage at which each of its workloads is restarted: at a rate of pods a
// second, each once the pods of those before it were due.
func due(mesh topology.Mesh, workloads []int, rate float64) []time.Duration {
	all := make([]time.Duration, len(workloads))
	before := 0
	for i, w := range workloads {
		if rate > 0 {
			all[i] = time.Duration(float64(before) / rate * float64(time.Second))
		}
		before += mesh.Services[w].Pods
	}
	return all
}

// concat returns the workloads of several waves.
func concat(waves [][]int) []int { return slices.Concat(waves...) }
