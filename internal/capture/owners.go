package capture

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// owner is an object with a template for pods.
type owner struct {
	kind, namespace, name string
	was                   string // kind that a replay made this Deployment of; "" = it is of none
	proxy                 Proxy  // of its pods, as a replay made them; "" = they show it
	replicas              int    // -1 = as many as there are pods
	first                 int    // ordinal of a StatefulSet's first pod
	meta                  metav1.ObjectMeta
	spec                  corev1.PodSpec
}

// pod is one that was seen, or that an owner has to have.
type pod struct {
	name, node string
	meta       metav1.ObjectMeta
	spec       WorkloadSpec
	account    bool     // it states its account, as each pod of a cluster does
	ofNode     bool     // it has the network of its node
	alone      bool     // spec has no container of Istio's injection, which is known
	leftOut    []string // paths of fields of its ProxyConfig
}

// follows names the revision of a pod's proxy.
type follows struct {
	name string // "" = its namespace says it
	// asked reports that the name is from a label of the pod, which may be a tag. Else it is from the annotation of injection, which
	// has the revision itself.
	asked bool
}

// revision returns the revision that injected the pod's proxy or, where the pod does not have that annotation, the one that its label asks for.
func (p pod) revision() follows {
	switch injected := p.meta.Annotations[revisionLabel]; {
	case !p.spec.HasSidecar():
		return follows{}
	case injected != "":
		return follows{name: injected}
	default:
		return follows{p.meta.Labels[revisionLabel], true}
	}
}

func ownerKey(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

// owner takes a workload that has a template.
func (g *Gatherer) owner(object *unstructured.Unstructured) error {
	o := &owner{kind: object.GetKind(), namespace: cmp.Or(object.GetNamespace(), metav1.NamespaceDefault), name: object.GetName(), replicas: 1}
	var template corev1.PodTemplateSpec
	switch o.kind {
	case "Deployment":
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &d); err != nil {
			return err
		}
		template, o.was = d.Spec.Template, d.Annotations[ownerAnnotation]
		if made := Proxy(d.Annotations[proxyAnnotation]); slices.Contains(notInjected, made) {
			o.proxy = made
		}
		if d.Spec.Replicas != nil {
			o.replicas = int(*d.Spec.Replicas)
		}
	case "StatefulSet":
		var s appsv1.StatefulSet
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &s); err != nil {
			return err
		}
		template = s.Spec.Template
		if s.Spec.Replicas != nil {
			o.replicas = int(*s.Spec.Replicas)
		}
		if s.Spec.Ordinals != nil {
			o.first = int(s.Spec.Ordinals.Start)
		}
	default:
		var d appsv1.DaemonSet
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &d); err != nil {
			return err
		}
		template, o.replicas = d.Spec.Template, -1
		if _, known, _ := unstructured.NestedInt64(object.Object, "status", "desiredNumberScheduled"); known {
			o.replicas = int(d.Status.DesiredNumberScheduled)
		}
	}
	o.meta, o.spec = template.ObjectMeta, template.Spec
	g.owners[ownerKey(o.kind, o.namespace, o.name)] = o
	return nil
}

// pod adds a pod to those of its owner.
func (g *Gatherer) pod(object *unstructured.Unstructured) error {
	var p corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &p); err != nil {
		return err
	}
	p.Namespace = cmp.Or(p.Namespace, metav1.NamespaceDefault)
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		g.LeaveOut("pods", finished, 1)
		return nil
	}
	if p.DeletionTimestamp != nil {
		g.LeaveOut("pods", leaving, 1)
		return nil
	}
	for _, ip := range p.Status.PodIPs {
		if !p.Spec.HostNetwork { // else it is the node's
			g.addresses[p.Namespace+"/"+ip.IP] = true
		}
	}
	kind, name := ownerOf(p)
	of := pod{name: p.Name, node: p.Spec.NodeName, meta: p.ObjectMeta, spec: specOf(p.ObjectMeta, p.Spec, ""), account: p.Spec.ServiceAccountName != "", ofNode: p.Spec.HostNetwork}
	_, known := injectedContainers(p.ObjectMeta)
	of.alone = known || of.spec.Proxy == NoProxy
	if of.spec.Proxy == NoProxy && p.Annotations[redirection] == "enabled" {
		of.spec.Proxy = Ambient
	}
	if by := p.Annotations[revisionLabel]; by != "" && (of.spec.HasSidecar() || of.spec.Proxy == Waypoint) {
		if g.control.injected == nil {
			g.control.injected = map[string]int{}
		}
		g.control.injected[by]++
	}
	key := ownerKey(kind, p.Namespace, name)
	g.pods[key] = append(g.pods[key], of)
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

