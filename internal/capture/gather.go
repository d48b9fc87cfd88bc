package capture

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Gatherer makes a mesh from the objects of a cluster, which are added one by one in any
// order.
type Gatherer struct {
	mesh       Mesh
	namespaces map[string]map[string]string // labels by name
	nodes      map[string]Zone
	owners     map[string]*owner // by kind, namespace and name: those that have a template
	pods       map[string][]pod  // by owner
	given      map[string]bool   // existing objects, by group and identity
	addresses  map[string]bool   // of pods with one of their own, by namespace and address
	slices     []discoveryv1.EndpointSlice
	endpoints  []endpointsObject
	read       map[string]int    // objects by kind
	leftOut    map[[2]string]int // objects by kind and reason
	selected   map[string]bool   // names of labels that something selects pods by
	control    installation      // of the control plane
}

// NewGatherer returns one without objects.
func NewGatherer() *Gatherer {
	return &Gatherer{
		namespaces: map[string]map[string]string{}, nodes: map[string]Zone{}, owners: map[string]*owner{}, pods: map[string][]pod{},
		given: map[string]bool{}, addresses: map[string]bool{}, read: map[string]int{}, leftOut: map[[2]string]int{}, selected: map[string]bool{},
		control: installation{processors: map[string]string{}, served: map[string]follows{}, reported: map[string]string{}},
	}
}

// Why objects are left out.
const (
	ofWorkloads     = "those of workloads are in the workloads"
	notDocumented   = "not a kind that is captured"
	ofControlPlane  = "part of the control plane, of which a replay has its own"
	ofCluster       = "part of every cluster"
	withoutReplicas = "no replicas"
	scaledDown      = "of workloads without replicas"
	finished        = "ended pods"
	leaving         = "pods that are being deleted"
	givenTwice      = "given more than once"
	withoutZone     = "their zone is not known"
	unused          = "nothing of the mesh is in them"
	foreignInPods   = "in annotations " + proxyConfigKey + " of pods, where they refer to the captured cluster: "
	maskedInPods    = "masked in annotations " + proxyConfigKey + " of pods"
	refused         = "a cluster would refuse it: "
)

// LeaveOut records that objects are not part of the mesh. Count 0 = it is not known how
// many.
func (g *Gatherer) LeaveOut(kind, reason string, count int) {
	g.leftOut[[2]string{kind, reason}] += count
}

// Add adds an object. Objects of other kinds than Resources, and objects that do not affect a mesh, are
// counted and left out. It returns an error if the object does not match its kind.
func (g *Gatherer) Add(object *unstructured.Unstructured) error {
	kind, name := object.GroupVersionKind(), plural(object)
	g.read[name]++
	if err := checkTexts(object); err != nil {
		return err
	}
	namespace := cmp.Or(object.GetNamespace(), metav1.NamespaceDefault)
	if r, _ := resourceOf(kind, basics, configuration); r.Cluster {
		namespace = "" // even if the object states one
	}
	identity := kind.Group + " " + Identity(kind.Kind, namespace, object.GetName())
	if g.given[identity] && object.GetName() != "" {
		g.LeaveOut(name, givenTwice, 1)
		return nil
	}
	g.given[identity] = true
	if isControlPlane(object) {
		return g.addControlPlane(object, name)
	}
	if r, ok := Configuration(kind); ok {
		if controller, _, _ := unstructured.NestedString(object.Object, "spec", "controllerName"); r.Kind == "GatewayClass" && strings.HasPrefix(controller, "istio.io/") {
			g.LeaveOut(name, ofControlPlane, 1)
			return nil
		}
		g.configure(r, object)
		return nil
	}
	switch kind.GroupKind().String() {
	case "Namespace":
		g.namespaces[object.GetName()] = object.GetLabels()
		g.mesh.Namespaces = append(g.mesh.Namespaces, Namespace{
			Name: object.GetName(), Labels: keptLabels(withheld(object)), Annotations: keptAnnotations(object.GetAnnotations()),
		})
		return nil
	case "Node":
		labels := object.GetLabels()
		g.control.processors[object.GetName()], _, _ = unstructured.NestedString(object.Object, "status", "allocatable", "cpu")
		g.nodes[object.GetName()] = Zone{Region: labels[corev1.LabelTopologyRegion], Zone: labels[corev1.LabelTopologyZone]}
		if labels[corev1.LabelTopologyZone] == "" {
			g.LeaveOut(name, withoutZone, 1)
		}
		return nil
	case "Service":
		return g.service(object)
	case "Pod":
		return g.pod(object)
	case "Deployment.apps", "StatefulSet.apps", "DaemonSet.apps":
		return g.owner(object)
	case "ConfigMap":
		return g.addConfigMap(object)
	case "MutatingWebhookConfiguration.admissionregistration.k8s.io":
		g.control.webhooks = append(g.control.webhooks, object)
		return nil
	case "HorizontalPodAutoscaler.autoscaling":
		g.control.autoscalers = append(g.control.autoscalers, object)
		return nil
	case "EndpointSlice." + discoveryv1.GroupName:
		return g.endpointSlice(object)
	case "Endpoints":
		return g.addEndpoints(object)
	case "ServiceAccount":
		g.LeaveOut(name, ofWorkloads, 1)
		return nil
	default:
		g.LeaveOut(name, notDocumented, 1)
		return nil
	}
}

