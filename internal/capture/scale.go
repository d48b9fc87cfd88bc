package capture

import (
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"scaler.mesh/scaler/pkg/scenario"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// MaxScale is the most copies of a mesh.
const MaxScale = 100

// once reports whether a cluster has this namespace only once, with all objects in it:
// the root namespace, whose configuration applies everywhere, and the cluster's own.
func (m *Mesh) once(namespace string) bool {
	return namespace == rootNamespace || namespace == m.Root() || strings.HasPrefix(namespace, "kube-")
}

// Times returns the mesh with n copies of its namespaces and of everything in them:
// services, workloads with their pods, and configuration. References to an object in a
// copied namespace lead to the same copy, as do the selectors of Gateways, and hosts outside the cluster are different in
// each copy. The root namespace, the cluster's own namespaces, and objects without a
// namespace are not copied. The error names a namespace for whose copy there is no valid
// name.
func (m *Mesh) Times(n int) (Mesh, error) {
	if n < 1 || n > MaxScale {
		return Mesh{}, scenario.Refuse("mesh.scale", n, "1 to %d", MaxScale)
	}
	to := *m
	if n == 1 {
		return to, nil
	}
	taken := map[string]bool{}
	for _, namespace := range m.Namespaces {
		taken[namespace.Name] = true
	}
	gateways := m.ownGateways(n)
	to.Scale = max(1, m.Scale) * n
	to.ControlPlane = m.ControlPlane.times(n, m.once)
	for copied := 2; copied <= n; copied++ {
		part := m.copied()
		for _, namespace := range part.Namespaces {
			name := copyName(namespace.Name, copied)
			if taken[name] || validation.IsDNS1123Label(name) != nil {
				return Mesh{}, scenario.Refuse("mesh.scale", n, "fewer copies: the name of namespace %s in copy %d would be %s, which is another's or too long", namespace.Name, copied, name)
			}
			taken[name] = true
		}
		part = copier(copied, part.Namespaces, gateways).mesh(&part)
		to.Namespaces = slices.Concat(to.Namespaces, part.Namespaces) // and not m's own, which is sorted with it
		to.Services = slices.Concat(to.Services, part.Services)
		to.Slices = slices.Concat(to.Slices, part.Slices)
		to.Workloads = slices.Concat(to.Workloads, part.Workloads)
		to.Objects = slices.Concat(to.Objects, part.Objects)
	}
	to.sort()
	if err := to.check(); err != nil {
		return Mesh{}, scenario.Refuse("mesh.scale", n, "fewer copies: %s", err)
	}
	return to, nil
}

// times returns the control plane of n copies of the mesh's namespaces. Namespaces for which once is true are not copied.
func (c *ControlPlane) times(n int, once func(string) bool) *ControlPlane {
	if c == nil {
		return nil
	}
	all := func(names []string) []string {
		to := slices.Clone(names)
		for copied := 2; copied <= n; copied++ {
			for _, name := range names {
				if !once(name) {
					to = append(to, copyName(name, copied))
				}
			}
		}
		slices.Sort(to)
		return to
	}
	to := *c
	to.Revisions = slices.Clone(c.Revisions)
	for i := range to.Revisions {
		r := &to.Revisions[i]
		r.Namespaces, r.Undiscovered, r.Pods = all(r.Namespaces), all(r.Undiscovered), r.Pods*n
		r.Workloads = slices.Clone(r.Workloads)
		for _, id := range c.Revisions[i].Workloads {
			for copied := 2; copied <= n; copied++ {
				if namespace, name, _ := strings.Cut(id, "/"); !once(namespace) {
					r.Workloads = append(r.Workloads, copyName(namespace, copied)+"/"+name)
				}
			}
		}
		slices.Sort(r.Workloads)
		r.Tagged = maps.Clone(r.Tagged)
		for tag, names := range r.Tagged {
			r.Tagged[tag] = all(names)
		}
	}
	return &to
}

func copyName(name string, copied int) string { return name + "-" + strconv.Itoa(copied) }

// copied returns the part of a mesh that is copied.
func (m *Mesh) copied() Mesh {
	return Mesh{
		Header:     m.Header,
		Namespaces: slices.DeleteFunc(slices.Clone(m.Namespaces), func(n Namespace) bool { return m.once(n.Name) }),
		Services:   slices.DeleteFunc(slices.Clone(m.Services), func(s corev1.Service) bool { return m.once(s.Namespace) }),
		Slices:     slices.DeleteFunc(slices.Clone(m.Slices), func(s discoveryv1.EndpointSlice) bool { return m.once(s.Namespace) }),
		Workloads:  slices.DeleteFunc(slices.Clone(m.Workloads), func(w Workload) bool { return m.once(w.Namespace) }),
		Objects: slices.DeleteFunc(slices.Clone(m.Objects), func(o *unstructured.Unstructured) bool {
			return o.GetNamespace() == "" || m.once(o.GetNamespace())
		}),
	}
}

// serviceHosts matches hosts of services anywhere in a text.
var serviceHosts = regexp.MustCompile(`\b([a-z0-9-]+)\.([a-z0-9-]+)\.svc\.cluster\.local\b`)

// copier gives the namespaces of a mesh, and the labels of gateways, the names of a copy.
func copier(copied int, namespaces []Namespace, gateways map[[2]string]bool) rewriter {
	r := renamer(namespaces, func(name string) string { return copyName(name, copied) }, "copy-"+strconv.Itoa(copied))
	renamed := r.labels
	r.labels = func(labels map[string]string) map[string]string {
		to := renamed(labels)
		for name, value := range to {
			if gateways[[2]string{name, value}] {
				to[name] = copyName(value, copied)
			}
		}
		return to
	}
	return r
}

// ownGateways returns labels, by name and value, by which Gateways that are copied n times select pods that are copied. A Gateway selects pods
// of all namespaces: in a copy these labels have another value, so that the gateways of each copy are configured by its Gateways alone. It
// returns none that pods or selectors have of which there is one, nor that are too long in a copy.
func (m *Mesh) ownGateways(n int) map[[2]string]bool {
	shared, own := map[[2]string]bool{}, map[[2]string]bool{}
	for _, w := range m.Workloads {
		for name, value := range w.Spec.Labels {
			if label := [2]string{name, value}; m.once(w.Namespace) {
				shared[label] = true
			} else if w.Spec.Proxy == Gateway {
				own[label] = true
			}
		}
	}
	for _, o := range m.Objects {
		if !m.once(o.GetNamespace()) {
			continue
		}
		eachField(o.Object["spec"], func(_ string, value any) {
			of, _ := value.(map[string]any)
			for name, value := range of {
				if text, ok := value.(string); ok {
					shared[[2]string{name, text}] = true
				}
			}
		})
	}
	all := map[[2]string]bool{}
	for _, o := range m.Objects {
		selector, _, _ := unstructured.NestedStringMap(o.Object, "spec", "selector")
		if o.GetKind() != "Gateway" || IsGatewayAPI(o.GroupVersionKind()) || m.once(o.GetNamespace()) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(selector)) {
			label := [2]string{name, selector[name]}
			if own[label] && !shared[label] && validation.IsValidLabelValue(copyName(label[1], n)) == nil {
				all[label] = true
				break // one of them suffices
			}
		}
	}
	return all
}

