package capture

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Of reduces the mesh to one of its revisions, by its name. Served returns that revision. Workloads whose proxies are of another
// revision become [OtherRevision]: their pods stay endpoints, and have no proxy that a rollout simulates. If the revision of a workload is
// not known, it belongs to the one that Served returns for the whole mesh. Objects of the configuration whose label istio.io/rev names
// another revision are left out, as istiod ignores them (LabelsInRevision in istio.io/istio/pkg/config/model.go); the label of a Gateway of
// the Gateway API may name a tag. The error states what is wanted in place of the name.
func (m *Mesh) Of(name string) (Mesh, error) {
	byItself := m.Served()
	if byItself == nil {
		return Mesh{}, fmt.Errorf("none: the mesh has no control plane")
	}
	var names []string
	for _, r := range m.ControlPlane.Revisions {
		names = append(names, r.Name)
	}
	switch first := slices.Index(names, name); {
	case first < 0:
		return Mesh{}, fmt.Errorf("one of the revisions of the mesh: %s", strings.Join(names, ", "))
	case slices.Contains(names[first+1:], name):
		return Mesh{}, fmt.Errorf("a revision whose name the mesh has once: %s", strings.Join(names, ", "))
	}
	to := *m
	to.served, to.Workloads = name, slices.Clone(m.Workloads)
	tags := to.Served().Tags
	to.Objects = slices.DeleteFunc(slices.Clone(m.Objects), func(o *unstructured.Unstructured) bool {
		of := o.GetAnnotations()[revisionAnnotation]
		byTag := slices.Contains(tags, of) && o.GroupVersionKind().GroupKind().String() == "Gateway.gateway.networking.k8s.io"
		return of != "" && of != name && !byTag
	})
	for i := range to.Workloads {
		w := &to.Workloads[i]
		if w.Spec.HasSidecar() && cmp.Or(m.ControlPlane.revisionOf(w), byItself).Name != name {
			w.Spec.Labels = w.injectedLabels()
			w.Spec.Proxy = OtherRevision
		}
	}
	if sidecars, _ := to.Members(); sidecars+to.Pods()[Ambient] == 0 {
		return Mesh{}, fmt.Errorf("a revision that serves pods: %s serves none", name)
	}
	return to, nil
}

// revisionOf returns the revision of the proxies of a workload's pods; nil = it is not known.
func (c *ControlPlane) revisionOf(w *Workload) *Revision {
	for i := range c.Revisions {
		if slices.Contains(c.Revisions[i].Workloads, w.ID()) {
			return &c.Revisions[i]
		}
	}
	for i := range c.Revisions {
		if slices.Contains(c.Revisions[i].Namespaces, w.Namespace) {
			return &c.Revisions[i]
		}
	}
	return nil
}

// injectedLabels returns the labels of a workload's pods with those that injection adds, which control planes read from endpoints
// (files/injection-template.yaml and gateway-injection-template.yaml of Istio's chart istio-discovery).
func (w *Workload) injectedLabels() map[string]string {
	own := w.Spec.Labels
	name := cmp.Or(own["app.kubernetes.io/name"], own["app"], w.Name)
	all := map[string]string{
		canonical + "name":     strings.TrimRight(name[:min(len(name), maxLabel)], "-_."),
		canonical + "revision": cmp.Or(own["app.kubernetes.io/version"], own["version"], "latest"),
	}
	if w.Spec.Proxy == Sidecar {
		all[tlsModeLabel] = tlsModeInjected
	}
	maps.Copy(all, own)
	return all
}