// checkTexts checks that values of labels and annotations are texts, as those of an object in a cluster are. One that is not written is empty.
func checkTexts(object *unstructured.Unstructured) error {
	for _, field := range []string{"labels", "annotations"} {
		value, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", field)
		texts, isMap := value.(map[string]any)
		if value != nil && !isMap {
			return fmt.Errorf("metadata.%s %v: want names with values", field, value)
		}
		for _, name := range slices.Sorted(maps.Keys(texts)) {
			switch of := texts[name].(type) {
			case string:
			case nil:
				texts[name] = ""
			default:
				return fmt.Errorf("metadata.%s.%s %v: want a text", field, name, of)
			}
		}
	}
	return nil
}

// plural returns the name of an object's kind in counts.
func plural(object *unstructured.Unstructured) string {
	kind := object.GroupVersionKind()
	if r, ok := resourceOf(kind, basics, configuration, []Resource{autoscalers, configMaps, mirroredKind}); ok {
		return r.name()
	}
	if kind.GroupKind().String() == "ServiceAccount" {
		return "serviceaccounts"
	}
	return kind.GroupKind().String()
}

func (g *Gatherer) configure(r Resource, object *unstructured.Unstructured) {
	trimmed := r.trimmed(object)
	eachField(trimmed.Object["spec"], g.selector)
	g.mesh.Objects = append(g.mesh.Objects, trimmed)
}

// selector takes the names of the labels that a field of a specification selects pods by.
func (g *Gatherer) selector(field string, value any) {
	switch field {
	case "labels", "matchLabels", "selector":
		labels, _ := value.(map[string]any)
		for label, value := range labels {
			if _, ok := value.(string); ok {
				g.selected[label] = true
			}
		}
	case "failoverPriority":
		names, _ := value.([]any)
		for _, label := range names {
			if text, ok := label.(string); ok {
				name, _, _ := strings.Cut(text, "=")
				g.selected[name] = true
			}
		}
	}
}

// eachField calls do for each field of an object, by name, and of the objects in it.
func eachField(value any, do func(name string, value any)) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			do(name, v[name])
			eachField(v[name], do)
		}
	case []any:
		for _, of := range v {
			eachField(of, do)
		}
	}
}

func (g *Gatherer) service(object *unstructured.Unstructured) error {
	var s corev1.Service
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &s); err != nil {
		return err
	}
	s.Namespace = cmp.Or(s.Namespace, metav1.NamespaceDefault)
	if s.Namespace == metav1.NamespaceDefault && s.Name == "kubernetes" {
		g.LeaveOut("services", ofCluster, 1)
		return nil
	}
	for label := range s.Spec.Selector {
		g.selected[label] = true
	}
	g.mesh.Services = append(g.mesh.Services, trimmedService(s))
	return nil
}

