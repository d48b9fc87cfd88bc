package capture

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// rewriter replaces the names in a mesh. References are replaced in the same way as what
// they refer to, so that they stay intact.
type rewriter struct {
	namespace func(string) string
	name      func(string) string // of an object, and of what belongs to one: subsets, listeners, accounts
	host      func(string) string // in full, short or with a wildcard
	labels    func(map[string]string) map[string]string
	text      func(field, text string) string // of all other fields
	portName  func(string) string
	zone      func(string) string
	keys      func(field string, of map[string]any) map[string]any // of maps whose keys are not fields

	proxyConfig func(text string) string // of a pod's annotation; nil = it is kept
}

// mesh returns a copy of a mesh with other names.
func (r rewriter) mesh(m *Mesh) Mesh {
	to := Mesh{Header: m.Header}
	to.LeftOut, to.Captured = slices.Clone(m.LeftOut), slices.Clone(m.Captured)
	for _, n := range m.Namespaces {
		to.Namespaces = append(to.Namespaces, Namespace{r.namespace(n.Name), r.labels(n.Labels), r.annotations(n.Annotations)})
	}
	for _, s := range m.Services {
		to.Services = append(to.Services, r.service(s))
	}
	for _, s := range m.Slices {
		to.Slices = append(to.Slices, r.endpointSlice(s))
	}
	for _, w := range m.Workloads {
		to.Workloads = append(to.Workloads, r.workload(w))
	}
	for _, o := range m.Objects {
		to.Objects = append(to.Objects, r.object(o))
	}
	return to
}

func (r rewriter) service(s corev1.Service) corev1.Service {
	s = *s.DeepCopy()
	s.Name, s.Namespace = r.name(s.Name), r.namespace(s.Namespace)
	s.Labels, s.Annotations = r.labels(s.Labels), r.annotations(s.Annotations)
	s.Spec.Selector = r.labels(s.Spec.Selector)
	if s.Spec.ExternalName != "" {
		s.Spec.ExternalName = r.host(s.Spec.ExternalName)
	}
	for i, address := range s.Spec.ExternalIPs {
		s.Spec.ExternalIPs[i] = r.host(address)
	}
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		p.Name = r.portName(p.Name)
		p.TargetPort.StrVal = r.portName(p.TargetPort.StrVal)
	}
	return s
}

func (r rewriter) workload(w Workload) Workload {
	w.Namespace, w.Name = r.namespace(w.Namespace), r.name(w.Name)
	if w.Spec.Account != "" {
		w.Spec.Account = r.name(w.Spec.Account)
	}
	w.Spec.Labels, w.Spec.Annotations = r.labels(w.Spec.Labels), r.annotations(w.Spec.Annotations)
	w.Spec.Containers, w.Spec.Zones = slices.Clone(w.Spec.Containers), slices.Clone(w.Spec.Zones)
	for i := range w.Spec.Containers {
		c := &w.Spec.Containers[i]
		c.Name, c.Ports = r.name(c.Name), slices.Clone(c.Ports)
		for k := range c.Ports {
			c.Ports[k].Name = r.portName(c.Ports[k].Name)
		}
	}
	for i := range w.Spec.Zones {
		z := &w.Spec.Zones[i]
		z.Zone, z.Region = r.zone(z.Zone), r.zone(z.Region)
	}
	return w
}

// annotations returns the annotations, with other names for the namespaces that something
// is exported to.
func (r rewriter) annotations(annotations map[string]string) map[string]string {
	to := maps.Clone(annotations)
	for name, value := range to {
		switch {
		case strings.HasSuffix(name, "/exportTo"):
			var namespaces []string
			for namespace := range strings.SplitSeq(value, ",") {
				namespaces = append(namespaces, r.visibility(strings.TrimSpace(namespace)))
			}
			to[name] = strings.Join(namespaces, ",")
		case name == templatesKey:
			var templates []string
			for template := range strings.SplitSeq(value, ",") {
				if template = strings.TrimSpace(template); !slices.Contains(stockTemplates, template) {
					template = r.name(template)
				}
				templates = append(templates, template)
			}
			to[name] = strings.Join(templates, ",")
		case name == revisionAnnotation:
			to[name] = r.name(value)
		case name == proxyConfigKey && r.proxyConfig != nil:
			to[name] = r.proxyConfig(value)
		case strings.HasPrefix(name, "alpha.istio.io/"):
			to[name] = r.text(name, value)
		}
	}
	return to
}

