package capture

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"scaler.mesh/scaler/internal/topology"
	"scaler.mesh/scaler/kwok"
)

// Topology returns the mesh in the form that a rollout uses. Each workload of m becomes a
// service of the topology with the same index. These services have no ports; Endpoints
// counts the endpoints of the real services.
func (m *Mesh) Topology() topology.Mesh {
	mesh := topology.Mesh{Endpoints: m.Endpoints(), Uncounted: m.injectedPorts()}
	for _, n := range m.Namespaces {
		mesh.Namespaces = append(mesh.Namespaces, n.Name)
	}
	taken := map[string]bool{}
	for _, w := range m.Workloads {
		s := topology.Service{
			Name: w.Name, Workload: w.Name, Namespace: w.Namespace, Account: cmp.Or(w.Spec.Account, "default"),
			Pods: w.Spec.Replicas, Outside: !w.Member(), ByNode: w.ByNode, Gateway: w.Spec.Proxy == Gateway,
		}
		if taken[s.Name] || len(s.Name) > maxLabel {
			s.Name = w.unique(taken)
		}
		taken[s.Name] = true
		for i := range m.Services {
			if of := &m.Services[i]; Selects(of, &w) {
				for _, p := range of.Spec.Ports {
					if target := Target(p, &w); target > 0 && !mesh.Uncounted[servicePort(of, p)] {
						s.Listed = append(s.Listed, topology.Listing{Namespace: of.Namespace, Service: of.Name, Port: p.Name, Target: int(target)})
					}
				}
			}
		}
		mesh.Services = append(mesh.Services, s)
	}
	return mesh
}

// maxLabel is the length of a label's value.
const maxLabel = 63

// unique returns a name for a workload that no other has, and that fits into a label.
func (w Workload) unique(taken map[string]bool) string {
	base := w.Name + "." + w.Namespace
	for n := 0; ; n++ {
		name := base
		if suffix := strconv.Itoa(n); n > 0 || len(base) > maxLabel {
			name = base[:min(len(base), maxLabel-len(suffix)-1)] + "-" + suffix
		}
		if !taken[name] {
			return name
		}
	}
}

// Members returns the number of pods of workloads that are members, see [Workload.Member], and the number of the others.
func (m *Mesh) Members() (members, outside int) {
	for _, w := range m.Workloads {
		if w.Member() {
			members += w.Spec.Replicas
		} else {
			outside += w.Spec.Replicas
		}
	}
	return members, outside
}

// ByNode returns the mesh as a replay has it whose nodes have proxies: its pods in ambient mode are members, and its own ztunnels are left
// out, with the settings of its control plane by which these are served. With waypoints, its control plane makes their pods. without is
// what it does not have of the mesh.
func (m *Mesh) ByNode(waypoints bool) (to Mesh, without []Difference) {
	to, without = *m, m.withoutHBONE()
	if waypoints {
		without = append(without, to.withWaypoints()...)
	}
	to.Workloads = slices.DeleteFunc(slices.Clone(to.Workloads), func(w Workload) bool { return w.Spec.Proxy == Ztunnel })
	for i := range to.Workloads {
		to.Workloads[i].ByNode = to.Workloads[i].Spec.Proxy == Ambient
	}
	to.ControlPlane = m.ControlPlane.withoutAmbient()
	return to, without
}

// Selects reports whether a service selects the pods of a workload as its endpoints.
func Selects(s *corev1.Service, w *Workload) bool {
	return s.Namespace == w.Namespace && len(s.Spec.Selector) > 0 && s.Spec.Type != corev1.ServiceTypeExternalName &&
		labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(w.Spec.Labels))
}

// Pods counts the pods of a mesh by what they are in it.
func (m *Mesh) Pods() map[Proxy]int {
	pods := map[Proxy]int{}
	for _, w := range m.Workloads {
		pods[w.Spec.Proxy] += w.Spec.Replicas
	}
	return pods
}

