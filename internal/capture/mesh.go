// Package capture captures the part of a cluster that determines the work of its control
// plane: services, workloads and configuration, without Secrets, images or commands. It
// gathers a mesh from the objects of a cluster, writes and reads its file, scales it and
// hides its names.
//
// The adapter of a control plane knows what the objects mean to it, and what its sidecars
// must hold. Other packages roll the mesh out.
package capture

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// APIVersion is the version of a mesh file's own documents, of the kinds Kind and
// WorkloadKind. The file begins with one document of kind Kind.
const (
	APIVersion   = "scaler.mesh/v1"
	Kind         = "Mesh"
	WorkloadKind = "Workload"
)

// Mesh is a captured mesh. Each list is sorted by namespace and name, Objects by kind first.
type Mesh struct {
	Header
	Namespaces []Namespace
	Services   []corev1.Service
	Workloads  []Workload
	// Objects are the objects of the mesh's configuration, of the kinds of Configuration.
	Objects []*unstructured.Unstructured

	places map[string]string // where each object is in its file, by its identity; nil = it was not read
}

// Header is the first document of a file.
type Header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Anonymized reports that names, hosts and values of labels are hashes.
	Anonymized bool `json:"anonymized,omitempty"`
	// Scale is the number of copies of the captured mesh; 0 = one.
	Scale int `json:"scale,omitempty"`
	// LeftOut lists, by kind, what the cluster had and the file does not.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
}

// LeftOut counts objects of one kind that the cluster had and the mesh does not.
type LeftOut struct {
	Kind   string `json:"kind"`            // plural and group as in `kubectl get`, or a description
	Count  int    `json:"count,omitempty"` // 0 = not known
	Reason string `json:"reason"`
}

// Namespace is one of a mesh.
type Namespace struct {
	Name        string
	Labels      map[string]string // without those that decide about injection, which the sidecars of workloads say
	Annotations map[string]string
}

// Workload is one or more pods that are alike: those of a Deployment, a StatefulSet, a
// DaemonSet or another owner.
type Workload struct {
	Namespace, Name string
	Spec            WorkloadSpec
}

// WorkloadSpec is the description of a workload in a mesh file.
type WorkloadSpec struct {
	Owner    string `json:"owner"` // kind of what owned the pods, as in Deployment; Pod = nothing did
	Replicas int    `json:"replicas"`
	// Sidecar reports that each pod has a sidecar; false = they are outside the mesh.
	Sidecar bool `json:"sidecar"`
	// Gateway reports that the sidecar is a gateway: a proxy on its own, without an application.
	Gateway     bool              `json:"gateway,omitempty"`
	Account     string            `json:"serviceAccount,omitempty"` // "" = default
	Labels      map[string]string `json:"labels,omitempty"`         // of its pods
	Annotations map[string]string `json:"annotations,omitempty"`    // of its pods, those that its proxy depends on
	Ports       []Port            `json:"ports,omitempty"`          // of its containers
	Zones       []Zone            `json:"zones,omitempty"`          // of the nodes of its pods; none = not known
}

// Port is a port of a container.
type Port struct {
	Name     string          `json:"name,omitempty"`
	Port     int32           `json:"port"`
	Protocol corev1.Protocol `json:"protocol,omitempty"` // "" = TCP
}

// Zone is the number of a workload's pods in one zone.
type Zone struct {
	Region string `json:"region,omitempty"`
	Zone   string `json:"zone"`
	Pods   int    `json:"pods"`
}

// ID returns a workload's namespace/name.
func (w Workload) ID() string { return w.Namespace + "/" + w.Name }

// rank sorts Deployments before workloads of other kinds with the same name.
func (w Workload) rank() int {
	if w.Spec.Owner == "Deployment" {
		return 0
	}
	return 1
}

// sort sorts the parts of a mesh.
func (m *Mesh) sort() {
	slices.SortFunc(m.Namespaces, func(a, b Namespace) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(m.Services, func(a, b corev1.Service) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(m.Workloads, func(a, b Workload) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), a.rank()-b.rank(), cmp.Compare(a.Spec.Owner, b.Spec.Owner))
	})
	slices.SortFunc(m.Objects, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(cmp.Compare(a.GroupVersionKind().Group, b.GroupVersionKind().Group), cmp.Compare(a.GetKind(), b.GetKind()),
			cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
}

// Place returns the position of an object in the file that the mesh was read from, as in
// "mesh.yaml: document 7"; "" if it was not read from one. identity is a result of
// Identity.
func (m *Mesh) Place(identity string) string { return m.places[identity] }

// Identity returns the name of an object in messages: kind, namespace and name.
func Identity(kind, namespace, name string) string {
	if namespace == "" {
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
}