// renamer gives namespaces other names, wherever a mesh names them. Hosts outside the cluster become those of a domain below their own, outside.
func renamer(namespaces []Namespace, rename func(string) string, outside string) rewriter {
	ours := map[string]bool{}
	for _, n := range namespaces {
		ours[n.Name] = true
	}
	same := func(s string) string { return s }
	namespace := func(name string) string {
		if !ours[name] {
			return name
		}
		return rename(name)
	}
	inText := func(text string) string {
		return serviceHosts.ReplaceAllStringFunc(text, func(host string) string {
			parts := serviceHosts.FindStringSubmatch(host)
			return parts[1] + "." + namespace(parts[2]) + ".svc." + domain
		})
	}
	return rewriter{
		namespace: namespace, name: same, portName: same, zone: same,
		labels: func(labels map[string]string) map[string]string {
			to := maps.Clone(labels)
			if of := to[UseWaypointNamespace]; of != "" {
				to[UseWaypointNamespace] = namespace(of)
			}
			return to
		},
		keys: func(_ string, of map[string]any) map[string]any { return of },
		text: func(_, text string) string { return inText(text) },
		host: func(host string) string {
			if net.ParseIP(host) != nil {
				return host
			}
			wildcard, rest := "", host
			if suffix, ok := strings.CutPrefix(host, "*."); ok {
				wildcard, rest = "*.", suffix
			}
			switch of, inCluster := strings.CutSuffix(rest, ".svc."+domain); {
			case rest == domain, rest == "svc."+domain: // with a wildcard, all services
				return host
			case inCluster && wildcard != "": // all services of a namespace
				return wildcard + namespace(of) + ".svc." + domain
			case inCluster:
				return inText(host)
			}
			if !strings.Contains(rest, ".") { // of the same namespace, or all
				return host
			}
			service, of, _ := strings.Cut(rest, ".")
			if in, short := strings.CutSuffix(of, ".svc"); ours[in] && wildcard == "" {
				if service += "." + namespace(in); short {
					service += ".svc"
				}
				return service
			}
			return wildcard + outside + "." + rest
		},
	}
}
