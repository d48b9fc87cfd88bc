package capture

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"scaler.mesh/scaler/internal/mask"
)

// Names of the control plane's installation.
const (
	controlPlaneApp    = "istiod" // label app of its Deployments, Services, pods and autoscalers
	discoveryContainer = "discovery"
	tagLabel           = "istio.io/tag" // of the webhooks of a tag
	meshConfigMap      = "istio"
	injectorConfigMap  = "istio-sidecar-injector"
	injectorApp        = "sidecar-injector" // label app of its webhooks
)

// Further resources of the control plane.
var (
	webhooks    = resource("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration").ofCluster()
	autoscalers = resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
	configMaps  = resource("", "v1", "configmaps", "ConfigMap")
)

// Why objects are not part of the control plane.
const (
	ofOthers      = "not of the control plane"
	changesNoPods = "they change no pods"
	unreadable    = "not all of it can be read: "
)

// installation gathers what there is of a control plane.
type installation struct {
	deployments []appsv1.Deployment
	services    []metav1.ObjectMeta
	configs     []corev1.ConfigMap
	webhooks    []*unstructured.Unstructured
	autoscalers []*unstructured.Unstructured
	pods        []controlPlanePod
	processors  map[string]string  // of nodes, by name
	injected    map[string]int     // pods with a proxy, by the revision that injected it
	served      map[string]follows // by the identity of workloads
	reported    map[string]string  // versions, by namespace/revision
	masked      int
}

// controlPlanePod is one of the control plane.
type controlPlanePod struct {
	namespace, name, node, revision string
	ready                           bool
}

// isControlPlane reports whether an object belongs to the control plane itself, by the
// labels of its installation.
func isControlPlane(object *unstructured.Unstructured) bool {
	switch object.GetKind() {
	case "Namespace", "Node", "ConfigMap", webhooks.Kind, autoscalers.Kind:
		return false
	}
	return object.GetLabels()["istio"] == "pilot" || object.GetLabels()["app"] == controlPlaneApp
}

// revisionOf returns the revision that labels name.
func revisionOf(labels map[string]string) string {
	return cmp.Or(labels[revisionLabel], defaultRevision)
}

// addControlPlane takes an object of the control plane's own, of which a replay has other ones.
func (g *Gatherer) addControlPlane(object *unstructured.Unstructured, name string) error {
	switch object.GetKind() {
	case "Deployment":
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &d); err != nil {
			return err
		}
		if slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == discoveryContainer }) {
			d.Namespace = cmp.Or(d.Namespace, metav1.NamespaceDefault)
			g.control.deployments = append(g.control.deployments, d)
			return nil
		}
	case "Service":
		g.control.services = append(g.control.services, metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName(), Labels: object.GetLabels()})
	case "Pod":
		var p corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &p); err != nil {
			return err
		}
		ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
		g.control.pods = append(g.control.pods, controlPlanePod{p.Namespace, p.Name, p.Spec.NodeName, revisionOf(p.Labels), ready && p.DeletionTimestamp == nil})
	}
	g.LeaveOut(name, ofControlPlane, 1)
	return nil
}

// addConfigMap takes a ConfigMap if it has the name of one of the control plane, and its content.
func (g *Gatherer) addConfigMap(object *unstructured.Unstructured) error {
	named := object.GetName() == meshConfigMap || strings.HasPrefix(object.GetName(), meshConfigMap+"-")
	data, _, _ := unstructured.NestedMap(object.Object, "data")
	if _, isMesh := data["mesh"]; !named || !isMesh && (!strings.HasPrefix(object.GetName(), injectorConfigMap) || data["config"] == nil) {
		g.LeaveOut(configMaps.name(), ofOthers, 1)
		return nil
	}
	var c corev1.ConfigMap
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &c); err != nil {
		return err
	}
	c.Namespace = cmp.Or(c.Namespace, metav1.NamespaceDefault)
	g.control.configs = append(g.control.configs, c)
	return nil
}

// revisions returns the known revisions by namespace, for each namespace with something of the control plane.
func (i *installation) revisions() map[string]map[string]bool {
	all := map[string]map[string]bool{}
	of := func(namespace string) map[string]bool {
		if all[namespace] == nil {
			all[namespace] = map[string]bool{}
		}
		return all[namespace]
	}
	for _, d := range i.deployments {
		of(d.Namespace)[revisionOf(d.Labels)] = true
	}
	for _, s := range i.services {
		if known := of(s.Namespace); s.Labels[tagLabel] == "" {
			known[revisionOf(s.Labels)] = true
		}
	}
	for _, w := range i.webhooks {
		if namespace := serviceNamespace(w); w.GetLabels()["app"] == injectorApp && namespace != "" {
			of(namespace)[revisionOf(w.GetLabels())] = true
		}
	}
	return all
}