// workloads returns the pods of an owner, one workload for those that are alike: that differ in nothing
// that the control plane reads, in no label that something selects pods by, and not in what made their proxies.
func (g *Gatherer) workloads(key string) []Workload {
	o, pods := g.owners[key], g.pods[key]
	kind, id, _ := strings.Cut(key, " ")
	namespace, name, _ := strings.Cut(id, "/")
	replicas := len(pods)
	if o != nil {
		if o.replicas >= 0 {
			replicas = o.replicas
		} else {
			replicas = max(1, replicas)
		}
		if replicas == 0 {
			g.LeaveOut(strings.ToLower(kind)+"s.apps", withoutReplicas, 1)
			if len(pods) > 0 {
				g.LeaveOut("pods", scaledDown, len(pods))
			}
			return nil
		}
		pods = g.withMissing(o, pods, replicas)
	}
	slices.SortFunc(pods, func(a, b pod) int { return cmp.Or(cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.name, b.name)) })
	g.trim(namespace, o, pods)
	groups := alike(pods)
	taken := func(name string) bool {
		key := ownerKey(kind, namespace, name)
		return g.owners[key] != nil || g.pods[key] != nil || slices.ContainsFunc(pods, func(p pod) bool { return p.name == name })
	}
	next := 2
	owner := kind
	if o != nil {
		owner = cmp.Or(o.was, kind)
	}
	var all []Workload
	for i, group := range groups {
		w := Workload{Namespace: namespace, Name: name, Spec: group[0].spec}
		w.Spec.Owner, w.Spec.Replicas, w.Spec.Zones = owner, len(group), g.zones(group)
		switch ordinal, ok := strings.CutPrefix(group[0].name, name+"-"); {
		case len(groups) > 1 && len(group) == 1 && ok && isNumber(ordinal):
			w.Name = group[0].name
		case i > 0:
			for w.Name == name || taken(w.Name) {
				w.Name = name + "-" + strconv.Itoa(next)
				next++
			}
		}
		all = append(all, w)
		g.control.served[w.identity()] = group[0].revision()
	}
	if o != nil {
		switch seen := len(pods); {
		case len(groups) == 1:
			all[0].Spec.Replicas = replicas
		case seen < replicas: // pods that were not seen are like most
			all[0].Spec.Replicas += replicas - seen
		}
	}
	for i, w := range all {
		if n := w.Spec.maskedCredentials(); n > 0 {
			g.LeaveOut("credentials", maskedInPods, n)
		}
		for _, path := range groups[i][0].leftOut {
			g.LeaveOut("settings of proxies", foreignInPods+path, w.Spec.Replicas)
		}
	}
	return all
}

func isNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 32)
	return err == nil
}

