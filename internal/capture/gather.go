package capture

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Gatherer makes a mesh from the objects of a cluster, which are added one by one in any
// order.
type Gatherer struct {
	mesh       Mesh
	injection  map[string]bool // namespaces whose labels ask for sidecars
	nodes      map[string]Zone
	owners     map[string]*Workload // by owner kind, namespace and name: those that have a template
	pods       map[string]*Workload // likewise, what their pods say
	places     []podPlace
	configured map[string]bool // existing objects, by identity and group
	leftOut    map[[2]string]int
	refuses    map[string]bool // owners whose pods use the network of their node, and never have a sidecar
}

// podPlace is the node of a pod.
type podPlace struct{ owner, node string }

// NewGatherer returns one without objects.
func NewGatherer() *Gatherer {
	return &Gatherer{
		injection: map[string]bool{}, nodes: map[string]Zone{}, owners: map[string]*Workload{}, pods: map[string]*Workload{},
		configured: map[string]bool{}, refuses: map[string]bool{}, leftOut: map[[2]string]int{},
	}
}

// Why objects are left out.
const (
	ofWorkloads     = "those of workloads are in the workloads"
	notDocumented   = "not a kind that is captured"
	ofControlPlane  = "part of the control plane, of which a replay has its own"
	ofCluster       = "part of every cluster"
	withoutReplicas = "no replicas"
	finished        = "ended pods"
	leaving         = "pods that are being deleted"
	givenTwice      = "given more than once"
)

// LeaveOut records that objects are not part of the mesh. Count 0 = it is not known how
// many.
func (g *Gatherer) LeaveOut(kind, reason string, count int) {
	g.leftOut[[2]string{kind, reason}] += count
}

// Add adds an object; objects of other kinds than Resources are ignored. It returns an
// error if the object does not match its kind.
func (g *Gatherer) Add(object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	if isControlPlane(object) {
		g.LeaveOut(plural(object), ofControlPlane, 1)
		return nil
	}
	if r, ok := Configuration(kind); ok {
		if controller, _, _ := unstructured.NestedString(object.Object, "spec", "controllerName"); r.Kind == "GatewayClass" && strings.HasPrefix(controller, "istio.io/") {
			g.LeaveOut(r.name(), ofControlPlane, 1)
			return nil
		}
		g.configure(r, object)
		return nil
	}
	switch kind.GroupKind().String() {
	case "Namespace":
		g.namespace(object)
		return nil
	case "Node":
		labels := object.GetLabels()
		g.nodes[object.GetName()] = Zone{Region: labels[corev1.LabelTopologyRegion], Zone: labels[corev1.LabelTopologyZone]}
		return nil
	case "Service":
		return g.service(object)
	case "Pod":
		return g.pod(object)
	case "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps":
		return g.owner(object)
	case "ServiceAccount":
		g.LeaveOut("serviceaccounts", ofWorkloads, 1)
		return nil
	default:
		g.LeaveOut(plural(object), notDocumented, 1)
		return nil
	}
}

// plural returns the name of an object's kind in LeftOut.
func plural(object *unstructured.Unstructured) string {
	kind := object.GroupVersionKind()
	for _, r := range Resources() {
		if r.Group == kind.Group && r.Kind == kind.Kind {
			return r.name()
		}
	}
	return kind.GroupKind().String()
}

// isControlPlane reports whether an object belongs to the control plane itself, by the
// labels of its installation.
func isControlPlane(object *unstructured.Unstructured) bool {
	if object.GetKind() == "Namespace" || object.GetKind() == "Node" {
		return false
	}
	return object.GetLabels()["istio"] == "pilot"
}

func (g *Gatherer) namespace(object *unstructured.Unstructured) {
	labels := object.GetLabels()
	g.injection[object.GetName()] = labels[injectionLabel] == "enabled" || labels[injectionLabel] == "" && labels[revisionLabel] != ""
	g.mesh.Namespaces = append(g.mesh.Namespaces, Namespace{
		Name: object.GetName(), Labels: keptLabels(labels), Annotations: keptAnnotations(object.GetAnnotations()),
	})
}