// configNames returns the names of the ConfigMaps that configure revisions.
func configNames(revisions map[string]bool) (names []string) {
	for _, r := range slices.Sorted(maps.Keys(revisions)) {
		names = append(names, meshConfigMap+suffix(r), injectorConfigMap+suffix(r))
	}
	return names
}

// suffix returns the suffix of the names of a revision's objects.
func suffix(revision string) string {
	if revision == defaultRevision {
		return ""
	}
	return "-" + revision
}

// serviceNamespace returns the namespace of the Service that webhooks are called at; "" where that is a URL.
func serviceNamespace(w *unstructured.Unstructured) string {
	all, _, _ := unstructured.NestedSlice(w.Object, "webhooks")
	for _, one := range all {
		if of, ok := one.(map[string]any); ok {
			if namespace, _, _ := unstructured.NestedString(of, "clientConfig", "service", "namespace"); namespace != "" {
				return namespace
			}
		}
	}
	return ""
}

// resolve makes the control plane of what was gathered.
func (g *Gatherer) resolve() {
	i := &g.control
	revisions := map[[2]string]*Revision{} // by namespace and name
	of := func(namespace, name string) *Revision {
		key := [2]string{namespace, name}
		if revisions[key] == nil {
			revisions[key] = &Revision{Name: name, Namespace: namespace}
		}
		return revisions[key]
	}
	for _, d := range i.deployments {
		i.describe(of(d.Namespace, revisionOf(d.Labels)), d)
	}
	for _, c := range i.configs {
		prefix := meshConfigMap
		if strings.HasPrefix(c.Name, injectorConfigMap) {
			prefix = injectorConfigMap
		}
		name := cmp.Or(strings.TrimPrefix(strings.TrimPrefix(c.Name, prefix), "-"), defaultRevision)
		if err := i.configure(of(c.Namespace, name), c); err != nil {
			g.LeaveOut(configMaps.name(), unreadable+err.Error(), 1)
		}
	}
	for _, s := range i.services { // of an installation of which nothing else can be read
		if s.Labels[tagLabel] == "" {
			of(cmp.Or(s.Namespace, metav1.NamespaceDefault), revisionOf(s.Labels))
		}
	}
	g.scalers(revisions)
	others := g.tags(revisions)
	if len(revisions) == 0 {
		if others != nil {
			g.LeaveOut(webhooks.name(), "no control plane is known", len(others))
		}
		return
	}
	c := &ControlPlane{Webhooks: others, Masked: i.masked}
	for _, key := range slices.SortedFunc(maps.Keys(revisions), func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[1], b[1]), cmp.Compare(a[0], b[0])) }) {
		r := revisions[key]
		slices.Sort(r.Tags)
		r.Pods = i.injected[r.Name]
		r.Reported = i.reported[key[0]+"/"+key[1]]
		c.Revisions = append(c.Revisions, *r)
	}
	g.mesh.ControlPlane = c
}

// describe reads the Deployment of a revision.
func (i *installation) describe(r *Revision, d appsv1.Deployment) {
	r.Replicas = 1
	if d.Spec.Replicas != nil {
		r.Replicas = int(*d.Spec.Replicas)
	}
	for _, container := range d.Spec.Template.Spec.Containers {
		if container.Name != discoveryContainer {
			continue
		}
		r.Version = ImageVersion(container.Image)
		r.Requests, r.Limits = quantities(container.Resources.Requests), quantities(container.Resources.Limits)
		args, masked := mask.Args(container.Args)
		r.Args = args
		i.masked += masked
		for _, e := range container.Env {
			v := Variable{Name: e.Name, Value: mask.Value(e.Name, e.Value), From: source(e.ValueFrom)}
			if v.Value != e.Value {
				i.masked++
			}
			r.Env = append(r.Env, v)
		}
		for _, from := range container.EnvFrom {
			switch {
			case from.SecretRef != nil:
				r.Env = append(r.Env, Variable{Name: from.Prefix + "*", From: "secret " + from.SecretRef.Name})
			case from.ConfigMapRef != nil:
				r.Env = append(r.Env, Variable{Name: from.Prefix + "*", From: "ConfigMap " + from.ConfigMapRef.Name})
			}
		}
	}
	for _, p := range i.pods {
		processors := i.processors[p.node]
		if p.namespace != r.Namespace || p.revision != r.Name || processors == "" {
			continue
		}
		if r.NodeProcessors == "" || wholeProcessors(processors) < wholeProcessors(r.NodeProcessors) {
			r.NodeProcessors = processors
		}
	}
}