// withMissing adds pods that an owner has to have and that were not seen: one if there is none, and
// those of a StatefulSet whose names something selects them by.
func (g *Gatherer) withMissing(o *owner, pods []pod, replicas int) []pod {
	own := pod{name: o.name, meta: o.meta, spec: specOf(o.meta, o.spec, o.proxy), ofNode: o.spec.HostNetwork}
	if own.spec.Proxy == NoProxy && o.proxy == "" && !proxyless(o.meta.Annotations) && g.injects(o) {
		own.spec.Proxy = Sidecar
	}
	if o.kind != "StatefulSet" || !g.selected[podName] && !g.selected[podIndex] {
		if len(pods) == 0 {
			return []pod{own}
		}
		return pods
	}
	seen := map[string]bool{}
	for _, p := range pods {
		seen[p.name] = true
	}
	if len(pods) > 0 {
		own.spec, own.alone = pods[0].spec, pods[0].alone
	}
	for i := range replicas {
		ordinal := strconv.Itoa(o.first + i)
		missing := own
		if missing.name = o.name + "-" + ordinal; seen[missing.name] {
			continue
		}
		missing.meta.Labels = map[string]string{}
		maps.Copy(missing.meta.Labels, o.meta.Labels)
		missing.meta.Labels[podName], missing.meta.Labels[podIndex] = missing.name, ordinal
		pods = append(pods, missing)
	}
	return pods
}

// neverInjected are the namespaces whose pods istiod does not inject (IgnoredNamespaces of istio.io/istio/pkg/kube/inject).
var neverInjected = []string{metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease, "local-path-storage"}

// injects reports whether the pods of a template without a proxy get a sidecar, by the selectors of the webhooks that Istio's charts make and
// by what istiod asks of a pod then (injectRequired of istio.io/istio/pkg/kube/inject).
func (g *Gatherer) injects(o *owner) bool {
	asked, asks := o.meta.Labels[injectLabel]
	if o.spec.HostNetwork || slices.Contains(neverInjected, o.namespace) || asked == "false" || !asks && o.meta.Annotations[injectLabel] == "false" {
		return false
	}
	labels := g.namespaces[o.namespace]
	switch enabled, decides := labels[injectionLabel]; {
	case decides:
		return enabled == "enabled"
	case labels[revisionLabel] != "", o.meta.Labels[revisionLabel] != "", asked == "true":
		return true
	}
	return !asks && slices.ContainsFunc(g.control.webhooks, injectsByDefault)
}

// injectsByDefault reports whether webhooks are those of an installation that injects pods of which neither they nor their namespace say
// anything (enableNamespacesByDefault of Istio's charts).
func injectsByDefault(w *unstructured.Unstructured) bool {
	all, _, _ := unstructured.NestedSlice(w.Object, "webhooks")
	return w.GetLabels()["app"] == injectorApp && slices.ContainsFunc(all, func(one any) bool {
		of, _ := one.(map[string]any)
		name, _ := of["name"].(string)
		return strings.HasPrefix(name, "auto.")
	})
}

// trim removes from the pods of an owner what does not affect the mesh. Pods with a template have the containers and labels of the template,
// their own accounts, and those of their own labels that matter. Of pods without a template, a label in which they differ stays only if it
// matters.
func (g *Gatherer) trim(namespace string, o *owner, pods []pod) {
	differ := map[string]bool{}
	for _, p := range pods {
		first := pods[0].meta.Labels
		for name, value := range p.meta.Labels {
			if of, there := first[name]; !there || of != value {
				differ[name] = true
			}
		}
		for name := range first {
			if _, there := p.meta.Labels[name]; !there {
				differ[name] = true
			}
		}
	}
	for i := range pods {
		p := &pods[i]
		switch {
		case o != nil && o.proxy != "":
			p.spec.Proxy = o.proxy
		case p.spec.Proxy == NoProxy && g.isAmbient(namespace, p):
			p.spec.Proxy = Ambient
		}
		labels, annotations := maps.Clone(p.meta.Labels), p.meta.Annotations
		maps.DeleteFunc(labels, func(name, _ string) bool { return differ[name] && !g.matters(name) })
		if o != nil {
			of := specOf(o.meta, o.spec, o.proxy)
			if !p.account {
				p.spec.Account = of.Account
			}
			p.spec.Containers = withPortsOf(of.Containers, p.spec.Containers, p.alone)
			labels, annotations = map[string]string{}, o.meta.Annotations
			maps.Copy(labels, o.meta.Labels)
			for name, value := range p.meta.Labels {
				if _, there := o.meta.Labels[name]; g.matters(name) && (there || !strings.HasPrefix(name, canonical)) {
					labels[name] = value
				}
			}
		}
		if zone := g.nodes[p.node]; p.node != "" { // the API server copies them from the node, as it does in a replay
			maps.DeleteFunc(labels, func(name, value string) bool {
				return name == corev1.LabelTopologyZone && value == zone.Zone || name == corev1.LabelTopologyRegion && value == zone.Region
			})
		}
		byHand := o != nil || labels[tlsModeLabel] != tlsModeInjected || p.spec.Proxy != Sidecar // injection adds it to pods with sidecars alone
		p.spec.Labels = kept(labels, func(name string) bool {
			return !droppedLabel(name) || g.selected[name] && perPod(name) || name == tlsModeLabel && byHand
		})
		if p.spec.Annotations = keptAnnotations(annotations); p.spec.Proxy == Gateway && p.spec.Annotations[templatesKey] == gatewayTemplate {
			delete(p.spec.Annotations, templatesKey) // a replay adds it, also where the control plane made the gateway without
		}
		if p.spec.HasSidecar() {
			var kept map[string]string
			kept, p.leftOut = keptProxySettings(annotations)
			maps.Copy(kept, p.spec.Annotations)
			if p.spec.Annotations = kept; len(kept) == 0 {
				p.spec.Annotations = nil
			}
		}
	}
}