func (g *Gatherer) configure(r Resource, object *unstructured.Unstructured) {
	identity := r.Group + " " + Identity(r.Kind, object.GetNamespace(), object.GetName())
	if g.configured[identity] {
		g.LeaveOut(r.name(), givenTwice, 1)
		return
	}
	g.configured[identity] = true
	g.mesh.Objects = append(g.mesh.Objects, r.trimmed(object))
}

func (g *Gatherer) service(object *unstructured.Unstructured) error {
	var s corev1.Service
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &s); err != nil {
		return err
	}
	if s.Namespace == "" {
		s.Namespace = metav1.NamespaceDefault
	}
	if s.Namespace == metav1.NamespaceDefault && s.Name == "kubernetes" {
		g.LeaveOut("services", ofCluster, 1)
		return nil
	}
	identity := Identity("Service", s.Namespace, s.Name)
	if g.configured[identity] {
		g.LeaveOut("services", givenTwice, 1)
		return nil
	}
	g.configured[identity] = true
	g.mesh.Services = append(g.mesh.Services, trimmedService(s))
	return nil
}

// owner takes a workload that has a template.
func (g *Gatherer) owner(object *unstructured.Unstructured) error {
	w := &Workload{Namespace: cmp.Or(object.GetNamespace(), metav1.NamespaceDefault), Name: object.GetName()}
	w.Spec.Owner, w.Spec.Replicas = object.GetKind(), 1
	var template corev1.PodTemplateSpec
	switch object.GetKind() {
	case "Deployment":
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &d); err != nil {
			return err
		}
		template = d.Spec.Template
		if d.Spec.Replicas != nil {
			w.Spec.Replicas = int(*d.Spec.Replicas)
		}
	case "StatefulSet":
		var s appsv1.StatefulSet
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &s); err != nil {
			return err
		}
		template = s.Spec.Template
		if s.Spec.Replicas != nil {
			w.Spec.Replicas = int(*s.Spec.Replicas)
		}
	default:
		var d appsv1.DaemonSet
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &d); err != nil {
			return err
		}
		template = d.Spec.Template
		if d.Status.DesiredNumberScheduled > 0 {
			w.Spec.Replicas = int(d.Status.DesiredNumberScheduled)
		}
	}
	w.Spec.fill(template.ObjectMeta, template.Spec)
	key := ownerKey(w.Spec.Owner, w.Namespace, w.Name)
	if g.owners[key] != nil {
		g.LeaveOut(plural(object), givenTwice, 1)
		return nil
	}
	w.Spec.Sidecar = w.Spec.Gateway || hasProxy(template.Spec) || asksForSidecar(template.ObjectMeta, template.Spec)
	if template.Spec.HostNetwork && !w.Spec.Sidecar {
		g.refuses[key] = true
	}
	g.owners[key] = w
	return nil
}

// pod adds a pod: its owner, its node and whether it has a sidecar.
func (g *Gatherer) pod(object *unstructured.Unstructured) error {
	var p corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &p); err != nil {
		return err
	}
	if p.Namespace == "" {
		p.Namespace = metav1.NamespaceDefault
	}
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		g.LeaveOut("pods", finished, 1)
		return nil
	}
	if p.DeletionTimestamp != nil {
		g.LeaveOut("pods", leaving, 1)
		return nil
	}
	kind, name := ownerOf(p)
	key := ownerKey(kind, p.Namespace, name)
	w := g.pods[key]
	if w == nil {
		w = &Workload{Namespace: p.Namespace, Name: name}
		w.Spec.fill(p.ObjectMeta, p.Spec)
		w.Spec.Owner, w.Spec.Sidecar = kind, w.Spec.Gateway || hasProxy(p.Spec)
		g.pods[key] = w
	}
	w.Spec.Replicas++
	g.places = append(g.places, podPlace{key, p.Spec.NodeName})
	return nil
}