// Target returns the port of a workload's pods that a port of a service leads to; 0 if
// they do not have it. As in Kubernetes, a name is that of the first container that has it.
func Target(p corev1.ServicePort, w *Workload) int32 {
	if p.TargetPort.StrVal == "" {
		return cmp.Or(p.TargetPort.IntVal, p.Port)
	}
	for _, c := range w.Spec.Containers {
		for _, of := range c.Ports {
			if of.Name == p.TargetPort.StrVal && protocol(of.Protocol) == protocol(p.Protocol) {
				return of.Port
			}
		}
	}
	return 0
}

func protocol(p corev1.Protocol) corev1.Protocol { return cmp.Or(p, corev1.ProtocolTCP) }

// Endpoints returns the number of endpoints that the API server lists when all pods are
// ready: for each port of each service, the pods that it selects and that have the port, and the endpoints of other EndpointSlices.
// Endpoints of ports that pods have only from injection are not counted.
func (m *Mesh) Endpoints() (n int) {
	uncounted := m.injectedPorts()
	m.eachSelected(func(s *corev1.Service, w *Workload) {
		for _, p := range s.Spec.Ports {
			if Target(p, w) > 0 && !uncounted[servicePort(s, p)] {
				n += w.Spec.Replicas
			}
		}
	})
	return n + m.sliceEndpoints()
}

func servicePort(s *corev1.Service, p corev1.ServicePort) string {
	return topology.Listing{Namespace: s.Namespace, Service: s.Name, Port: p.Name}.String()
}

// statisticsPort is the name of the port that injection gives every proxy.
const statisticsPort = "http-envoy-prom"

// injectedPorts returns the ports of services, namespace/name:port, that lead to a port of a name that selected pods with a proxy do not
// have of their own, and may have from a container that injection adds: how many endpoints there are is not known.
func (m *Mesh) injectedPorts() map[string]bool {
	var templates []string
	if r := m.Served(); r != nil && r.Injection != nil {
		templates = slices.Collect(maps.Values(r.Injection.Templates))
	}
	adds := func(name string) bool {
		return name == statisticsPort || slices.ContainsFunc(templates, func(text string) bool { return strings.Contains(text, name) })
	}
	ports := map[string]bool{}
	m.eachSelected(func(s *corev1.Service, w *Workload) {
		for _, p := range s.Spec.Ports {
			if w.Spec.HasSidecar() && Target(p, w) == 0 && adds(p.TargetPort.StrVal) {
				ports[servicePort(s, p)] = true
			}
		}
	})
	return ports
}

// eachSelected calls do for each service with each workload that it selects.
func (m *Mesh) eachSelected(do func(*corev1.Service, *Workload)) {
	workloads := map[string][]*Workload{}
	for i := range m.Workloads {
		w := &m.Workloads[i]
		workloads[w.Namespace] = append(workloads[w.Namespace], w)
	}
	for i := range m.Services {
		s := &m.Services[i]
		for _, w := range workloads[s.Namespace] {
			if Selects(s, w) {
				do(s, w)
			}
		}
	}
}

// Surroundings returns the objects that must exist before the first pod: namespaces, of
// which those with sidecars get the labels injected, the accounts of workloads,
// services, without those of Mesh.Waypoints, and EndpointSlices.
func (m *Mesh) Surroundings(injected map[string]string) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	with, accounts := map[string]bool{}, map[[2]string]bool{}
	for _, w := range m.Workloads {
		with[w.Namespace] = with[w.Namespace] || w.Spec.HasSidecar()
		if w.Spec.Account != "" {
			accounts[[2]string{w.Namespace, w.Spec.Account}] = true
		}
	}
	for _, n := range m.Namespaces {
		object := named("v1", "Namespace", "", n.Name)
		all, annotations := withoutAdmission(n)
		if with[n.Name] {
			if all == nil {
				all = map[string]string{}
			}
			maps.Copy(all, injected)
		}
		object.SetLabels(all)
		object.SetAnnotations(annotations)
		objects = append(objects, object)
	}
	for _, account := range slices.SortedFunc(maps.Keys(accounts), func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
	}) {
		objects = append(objects, named("v1", "ServiceAccount", account[0], account[1]))
	}
	for i := range m.Services {
		if s := &m.Services[i]; m.WaypointNamed(s.Namespace, s.Name) < 0 {
			objects = append(objects, serviceObject(s))
		}
	}
	for i := range m.Slices {
		objects = append(objects, sliceObject(&m.Slices[i]))
	}
	return objects
}