// source says where the value of a variable comes from.
func source(from *corev1.EnvVarSource) string {
	switch {
	case from == nil:
		return ""
	case from.SecretKeyRef != nil:
		return "secret " + from.SecretKeyRef.Name + ", key " + from.SecretKeyRef.Key
	case from.ConfigMapKeyRef != nil:
		return "ConfigMap " + from.ConfigMapKeyRef.Name + ", key " + from.ConfigMapKeyRef.Key
	case from.FieldRef != nil:
		return "field " + from.FieldRef.FieldPath
	case from.ResourceFieldRef != nil:
		return "resource " + from.ResourceFieldRef.Resource
	}
	return "elsewhere"
}

func quantities(list corev1.ResourceList) map[string]string {
	if len(list) == 0 {
		return nil
	}
	all := map[string]string{}
	for name, quantity := range list {
		all[string(name)] = quantity.String()
	}
	return all
}

// configure reads a ConfigMap of a revision. Templates are texts that are no YAML; all else is kept as values.
func (i *installation) configure(r *Revision, c corev1.ConfigMap) error {
	var errs []error
	values := func(key string) map[string]any {
		value, err := valueOf(c.Data[key])
		if err != nil {
			errs = append(errs, fmt.Errorf("data.%s: %w", key, err))
			return nil
		}
		i.masked += mask.Tree(value)
		return value
	}
	if !strings.HasPrefix(c.Name, injectorConfigMap) {
		r.MeshConfig = values("mesh")
		if networks := values("meshNetworks"); len(networks) > 0 {
			if all, isMap := networks["networks"].(map[string]any); !isMap || len(all) > 0 {
				r.MeshNetworks = networks
			}
		}
		return errors.Join(errs...)
	}
	injection := &Injection{Values: values("values")}
	config, err := valueOf(c.Data["config"])
	if err != nil {
		return errors.Join(append(errs, fmt.Errorf("data.config: %w", err))...)
	}
	templates, _ := config["templates"].(map[string]any)
	for name, template := range templates {
		if text, ok := template.(string); ok {
			if injection.Templates == nil {
				injection.Templates = map[string]string{}
			}
			hidden, masked := mask.Template(text)
			injection.Templates[name] = hidden
			i.masked += masked
		}
	}
	delete(config, "templates")
	i.masked += mask.Tree(config)
	injection.Config = config
	r.Injection = injection
	return errors.Join(errs...)
}

// valueOf returns the object of a text in YAML; nil of an empty one.
func valueOf(text string) (map[string]any, error) {
	document, err := yaml.YAMLToJSON([]byte(text))
	var value map[string]any
	if err != nil || json.Unmarshal(document, &value) != nil {
		return nil, errors.New("want an object in YAML") // the cause may quote the text
	}
	whole, _ := wholeNumbers(value).(map[string]any)
	return whole, nil
}

// scalers takes the autoscalers of revisions, and leaves out others.
func (g *Gatherer) scalers(revisions map[[2]string]*Revision) {
	for _, s := range g.control.autoscalers {
		target, _, _ := unstructured.NestedStringMap(s.Object, "spec", "scaleTargetRef")
		at := slices.IndexFunc(g.control.deployments, func(d appsv1.Deployment) bool {
			return target["kind"] == "Deployment" && d.Name == target["name"] && d.Namespace == cmp.Or(s.GetNamespace(), metav1.NamespaceDefault)
		})
		if at < 0 {
			g.LeaveOut(autoscalers.name(), ofOthers, 1)
			continue
		}
		least, known, _ := unstructured.NestedInt64(s.Object, "spec", "minReplicas")
		if !known {
			least = 1
		}
		most, _, _ := unstructured.NestedInt64(s.Object, "spec", "maxReplicas")
		d := g.control.deployments[at]
		revisions[[2]string{d.Namespace, revisionOf(d.Labels)}].Autoscaler = &Autoscaler{int(least), int(most)}
	}
}

