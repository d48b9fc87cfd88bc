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
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// APIVersion is the version of a mesh file's own documents, of the kinds Kind and
// WorkloadKind: that of its format. The file begins with one document of kind Kind.
const (
	APIVersion   = apiGroup + "/v2"
	Kind         = "Mesh"
	WorkloadKind = "Workload"
)

const apiGroup = "scaler.mesh"

// Mesh is a captured mesh. Each list is sorted by namespace and name, Objects by kind first.
type Mesh struct {
	Header
	Namespaces []Namespace
	Services   []corev1.Service
	// Slices are the EndpointSlices of Services that are not made from the pods which these select.
	Slices    []discoveryv1.EndpointSlice
	Workloads []Workload
	// Objects are the objects of the mesh's configuration, of the kinds of Configuration.
	Objects []*unstructured.Unstructured
	// Waypoints have no workloads: a replay makes their Gateways and Services before the mesh, see [Mesh.ByNode].
	Waypoints []OwnWaypoint

	places map[string]string // where each object is in its file, by its identity; nil = it was not read
	served string            // name of the revision that a replay runs, by Of; "" = see Served
}

// Header is the first document of a file.
type Header struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Anonymized reports that names, hosts and values of labels are hashes.
	Anonymized bool `json:"anonymized,omitempty"`
	// Scale is the number of copies of the captured mesh; 0 = one.
	Scale int `json:"scale,omitempty"`
	// ControlPlane is the control plane of the mesh; nil = it is not known.
	ControlPlane *ControlPlane `json:"controlPlane,omitempty"`
	// Captured counts the objects that were given, by kind: those that are in the mesh, or in its
	// workloads and zones, and by LeftOut those that are not.
	Captured []Captured `json:"captured,omitempty"`
	// LeftOut lists, by kind, what the cluster had and the file does not.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
}

// Captured counts the objects of one kind.
type Captured struct {
	Kind string `json:"kind"` // as in LeftOut
	Read int    `json:"read"`
	Kept int    `json:"kept"`
}

// leaveOut records that objects of the mesh are left out of it.
func (h *Header) leaveOut(kind, reason string, count int) {
	h.LeftOut = append(h.LeftOut, LeftOut{Kind: kind, Count: count, Reason: reason})
	if i := slices.IndexFunc(h.Captured, func(c Captured) bool { return c.Kind == kind }); i >= 0 {
		h.Captured[i].Kept -= count
	}
}

// LeftOut counts objects of one kind that the cluster had and the mesh does not.
type LeftOut struct {
	Kind   string `json:"kind"`            // plural and group as in `kubectl get`, or a description
	Count  int    `json:"count,omitempty"` // 0 = not known
	Reason string `json:"reason"`
}

// Namespace is one of a mesh.
type Namespace struct {
	Name        string            `json:"name"`
	Labels      map[string]string `json:"labels,omitempty"` // without those that decide about injection, which the sidecars of workloads say
	Annotations map[string]string `json:"annotations,omitempty"`
}

// Workload is one or more pods that are alike: those of a Deployment, a StatefulSet, a
// DaemonSet or another owner.
type Workload struct {
	Namespace, Name string
	Spec            WorkloadSpec

	ByNode bool // a replay has its pods in ambient mode: see [Mesh.ByNode]
}

// Member reports whether its pods have a proxy that a rollout simulates: one each or, see [Mesh.ByNode], that of their node.
func (w Workload) Member() bool { return w.Spec.HasSidecar() || w.ByNode }

// WorkloadSpec is the description of a workload in a mesh file.
type WorkloadSpec struct {
	Owner       string            `json:"owner"` // kind of what owned the pods, as in Deployment; Pod = nothing did
	Replicas    int               `json:"replicas"`
	Proxy       Proxy             `json:"proxy"`
	Account     string            `json:"serviceAccount,omitempty"` // "" = default
	Labels      map[string]string `json:"labels,omitempty"`         // of its pods
	Annotations map[string]string `json:"annotations,omitempty"`    // of its pods, those that its proxy depends on
	Containers  []Container       `json:"containers,omitempty"`     // of its pods, in their order, without a sidecar; none = not known
	Zones       []Zone            `json:"zones,omitempty"`          // of the nodes of its pods; none = not known
}

// Proxy says what each pod of a workload is in the mesh.
type Proxy string

// What pods are in a mesh.
const (
	NoProxy  Proxy = "none"    // outside
	Sidecar  Proxy = "sidecar" // an application with a sidecar
	Gateway  Proxy = "gateway" // a proxy of the sidecars' kind on its own
	Ambient  Proxy = "ambient" // an application whose connections the ztunnel of its node takes
	Ztunnel  Proxy = "ztunnel"
	Waypoint Proxy = "waypoint"
	// OtherRevision is an application with a sidecar, or a gateway, of a revision that a replay does not run: see [Mesh.Of].
	OtherRevision Proxy = "otherRevision"
)

// ofAFile lists the values of a Proxy that a file may have.
const ofAFile = "none, sidecar, gateway, ambient, ztunnel or waypoint"

// proxies are all values of a Proxy.
var proxies = []Proxy{NoProxy, Sidecar, Gateway, Ambient, Ztunnel, Waypoint, OtherRevision}

// OfOneRevision reports whether [Mesh.Of] has reduced the mesh to one revision.
func (m *Mesh) OfOneRevision() bool { return m.served != "" }

// HasSidecar reports whether each pod has a proxy that a rollout simulates: a sidecar, or one that is a
// gateway.
func (w WorkloadSpec) HasSidecar() bool { return w.Proxy == Sidecar || w.Proxy == Gateway }

// Container is one of a workload's pods.
type Container struct {
	Name  string `json:"name"`
	Ports []Port `json:"ports,omitempty"`
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

// identity distinguishes a workload from others of its name, of which each has another kind.
func (w Workload) identity() string { return Identity(w.Spec.Owner, w.Namespace, w.Name) }

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
	slices.SortFunc(m.Slices, func(a, b discoveryv1.EndpointSlice) int {
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