// serviceObject returns a Service as a replay makes it.
func serviceObject(s *corev1.Service) *unstructured.Unstructured {
	families := s.Spec.IPFamilies
	if families != nil {
		s = s.DeepCopy()
		s.Spec.IPFamilies = nil
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[familiesAnnotation] = joinFamilies(families)
	}
	object, err := serviceFields(s)
	if err != nil {
		return named("v1", "Service", s.Namespace, s.Name) // a Service converts
	}
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer { // of which there may be more than node ports, and nobody asks for one
		_ = unstructured.SetNestedField(object, false, "spec", "allocateLoadBalancerNodePorts")
	}
	return &unstructured.Unstructured{Object: object}
}

func joinFamilies(families []corev1.IPFamily) string {
	var names []string
	for _, family := range families {
		names = append(names, string(family))
	}
	return strings.Join(names, ",")
}

// admits reports whether a namespace's label decides, by the API server's own admission, which pods may
// be created. The replay's pods are none of the captured ones: they would be refused for what they
// do not say of themselves, and the control plane does not read it. Of what else admission acts by,
// quotas, LimitRanges and admission policies are not captured.
func admits(label string) bool { return strings.HasPrefix(label, "pod-security.kubernetes.io/") }

// Annotations that a replay adds to its objects, so that a capture of the replay is equal to that of the original.
const (
	ownerAnnotation  = "scaler.mesh/owner"  // of a Deployment: the kind of the captured owner
	proxyAnnotation  = "scaler.mesh/proxy"  // of a Deployment: the Proxy of its pods, if injection does not make it
	labelsAnnotation = "scaler.mesh/labels" // of a Namespace: the labels that it does not have here, in JSON
	// familiesAnnotation of a Service has its IP families, where the cluster of the replay does not have them and refuses them.
	familiesAnnotation = "scaler.mesh/ip-families"
	// revisionAnnotation of a configuration object has the value of its label istio.io/rev, because of which other revisions ignore it.
	revisionAnnotation = "scaler.mesh/revision"
)

// placeholderImage is the image of the only container of a pod whose own containers are not known.
const placeholderImage = "scaler.mesh/placeholder"

// notInjected are the proxies that pods of a replay do not show: they lack the network of the host, the redirection or the arguments of what
// was captured.
var notInjected = []Proxy{NoProxy, Ambient, Ztunnel, Waypoint}

// Annotations returns the annotations of the Deployment of a workload.
func (w Workload) Annotations() map[string]string {
	annotations := map[string]string{}
	if w.Spec.Owner != "Deployment" {
		annotations[ownerAnnotation] = w.Spec.Owner
	}
	if slices.Contains(notInjected, w.Spec.Proxy) {
		annotations[proxyAnnotation] = string(w.Spec.Proxy)
	}
	if len(annotations) == 0 {
		return nil
	}
	return annotations
}

// withoutAdmission returns the labels of a namespace without those that admits names, which its annotations have.
func withoutAdmission(n Namespace) (labels, annotations map[string]string) {
	labels = maps.Clone(n.Labels)
	maps.DeleteFunc(labels, func(name, _ string) bool { return admits(name) })
	if len(labels) == len(n.Labels) {
		return labels, n.Annotations
	}
	left := maps.Clone(n.Labels)
	maps.DeleteFunc(left, func(name, _ string) bool { return !admits(name) })
	text, err := json.Marshal(left)
	if err != nil {
		return labels, n.Annotations // texts are JSON
	}
	annotations = map[string]string{labelsAnnotation: string(text)}
	maps.Copy(annotations, n.Annotations)
	return labels, annotations
}

// withheld returns the labels of a namespace, with those that a replay did not give it.
func withheld(namespace *unstructured.Unstructured) map[string]string {
	text := namespace.GetAnnotations()[labelsAnnotation]
	var left map[string]string
	if text == "" || json.Unmarshal([]byte(text), &left) != nil {
		return namespace.GetLabels()
	}
	all := map[string]string{}
	maps.Copy(all, namespace.GetLabels())
	maps.Copy(all, left)
	return all
}

func named(apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}}
}

