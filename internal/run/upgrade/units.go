package upgrade

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/pkg/record"
)

// defaultTag is the tag that injection-enabled namespaces follow. An upgrade moves it when the old control plane is removed.
const defaultTag = "default"

// Unit is a part of a captured mesh that an upgrade moves at once: its pods follow one label.
type Unit struct {
	record.UpgradeUnit
	Workloads []int // that have sidecars, by their index
	// Ahead reports that in the captured mesh a revision serves the pods that is newer than the version that the upgrade begins
	// with, or of the version that it leads to.
	Ahead bool
}

// UnitsOf returns what an upgrade of a captured mesh moves at once, in the order in which an operator moves it: the
// namespaces of each revision that is ahead, which are there already; each namespace that names its revision itself, or none, since its
// label is changed alone; and the namespaces that follow a tag, since the tag is moved for all of them, those of the tag
// with fewest pods first and those of the tag "default" last. from and to are whole versions.
func UnitsOf(mesh *capture.Mesh, from, to string) []Unit {
	follows := followed(mesh, from, to)
	var units []Unit
	for i, w := range mesh.Workloads {
		if !w.Spec.HasSidecar() {
			continue
		}
		of, known := follows[w.ID()]
		if !known {
			of, known = follows[w.Namespace]
		}
		if !known {
			of = Unit{UpgradeUnit: record.UpgradeUnit{Kind: record.UpgradeNamespace, Name: w.Namespace}}
		}
		at := slices.IndexFunc(units, func(u Unit) bool { return u.Kind == of.Kind && u.Name == of.Name })
		if at < 0 {
			at, units = len(units), append(units, of)
		}
		u := &units[at]
		u.Workloads, u.Pods = append(u.Workloads, i), u.Pods+w.Spec.Replicas
		if !slices.Contains(u.Namespaces, w.Namespace) {
			u.Namespaces = append(u.Namespaces, w.Namespace)
		}
	}
	slices.SortStableFunc(units, func(a, b Unit) int {
		order := cmp.Compare(a.rank(), b.rank())
		if a.Kind == record.UpgradeTag {
			order = cmp.Or(order, cmp.Compare(a.Pods, b.Pods))
		}
		return order
	})
	return units
}

// rank returns the place of a unit in the order of the move.
func (u Unit) rank() int {
	switch {
	case u.Ahead:
		return 0
	case u.Kind != record.UpgradeTag:
		return 1
	case u.Name != defaultTag:
		return 2
	default:
		return 3
	}
}

// followed returns the units of the namespaces that follow a tag, and of the namespaces and workloads of a revision that is
// ahead, by their names.
func followed(mesh *capture.Mesh, from, to string) map[string]Unit {
	follows := map[string]Unit{}
	if mesh.ControlPlane == nil {
		return follows
	}
	for i := range mesh.ControlPlane.Revisions {
		r := &mesh.ControlPlane.Revisions[i]
		if mesh.OfOneRevision() && r != mesh.Served() {
			continue // it serves no pod that is moved, although a namespace may follow it
		}
		if r != mesh.Served() && ahead(r.Release(), from, to) {
			newer := Unit{UpgradeUnit: record.UpgradeUnit{Kind: record.UpgradeRevision, Name: r.Name}, Ahead: true}
			for _, n := range r.Namespaces {
				follows[n] = newer
			}
			for _, w := range r.Workloads {
				follows[w] = newer
			}
			continue
		}
		for tag, namespaces := range r.Tagged {
			for _, n := range namespaces {
				follows[n] = Unit{UpgradeUnit: record.UpgradeUnit{Kind: record.UpgradeTag, Name: tag}}
			}
		}
	}
	return follows
}

// ahead reports whether a version is that of the upgrade's end, or newer than that of its begin; one that is not known is not.
func ahead(release, from, to string) bool {
	if release == to && to != "" {
		return true
	}
	of, err := version.ParseGeneric(release)
	if err != nil {
		return false
	}
	begin, err := version.ParseGeneric(from)
	return err == nil && begin.LessThan(of)
}