// withPortsOf returns the containers of a template with the ports of a pod's containers of the same names: a pod of an earlier
// template may have others. With others, those with ports follow that the pod alone has: webhooks that a replay does not have added them.
func withPortsOf(template, pod []Container, others bool) []Container {
	all := slices.Clone(template)
	for _, c := range pod {
		switch at := slices.IndexFunc(template, func(of Container) bool { return of.Name == c.Name }); {
		case len(c.Ports) == 0:
		case at >= 0:
			all[at].Ports = c.Ports
		case others:
			all = append(all, c)
		}
	}
	return all
}

// isAmbient reports whether a pod without a proxy is in ambient mode by its labels or those of its
// namespace.
func (g *Gatherer) isAmbient(namespace string, p *pod) bool {
	return !p.ofNode && cmp.Or(p.meta.Labels[dataplaneLabel], g.namespaces[namespace][dataplaneLabel]) == "ambient"
}

// matters reports whether pods that differ in a label differ to the control plane: something selects
// pods by it, or Istio reads it.
func (g *Gatherer) matters(name string) bool {
	switch name {
	case "app", "version", "app.kubernetes.io/name", "app.kubernetes.io/version":
		return true
	}
	return g.selected[name] || strings.HasPrefix(name, "istio.io/") || strings.HasPrefix(name, canonical) || strings.HasPrefix(name, "networking.istio.io/")
}

// alike groups pods that do not differ, nor in the revision of their proxies, the largest group first.
func alike(pods []pod) [][]pod {
	groups, order := map[string][]pod{}, []string{}
	for _, p := range pods {
		text, err := json.Marshal(p.spec)
		if err != nil {
			text = fmt.Append(nil, p.name) // a specification is data
		}
		key := string(text) + p.revision().name
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], p)
	}
	var all [][]pod
	for _, key := range order {
		all = append(all, groups[key])
	}
	slices.SortStableFunc(all, func(a, b []pod) int { return len(b) - len(a) })
	return all
}

// zones returns the zones of pods, by their nodes.
func (g *Gatherer) zones(pods []pod) []Zone {
	in := map[Zone]int{}
	for _, p := range pods {
		if zone := g.nodes[p.node]; zone.Zone != "" {
			in[zone]++
		}
	}
	return zonesOf(in)
}

// uniqueNames gives workloads of different kinds with the same name different names,
// because a replay makes a Deployment of each. renamed is called with the identity that a workload had and has.
func (m *Mesh) uniqueNames(renamed func(was, is string)) {
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
		was := w.identity()
		for w.Name += "-" + strings.ToLower(w.Spec.Owner); taken[w.ID()]; w.Name += "-x" {
		}
		taken[w.ID()] = true
		renamed(was, w.identity())
	}
	m.sort()
}