// WithTemplates returns a workload that asks for none but these templates of injection, and those that
// it asked for besides.
func (w Workload) WithTemplates(known []string) (_ Workload, others []string) {
	if asked := w.Spec.Annotations[templatesKey]; asked == "" || asked == gatewayTemplate && w.Spec.Proxy == Gateway {
		return w, nil
	}
	var kept []string
	for name := range strings.SplitSeq(w.Spec.Annotations[templatesKey], ",") {
		if name = strings.TrimSpace(name); slices.Contains(known, name) {
			kept = append(kept, name)
		} else {
			others = append(others, name)
		}
	}
	if others == nil {
		return w, nil
	}
	w.Spec.Annotations = maps.Clone(w.Spec.Annotations)
	if kept == nil {
		delete(w.Spec.Annotations, templatesKey) // injection takes its default
	} else {
		w.Spec.Annotations[templatesKey] = strings.Join(kept, ",")
	}
	return w, others
}

// Template returns the template of a workload's pods: with the captured labels, account,
// containers with their ports, which do nothing, and zones, and the label that makes injection
// add a sidecar or none. Whoever creates the pods adds nodes and the labels of a run.
func (w Workload) Template() corev1.PodTemplateSpec {
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}, Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{ServiceAccountName: cmp.Or(w.Spec.Account, "default"), Containers: w.containers()},
	}
	maps.Copy(template.Labels, w.Spec.Labels)
	maps.Copy(template.Annotations, w.Spec.Annotations)
	if w.ByNode {
		template.Annotations[redirection] = "enabled"
	}
	switch {
	case w.Spec.Proxy == Gateway:
		template.Annotations[templatesKey] = cmp.Or(template.Annotations[templatesKey], gatewayTemplate)
		template.Labels[injectLabel] = "true"
	case w.Spec.Proxy != Sidecar:
		template.Labels[injectLabel] = "false"
	}
	w.place(&template.Spec)
	return template
}

// containers returns the containers of a workload's pods before injection, which replaces the image
// auto. Pods have one at least.
func (w Workload) containers() (all []corev1.Container) {
	for _, c := range w.Spec.Containers {
		of := corev1.Container{Name: c.Name, Image: "scaler.mesh/simulated"}
		for _, p := range c.Ports {
			of.Ports = append(of.Ports, corev1.ContainerPort{Name: p.Name, ContainerPort: p.Port, Protocol: p.Protocol})
		}
		if w.Spec.Proxy == Gateway && c.Name == proxyContainer {
			of.Image = "auto"
		}
		all = append(all, of)
	}
	switch {
	case w.Spec.Proxy == Gateway && !slices.ContainsFunc(all, func(c corev1.Container) bool { return c.Name == proxyContainer }):
		return append(all, corev1.Container{Name: proxyContainer, Image: "auto"})
	case all == nil:
		return []corev1.Container{{Name: "app", Image: placeholderImage}}
	}
	return all
}

// place spreads the pods of a workload evenly over the zones that they were captured in. Those that are left over are
// in the zones that had most of them, so a workload that was spread evenly is placed as it was.
func (w Workload) place(spec *corev1.PodSpec) {
	zones := slices.SortedStableFunc(slices.Values(w.Spec.Zones), func(a, b Zone) int { return cmp.Compare(b.Pods, a.Pods) })
	var names []string
	for _, z := range zones {
		names = append(names, z.Zone)
	}
	kwok.SpreadOverZones(spec, names, w.Spec.Labels)
}

// Zones returns the zones of all workloads, with the number of pods in each; empty if
// none is known.
func (m *Mesh) Zones() []Zone {
	pods := map[Zone]int{}
	for _, w := range m.Workloads {
		for _, z := range w.Spec.Zones {
			pods[Zone{Region: z.Region, Zone: z.Zone}] += z.Pods
		}
	}
	return zonesOf(pods)
}

// zonesOf returns zones with these numbers of pods, sorted; nil if there are none.
func zonesOf(pods map[Zone]int) (zones []Zone) {
	for zone, n := range pods {
		zone.Pods = n
		zones = append(zones, zone)
	}
	slices.SortFunc(zones, func(a, b Zone) int { return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Zone, b.Zone)) })
	return zones
}