// ownerOf returns the owner of a pod. The name of a Deployment is that of its ReplicaSet
// without the hash of the template.
func ownerOf(p corev1.Pod) (kind, name string) {
	owner := metav1.GetControllerOf(&p)
	if owner == nil {
		return "Pod", p.Name
	}
	if hash := p.Labels["pod-template-hash"]; owner.Kind == "ReplicaSet" && hash != "" {
		if name, ok := strings.CutSuffix(owner.Name, "-"+hash); ok {
			return "Deployment", name
		}
	}
	return owner.Kind, owner.Name
}

func ownerKey(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

// Mesh returns the mesh of the objects that were added. The Gatherer must not be used
// afterwards.
func (g *Gatherer) Mesh() Mesh {
	zones := map[string]map[Zone]int{}
	for _, at := range g.places {
		if zone := g.nodes[at.node]; zone.Zone != "" {
			if zones[at.owner] == nil {
				zones[at.owner] = map[Zone]int{}
			}
			zones[at.owner][zone]++
		}
	}
	all := maps.Clone(g.pods)
	for key, w := range g.owners {
		if seen := g.pods[key]; seen != nil {
			w.Spec.Sidecar, w.Spec.Gateway = seen.Spec.Sidecar, seen.Spec.Gateway
		} else if !w.Spec.Sidecar && !g.refuses[key] && !w.Spec.refusesSidecar() {
			w.Spec.Sidecar = g.injection[w.Namespace]
		}
		all[key] = w
	}
	for key, w := range all {
		if w.Spec.Replicas == 0 {
			g.LeaveOut(strings.ToLower(w.Spec.Owner)+"s.apps", withoutReplicas, 1)
			continue
		}
		for zone, pods := range zones[key] {
			zone.Pods = pods
			w.Spec.Zones = append(w.Spec.Zones, zone)
		}
		slices.SortFunc(w.Spec.Zones, func(a, b Zone) int {
			return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Zone, b.Zone))
		})
		w.Spec.Labels = keptLabels(w.Spec.Labels)
		w.Spec.Annotations = keptAnnotations(w.Spec.Annotations)
		if w.Spec.Gateway {
			delete(w.Spec.Annotations, templatesKey) // a replay adds it, also where the control plane made the gateway without
		}
		g.mesh.Workloads = append(g.mesh.Workloads, *w)
	}
	g.mesh.APIVersion, g.mesh.Kind = APIVersion, Kind
	g.addNamespaces()
	for _, key := range slices.SortedFunc(maps.Keys(g.leftOut), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	}) {
		g.mesh.LeftOut = append(g.mesh.LeftOut, LeftOut{Kind: key[0], Count: g.leftOut[key], Reason: key[1]})
	}
	g.mesh.sort()
	g.mesh.uniqueNames()
	return g.mesh
}

// addNamespaces adds needed namespaces that were not given, and drops empty ones.
func (g *Gatherer) addNamespaces() {
	used := map[string]bool{}
	for _, s := range g.mesh.Services {
		used[s.Namespace] = true
	}
	for _, w := range g.mesh.Workloads {
		used[w.Namespace] = true
	}
	for _, o := range g.mesh.Objects {
		if o.GetNamespace() != "" {
			used[o.GetNamespace()] = true
		}
	}
	var kept []Namespace
	given := map[string]bool{}
	for _, n := range g.mesh.Namespaces {
		if used[n.Name] && !given[n.Name] {
			given[n.Name] = true
			kept = append(kept, n)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !given[name] {
			kept = append(kept, Namespace{Name: name})
		}
	}
	g.mesh.Namespaces = kept
}

// uniqueNames gives workloads of different kinds with the same name different names,
// because a replay makes a Deployment of each.
func (m *Mesh) uniqueNames() {
	taken := map[string]bool{}
	for _, w := range m.Workloads {
		taken[w.ID()] = true
	}
	seen := map[string]bool{}
	for i := range m.Workloads {
		w := &m.Workloads[i]
		if id := w.ID(); !seen[id] {
			seen[id] = true
			continue
		}
		for w.Name += "-" + strings.ToLower(w.Spec.Owner); taken[w.ID()]; w.Name += "-x" {
		}
		taken[w.ID()] = true
	}
	m.sort()
}