// stockTemplates are the templates of injection that every installation has.
var stockTemplates = []string{"sidecar", gatewayTemplate, "grpc-simple", "grpc-agent", "waypoint", "kube-gateway", "agentgateway", "agentgateway-waypoint"}

// visibility rewrites a namespace and keeps the symbols for several namespaces.
func (r rewriter) visibility(namespace string) string {
	switch namespace {
	case "", "*", ".", "~":
		return namespace
	}
	return r.namespace(namespace)
}

func (r rewriter) object(o *unstructured.Unstructured) *unstructured.Unstructured {
	to := o.DeepCopy()
	to.SetName(r.name(o.GetName()))
	if o.GetNamespace() != "" {
		to.SetNamespace(r.namespace(o.GetNamespace()))
	}
	if labels := o.GetLabels(); labels != nil {
		to.SetLabels(r.labels(labels))
	}
	if annotations := o.GetAnnotations(); annotations != nil {
		to.SetAnnotations(r.annotations(annotations))
	}
	if spec, ok := to.Object["spec"]; ok {
		to.Object["spec"] = r.value("spec", spec)
	}
	return to
}

// value rewrites the names in a field's value.
func (r rewriter) value(field string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		switch field {
		case "labels", "matchLabels", "selector":
			if plain, ok, _ := unstructured.NestedStringMap(v); ok {
				return untyped(r.labels(plain))
			}
		}
		return r.fields(r.keys(field, v))
	case []any:
		for i, of := range v {
			if object, ok := of.(map[string]any); ok {
				r.condition(object)
				v[i] = r.fields(object)
			} else {
				v[i] = r.value(field, of)
			}
		}
		return v
	case string:
		return r.string(field, v)
	default:
		return value
	}
}

// condition rewrites the values of a condition of an AuthorizationPolicy that names namespaces or identities, which are in a list.
func (r rewriter) condition(of map[string]any) {
	field := map[any]string{"source.namespace": "namespaces", "source.principal": "principals"}[of["key"]]
	if field == "" {
		return
	}
	for _, name := range []string{"values", "notValues"} {
		list, _ := of[name].([]any)
		for i, one := range list {
			if text, ok := one.(string); ok {
				list[i] = r.string(field, text)
			}
		}
	}
}

// fields rewrites the names in an object's fields.
func (r rewriter) fields(of map[string]any) map[string]any {
	for name, value := range of {
		of[name] = r.value(name, value)
	}
	return of
}

// string rewrites the value of a string field, or an element of a list of strings.
func (r rewriter) string(field, text string) string {
	switch field {
	case "host", "hosts", "hostname", "hostnames", "sniHosts", "notHosts", "sni":
		if namespace, host, ok := strings.Cut(text, "/"); ok { // the namespace that it is looked up in
			return r.visibility(namespace) + "/" + r.host(host)
		}
		return r.host(text)
	case "namespace", "namespaces", "notNamespaces", "sourceNamespace", "exportTo":
		return r.visibility(text)
	case "principals", "notPrincipals", "subjectAltNames":
		return r.principal(text)
	case "gateways", "serviceAccounts", "notServiceAccounts":
		if namespace, name, ok := strings.Cut(text, "/"); ok {
			return r.visibility(namespace) + "/" + r.name(name)
		}
		return r.name(text)
	case "name", "subset", "serviceAccount", "sectionName", "credentialName":
		return r.name(text)
	}
	return r.text(field, text)
}

// principals matches the identities of workloads, in any trust domain.
var principals = regexp.MustCompile(`/ns/([^/]+)/(?:sa/)?([^/]+)$`)

func (r rewriter) principal(text string) string {
	at := principals.FindStringSubmatchIndex(text)
	if at == nil {
		return r.text("principals", text)
	}
	namespace, account := text[at[2]:at[3]], text[at[4]:at[5]]
	if account != "*" {
		account = r.name(account)
	}
	return text[:at[0]] + "/ns/" + r.visibility(namespace) + text[at[3]:at[4]] + account
}