// tags gives revisions their tags, and returns the webhooks of others that change pods.
func (g *Gatherer) tags(revisions map[[2]string]*Revision) (others []Webhook) {
	for _, w := range g.control.webhooks {
		if w.GetLabels()["app"] == injectorApp || w.GetLabels()[tagLabel] != "" {
			namespace := serviceNamespace(w)
			for key, r := range revisions {
				if tag := w.GetLabels()[tagLabel]; tag != "" && key[1] == revisionOf(w.GetLabels()) && (namespace == "" || namespace == key[0]) && !slices.Contains(r.Tags, tag) {
					r.Tags = append(r.Tags, tag)
				}
			}
			continue
		}
		if n := forPods(w); n > 0 {
			others = append(others, Webhook{Name: w.GetName(), Count: n})
		} else {
			g.LeaveOut(webhooks.name(), changesNoPods, 1)
		}
	}
	slices.SortFunc(others, func(a, b Webhook) int { return cmp.Compare(a.Name, b.Name) })
	return others
}

// forPods returns the number of webhooks of a configuration that are called for new pods.
func forPods(w *unstructured.Unstructured) (n int) {
	has := func(rule map[string]any, field string, values ...string) bool {
		list, _, _ := unstructured.NestedStringSlice(rule, field)
		return slices.ContainsFunc(list, func(of string) bool { return slices.Contains(values, of) })
	}
	all, _, _ := unstructured.NestedSlice(w.Object, "webhooks")
	for _, one := range all {
		of, _ := one.(map[string]any)
		rules, _, _ := unstructured.NestedSlice(of, "rules")
		if slices.ContainsFunc(rules, func(r any) bool {
			rule, _ := r.(map[string]any)
			return has(rule, "operations", "CREATE", "*") && has(rule, "resources", "pods", "*", "*/*") && has(rule, "apiGroups", "", "*")
		}) {
			n++
		}
	}
	return n
}

// follow states which namespaces of the mesh follow which revision, by their labels, which its discovery selectors leave out, and which
// workloads follow another one.
func (g *Gatherer) follow() {
	if g.mesh.ControlPlane == nil {
		return
	}
	all := g.mesh.ControlPlane.Revisions
	for i := range all {
		all[i].Undiscovered = g.undiscovered(&all[i])
	}
	meant := func(name string) *Revision {
		for i := range all {
			if slices.Contains(all[i].Tags, name) {
				return &all[i]
			}
		}
		return g.mesh.ControlPlane.named(name)
	}
	known := g.control.injected != nil
	by := map[string]*Revision{} // by namespace
	for _, n := range g.mesh.Namespaces {
		labels := g.namespaces[n.Name]
		name := labels[revisionLabel]
		switch labels[injectionLabel] { // which counts before the revision
		case "enabled":
			name = defaultRevision
		case "disabled":
			continue
		}
		if r := meant(name); name != "" && r != nil {
			by[n.Name] = r
			r.Namespaces = append(r.Namespaces, n.Name)
			if slices.Contains(r.Tags, name) {
				if r.Tagged == nil {
					r.Tagged = map[string][]string{}
				}
				r.Tagged[name] = append(r.Tagged[name], n.Name)
			}
			for _, w := range g.mesh.Workloads {
				if !known && w.Namespace == n.Name && w.Spec.HasSidecar() {
					r.Pods += w.Spec.Replicas
				}
			}
		}
	}
	for _, w := range g.mesh.Workloads {
		of := g.control.served[w.identity()]
		if labels := g.namespaces[w.Namespace]; of.asked && (labels[injectionLabel] != "" || labels[revisionLabel] != "") {
			continue // the webhooks of the namespace count, not the pod's label
		}
		r := meant(of.name)
		if injected := g.mesh.ControlPlane.named(of.name); injected != nil && !of.asked {
			r = injected // though a tag may have the same name
		}
		if r != nil && r != by[w.Namespace] {
			r.Workloads = append(r.Workloads, w.ID())
		}
	}
}

// undiscovered returns the namespaces of the mesh that the discovery selectors of a revision leave out.
func (g *Gatherer) undiscovered(r *Revision) (out []string) {
	selectors, _ := r.MeshConfig["discoverySelectors"].([]any)
	var all []labels.Selector
	for _, s := range selectors {
		text, err := json.Marshal(s)
		var one metav1.LabelSelector
		if err == nil {
			err = json.Unmarshal(text, &one)
		}
		selector, invalid := metav1.LabelSelectorAsSelector(&one)
		if err = errors.Join(err, invalid); err != nil {
			return nil // what the control plane makes of it is not known
		}
		all = append(all, selector)
	}
	if len(all) == 0 {
		return nil
	}
	for _, n := range g.mesh.Namespaces {
		given, known := g.namespaces[n.Name]
		if !known {
			continue
		}
		of := labels.Set{corev1.LabelMetadataName: n.Name}
		maps.Copy(of, given)
		if !slices.ContainsFunc(all, func(s labels.Selector) bool { return s.Matches(of) }) {
			out = append(out, n.Name)
		}
	}
	return out
}
