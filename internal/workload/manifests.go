package workload

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"

	"scaler.mesh/scaler/kwok"
)

// Manifests returns the objects that an Applier makes, as they are sent to the API
// server, Deployments with all their replicas.
func (a *Applier) Manifests() []runtime.Object {
	all := a.SurroundingManifests()
	for i, s := range a.Mesh.Services {
		if s.Real > 0 {
			all = append(all, a.realDeployment(s, s.Real))
		}
		all = append(all, a.deployment(i, s.Pods-s.Real))
	}
	return all
}

// SurroundingManifests returns the objects of Applier.Surroundings: all except the
// Deployments.
func (a *Applier) SurroundingManifests() []runtime.Object {
	var all []runtime.Object
	if a.Templates == nil {
		for _, name := range a.Mesh.Namespaces {
			all = append(all, a.namespace(name))
		}
		for _, s := range a.Mesh.Services {
			all = append(all, a.account(s), a.service(s))
		}
	}
	for _, o := range slices.Concat(a.Around, a.Objects) {
		object := o.DeepCopy()
		kwok.SetRun(object, a.Run)
		all = append(all, object)
	}
	return all
}