// Mesh returns the mesh of the objects that were added. The Gatherer must not be used
// afterwards.
func (g *Gatherer) Mesh() Mesh {
	owners := map[string]bool{}
	for key := range g.owners {
		owners[key] = true
	}
	for key := range g.pods {
		owners[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(owners)) {
		g.mesh.Workloads = append(g.mesh.Workloads, g.workloads(key)...)
	}
	g.mesh.APIVersion, g.mesh.Kind = APIVersion, Kind
	g.leaveOutRefused()
	g.resolve()
	g.gatherEndpoints()
	g.addNamespaces()
	g.mesh.sort()
	g.mesh.uniqueNames(func(was, is string) { g.control.served[is] = g.control.served[was] })
	g.follow()
	g.count()
	return g.mesh
}

// leaveOutRefused leaves out what no cluster would have, and no replay could make.
func (g *Gatherer) leaveOutRefused() {
	bad := func(kind string, count int, namespace string, err error) bool {
		if namespace != "" && validation.IsDNS1123Label(namespace) != nil {
			err = fieldError(kind, "metadata.namespace", namespace, "a DNS label")
		}
		if err != nil {
			g.LeaveOut(kind, refused+err.Error(), count)
		}
		return err != nil
	}
	m := &g.mesh
	m.Namespaces = slices.DeleteFunc(m.Namespaces, func(n Namespace) bool { return bad("namespaces", 1, "", checkNamespace(n)) })
	m.Services = slices.DeleteFunc(m.Services, func(s corev1.Service) bool {
		return bad("services", 1, s.Namespace, checkService(Identity("Service", s.Namespace, s.Name), s))
	})
	m.Workloads = slices.DeleteFunc(m.Workloads, func(w Workload) bool {
		kind, count := "pods", w.Spec.Replicas
		for _, of := range []string{"Deployment", w.Spec.Owner} { // a replay's Deployments are of other kinds
			if _, ok := g.owners[ownerKey(of, w.Namespace, w.Name)]; ok {
				kind, count = strings.ToLower(of)+"s.apps", 1
			}
		}
		return bad(kind, count, w.Namespace, checkWorkload(Identity(w.Spec.Owner, w.Namespace, w.Name), w))
	})
	m.Objects = slices.DeleteFunc(m.Objects, func(o *unstructured.Unstructured) bool {
		return bad(plural(o), 1, o.GetNamespace(), checkObject(o))
	})
}

// count states how many objects of each kind were read and kept, and why the others were not.
func (g *Gatherer) count() {
	kept := maps.Clone(g.read)
	for _, key := range slices.SortedFunc(maps.Keys(g.leftOut), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	}) {
		kept[key[0]] -= g.leftOut[key]
		g.mesh.LeftOut = append(g.mesh.LeftOut, LeftOut{Kind: key[0], Count: g.leftOut[key], Reason: key[1]})
	}
	for _, kind := range slices.Sorted(maps.Keys(g.read)) {
		g.mesh.Captured = append(g.mesh.Captured, Captured{Kind: kind, Read: g.read[kind], Kept: kept[kind]})
	}
}

// addNamespaces adds needed namespaces that were not given, and leaves out empty ones.
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
	if c := g.mesh.ControlPlane; c != nil {
		for i := range c.Revisions {
			r := &c.Revisions[i]
			if root := r.Root(); root != rootNamespace { // which an installation has
				used[root] = true // for the changes of the whole mesh
			}
			if g.namespaces[r.Home()][networkLabel] != "" {
				used[r.Home()] = true
			}
		}
	}
	given := map[string]bool{}
	g.mesh.Namespaces = slices.DeleteFunc(g.mesh.Namespaces, func(n Namespace) bool {
		given[n.Name] = true
		if !used[n.Name] {
			g.LeaveOut("namespaces", unused, 1)
		}
		return !used[n.Name]
	})
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !given[name] {
			g.mesh.Namespaces = append(g.mesh.Namespaces, Namespace{Name: name})
		}
	}
}
