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

	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// Plan is the upgrade that a user asks for. The zero value is none.
type Plan struct {
	From, To string    // versions, as component.Options.Istio takes them
	Waves    []float64 // shares of the pods with sidecars that are moved once each wave is done, ascending to 1; nil with InPlace
	// InPlace has the new version take the place of the old one, and restarts all workloads then.
	InPlace bool
	// RollbackAt is the wave after which all that was moved is moved back, and the new control
	// plane removed, from 1; 0 = none.
	RollbackAt int
	Rate       float64       // pods of workloads that are restarted a second, a workload at a time; 0 = all of a wave at once
	Pause      time.Duration // for which the new control plane runs before the first wave, and what is left after the old one is removed
	ToEnv      []string      // further NAME=VALUE for the new control plane
	// Units are the units of a captured mesh that are moved at once; nil = each workload of a synthetic mesh is one.
	Units []Unit
	// Proxies are the proxies of nodes, and waypoints, each moved in a wave of its own before pods with sidecars; nil = there are none.
	Proxies []record.UpgradeUnit
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

// CheckVersions returns an error, of type *[scenario.Error], unless both versions are stated and the new control plane differs from the old one.
func (p Plan) CheckVersions() error {
	if p.From == "" || p.To == "" {
		return scenario.Refuse("controlPlane.version", nil, "a version of Istio, and another one as controlPlane.upgrade.to")
	}
	if p.From == p.To && len(p.ToEnv) == 0 {
		return scenario.Refuse("controlPlane.upgrade.to", p.To, "another version than controlPlane.version, or a setting of the new control plane by controlPlane.upgrade.env")
	}
	return nil
}

// Validate names the first flag whose value cannot be used with a mesh, the value, and
// what is wanted.
func (p Plan) Validate(mesh topology.Mesh) error {
	if err := p.CheckVersions(); err != nil {
		return err
	}
	if p.InPlace && p.RollbackAt != 0 {
		return scenario.Refuse("controlPlane.upgrade.rollbackAt", p.RollbackAt, "none with controlPlane.upgrade.inPlace, which has no waves")
	}
	waves := p.WavesOf(mesh)
	if p.RollbackAt < 0 || p.RollbackAt > len(waves) {
		return scenario.Refuse("controlPlane.upgrade.rollbackAt", p.RollbackAt, "a wave, 1 to %d", len(waves))
	}
	for i, wave := range waves {
		if wave.empty() {
			return scenario.Refuse("controlPlane.upgrade.canary", scenario.Shares(p.Waves), "fewer waves, or more mesh.pods: wave %d has no workload to move; a workload is moved as a whole, and there are %d",
				i+1, len(p.units(mesh)))
		}
	}
	return nil
}

// Wave is a set of workloads that are moved at once, or at the rate of the plan.
type Wave struct {
	Workloads []int                // by their index
	Units     []record.UpgradeUnit // proxies and, of a captured mesh, what the workloads follow
}

func (w Wave) empty() bool { return w.Workloads == nil && w.Units == nil }

// has reports whether proxies of a kind are moved.
func (w Wave) has(kind record.UpgradeKind) bool {
	return slices.ContainsFunc(w.Units, func(u record.UpgradeUnit) bool { return u.Kind == kind })
}

// pods returns the number of pods that are moved.
func (w Wave) pods(mesh topology.Mesh) (n int) {
	for _, i := range w.Workloads {
		n += mesh.Services[i].Pods
	}
	for _, u := range w.Units {
		if u.Kind.OfProxies() {
			n += u.Pods
		}
	}
	return n
}

// add adds a unit to a wave.
func (w *Wave) add(u Unit) {
	w.Workloads = append(w.Workloads, u.Workloads...)
	if u.Kind != "" {
		w.Units = append(w.Units, u.UpgradeUnit)
	}
}

// units returns what is moved at once: of a synthetic mesh each workload, in the order of the mesh.
func (p Plan) units(mesh topology.Mesh) (units []Unit) {
	if p.Units != nil {
		return slices.Clone(p.Units)
	}
	for i, s := range mesh.Services {
		if s.OwnProxy() {
			units = append(units, Unit{Workloads: []int{i}, UpgradeUnit: record.UpgradeUnit{Pods: s.Pods}})
		}
	}
	return units
}

// WavesOf returns the waves in which a mesh is moved. What is ahead in a captured mesh is the first one, and Proxies follow. Each other is
// as many units as it takes that the moved ones have at least its share of the pods; in a captured mesh a share that the waves before it
// have reached already has none, and no mesh has one without units.
func (p Plan) WavesOf(mesh topology.Mesh) (waves []Wave) {
	units, total, moved := p.units(mesh), 0, 0
	for _, u := range units {
		total += u.Pods
	}
	take := func(wave *Wave) {
		wave.add(units[0])
		moved, units = moved+units[0].Pods, units[1:]
	}
	var first Wave
	for len(units) > 0 && units[0].Ahead {
		take(&first)
	}
	if !first.empty() {
		waves = append(waves, first)
	}
	for _, u := range p.Proxies {
		waves = append(waves, Wave{Units: []record.UpgradeUnit{u}})
	}
	if total == 0 {
		return waves
	}
	for _, share := range p.Waves {
		var wave Wave
		for len(units) > 0 && moved < int(math.Ceil(share*float64(total)-1e-9)) {
			take(&wave)
		}
		if !wave.empty() || p.Units == nil {
			waves = append(waves, wave)
		}
	}
	return waves
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

// together returns several waves as one.
func together(waves []Wave) (all Wave) {
	for _, w := range waves {
		all.Workloads, all.Units = append(all.Workloads, w.Workloads...), append(all.Units, w.Units...)
	}
	return all
}
