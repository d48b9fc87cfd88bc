package capture

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// domain is the domain of services' hosts.
const domain = "cluster.local"

// Reference is one object's to another.
type Reference struct {
	From  string // as Identity
	Field string
	To    string // host, namespace and name, or labels
}

// String returns the reference as it is reported.
func (r Reference) String() string { return r.From + ": " + r.Field + ": " + r.To }

// Dangling returns the references to things that the mesh does not have: hosts of no
// service, gateways, labels of no pods, and of a service without a selector its endpoints. They are not errors: a cluster has them, too.
func (m *Mesh) Dangling() []Reference {
	d := dangling{root: m.Root(), hosts: map[string]bool{}, gateways: map[string]bool{}, workloads: map[string][]*Workload{}, sliced: m.ServiceSlices()}
	for _, s := range m.Services {
		d.hosts[FullHost(s.Name, s.Namespace, domain)] = true
	}
	for i := range m.Workloads {
		w := &m.Workloads[i]
		d.workloads[w.Namespace] = append(d.workloads[w.Namespace], w)
	}
	for _, of := range m.Waypoints {
		for i := range of.pods {
			w := &of.pods[i]
			d.workloads[w.Namespace] = append(d.workloads[w.Namespace], w)
		}
	}
	for _, o := range m.Objects {
		switch o.GetKind() {
		case "ServiceEntry":
			hosts, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "hosts")
			for _, host := range hosts {
				if strings.HasPrefix(host, "*") {
					d.wildcards = append(d.wildcards, host)
				}
				d.hosts[host] = true
			}
		case "Gateway":
			d.gateways[o.GetNamespace()+"/"+o.GetName()] = true
		}
	}
	for i := range m.Services {
		d.service(&m.Services[i])
	}
	for _, o := range m.Objects {
		d.object(o)
	}
	return d.found
}

// dangling looks for references.
type dangling struct {
	root            string // namespace
	hosts, gateways map[string]bool
	sliced          map[string][]*discoveryv1.EndpointSlice // by service
	wildcards       []string                                // among hosts
	workloads       map[string][]*Workload
	found           []Reference
}

func (d *dangling) add(from, field, to string) {
	d.found = append(d.found, Reference{from, field, to})
}

func (d *dangling) service(s *corev1.Service) {
	switch {
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		return
	case len(s.Spec.Selector) == 0 && d.sliced[s.Namespace+"/"+s.Name] == nil:
		d.add(Identity("Service", s.Namespace, s.Name), "spec.selector", "no selector and no EndpointSlice, so that it has no endpoints")
		return
	case len(s.Spec.Selector) == 0:
		return
	}
	for _, w := range d.workloads[s.Namespace] {
		if Selects(s, w) {
			return
		}
	}
	d.add(Identity("Service", s.Namespace, s.Name), "spec.selector", text(s.Spec.Selector))
}

func (d *dangling) object(o *unstructured.Unstructured) {
	from := Identity(o.GetKind(), o.GetNamespace(), o.GetName())
	switch o.GetKind() {
	case "VirtualService":
		eachField(o.Object["spec"], func(name string, value any) {
			if to, ok := value.(map[string]any); ok && (name == "destination" || name == "mirror") {
				host, _ := to["host"].(string)
				d.host(from, name+".host", host, o.GetNamespace())
			}
		})
		gateways, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "gateways")
		for _, gateway := range gateways {
			full := gateway
			if !strings.Contains(gateway, "/") {
				full = o.GetNamespace() + "/" + gateway
			}
			if gateway != "mesh" && !d.gateways[full] {
				d.add(from, "spec.gateways", gateway)
			}
		}
	case "DestinationRule":
		host, _, _ := unstructured.NestedString(o.Object, "spec", "host")
		d.host(from, "spec.host", host, o.GetNamespace())
	case "HTTPRoute", "GRPCRoute", "TCPRoute", "TLSRoute", "UDPRoute":
		eachField(o.Object["spec"], func(name string, value any) {
			if list, ok := value.([]any); ok && name == "backendRefs" {
				d.backends(from, o.GetNamespace(), list)
			}
		})
	case "AuthorizationPolicy", "PeerAuthentication", "RequestAuthentication", "Sidecar":
		path := []string{"spec", "selector", "matchLabels"}
		if o.GetKind() == "Sidecar" {
			path = []string{"spec", "workloadSelector", "labels"}
		}
		selector, _, _ := unstructured.NestedStringMap(o.Object, path...)
		d.selector(from, strings.Join(path, "."), o.GetNamespace(), selector)
	}
}

// selector checks that there are pods with these labels. Selectors in the root namespace
// apply to all namespaces.
func (d *dangling) selector(from, field, namespace string, selector map[string]string) {
	if len(selector) == 0 {
		return
	}
	probe := &corev1.Service{}
	probe.Spec.Selector = selector
	for in, workloads := range d.workloads {
		if in != namespace && namespace != d.root {
			continue
		}
		probe.Namespace = in
		for _, w := range workloads {
			if Selects(probe, w) {
				return
			}
		}
	}
	d.add(from, field, text(selector))
}

func (d *dangling) host(from, field, host, namespace string) {
	full := FullHost(host, namespace, domain)
	if d.hosts[full] || strings.HasPrefix(full, "*") {
		return
	}
	for _, pattern := range d.wildcards {
		if HostMatches(pattern, full) {
			return
		}
	}
	d.add(from, field, host)
}

// backends checks the services that a route of the Gateway API leads to.
func (d *dangling) backends(from, namespace string, list []any) {
	for _, b := range list {
		backend, _ := b.(map[string]any)
		kind, _ := backend["kind"].(string)
		service, _ := backend["name"].(string)
		in, _ := backend["namespace"].(string)
		if host := FullHost(service, cmp.Or(in, namespace), domain); cmp.Or(kind, "Service") == "Service" && !d.hosts[host] {
			d.add(from, "backendRefs", cmp.Or(in, namespace)+"/"+service)
		}
	}
}
