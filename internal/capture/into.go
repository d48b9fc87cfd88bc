package capture

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"scaler.mesh/scaler/internal/output"
)

// meshWide are the kinds of which an object in the root namespace applies to all namespaces.
var meshWide = []string{
	"AuthorizationPolicy", "DestinationRule", "EnvoyFilter", "PeerAuthentication", "ProxyConfig", "RequestAuthentication", "Sidecar", "Telemetry", "TrafficExtension", "WasmPlugin",
}

// exported are the kinds whose objects state in spec.exportTo which namespaces see them; all, where they state none.
var exported = []string{"DestinationRule", "ServiceEntry", "VirtualService"}

// Into returns the mesh in a form that a cluster with other users can have without an effect on their traffic. Names of its
// namespaces begin with prefix, which no namespace of the cluster does. selected are labels that all its pods with proxies have there, and
// no other pod.
//
// Hosts of services are those of the renamed namespaces, and hosts outside the cluster begin with the prefix, too. What all namespaces
// see is exported to those of the mesh alone: ServiceEntries, VirtualServices, DestinationRules, and Services, of whose HTTP ports other
// sidecars would have listeners on all addresses. A Gateway selects only pods with the labels selected. Services have neither ports of nodes nor
// load balancers. Left out are the objects of the root namespace that apply to all namespaces; the Gateway API, by which a controller of
// the cluster would start proxies; zones; EndpointSlices; labels that name waypoints; and where keys of RequestAuthentications are.
//
// The control plane is the cluster's: the mesh has none. left is what the mesh lacks by all that. The error names a namespace for which there
// is no valid name.
func (m *Mesh) Into(prefix string, selected map[string]string) (to Mesh, left []Difference, err error) {
	part := *m
	part.ControlPlane, part.Objects, part.Slices = nil, nil, nil
	own := Difference{What: "control plane", Changes: "version, settings, mesh configuration and templates of injection: those of the cluster's own"}
	if r := m.Served(); r != nil {
		own.Value = r.Release()
	}
	left = append([]Difference{own}, m.beside()...)
	gateways := map[string]int{} // by kind
	for _, o := range m.Objects {
		switch {
		case IsGatewayAPI(o.GroupVersionKind()):
			gateways[o.GetKind()]++
		case o.GetNamespace() == m.Root() && slices.Contains(meshWide, o.GetKind()):
			left = append(left, Difference{Identity(o.GetKind(), o.GetNamespace(), o.GetName()), "", "what it sets for all namespaces: nothing is created in the root namespace of the cluster"})
		default:
			part.Objects = append(part.Objects, o)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(gateways)) {
		left = append(left, Difference{kind + " of the Gateway API", output.Many(gateways[kind], "object"), "what it configures: a controller of the cluster could start proxies for it"})
	}
	var names []string
	for _, n := range m.Namespaces {
		name := prefix + n.Name
		if wrong := validation.IsDNS1123Label(name); wrong != nil {
			return to, nil, fmt.Errorf("namespace %s would be %s: %s", n.Name, name, strings.Join(wrong, "; "))
		}
		names = append(names, name)
	}
	renamed := renamer(m.Namespaces, func(name string) string { return prefix + name }, strings.TrimSuffix(prefix, "-"))
	waypoints := 0
	renamed.labels = func(labels map[string]string) map[string]string {
		kept := maps.Clone(labels)
		maps.DeleteFunc(kept, func(name, _ string) bool { return ofWaypoint(name) })
		if len(kept) != len(labels) {
			waypoints++
		}
		return kept
	}
	to = renamed.mesh(&part)
	lacks := func(what string, n int, noun, changes string) {
		if n > 0 {
			left = append(left, Difference{what, output.Many(n, noun), changes})
		}
	}
	lacks("zones", len(to.Zones()), "zone", "localities of endpoints: fake nodes of a zone would take part in the scheduling of other pods")
	for i := range to.Workloads {
		to.Workloads[i].Spec.Zones = nil
	}
	lacks("labels istio.io/use-waypoint", waypoints, "object", "waypoints that serve them: a waypoint of the cluster could have that name")
	reached, families := 0, 0
	for i := range to.Services {
		if to.Services[i].Spec.IPFamilies != nil {
			families++
		}
		if confineService(&to.Services[i], names) {
			reached++
		}
	}
	lacks("ports of nodes, load balancers and external addresses", reached, "service", "how they are reached from outside the cluster: they have type ClusterIP")
	lacks("EndpointSlices", len(m.Slices), "object", "endpoints that Services have besides pods: the rights of a run do not include writing EndpointSlices")
	lacks("IP families", families, "service", "addresses: those of the cluster's default family")
	asked := 0
	for _, o := range to.Objects {
		if inlineKeys(o) {
			asked++
		}
	}
	lacks("keys of RequestAuthentications", asked, "object", "keys in the configuration, of which there are none: the cluster's control plane would ask for them")
	all := to.Objects
	to.Objects = nil
	for _, o := range all {
		switch seen, err := confine(o, names, selected); {
		case err != nil:
			return to, nil, err
		case seen:
			to.Objects = append(to.Objects, o)
		default:
			left = append(left, Difference{Identity(o.GetKind(), strings.TrimPrefix(o.GetNamespace(), prefix), o.GetName()), "", "nothing: it is exported to no namespace of the mesh"})
		}
	}
	to.sort()
	return to, left, nil
}

// confine has an object of the configuration reach nothing but the namespaces of the mesh, and the pods with labels. It reports whether any of
// these namespaces sees the object. istiod refuses an object that no namespace sees, unless it is a ServiceEntry, and a DestinationRule for
// selected workloads that another namespace sees (validateExportTo in pkg/config/validation).
func confine(o *unstructured.Unstructured, namespaces []string, selected map[string]string) (seen bool, err error) {
	// A field of another type than it should be is refused by the API server.
	if slices.Contains(exported, o.GetKind()) {
		to, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "exportTo")
		to = within(to, namespaces)
		if _, selects, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "workloadSelector"); selects && o.GetKind() == "DestinationRule" {
			to = []string{"."}
		}
		if slices.Equal(to, none) && o.GetKind() != "ServiceEntry" {
			return false, nil
		}
		if err := unstructured.SetNestedStringSlice(o.Object, to, "spec", "exportTo"); err != nil {
			return false, fmt.Errorf("%s: spec.exportTo: %w", Identity(o.GetKind(), o.GetNamespace(), o.GetName()), err)
		}
	}
	if o.GetKind() == "Gateway" {
		own, _, _ := unstructured.NestedStringMap(o.Object, "spec", "selector")
		selector := map[string]string{}
		maps.Copy(selector, own)
		maps.Copy(selector, selected)
		if err := unstructured.SetNestedStringMap(o.Object, selector, "spec", "selector"); err != nil {
			return false, fmt.Errorf("%s: spec.selector: %w", Identity(o.GetKind(), o.GetNamespace(), o.GetName()), err)
		}
	}
	return true, nil
}

// ofWaypoint reports whether something uses a waypoint by a label of this name.
func ofWaypoint(name string) bool {
	return strings.HasPrefix(name, UseWaypoint) || name == "istio.io/ingress-use-waypoint"
}

// inlineKeys gives the rules of a RequestAuthentication that say where keys are, or leave it to discovery, an empty set of keys. It reports
// whether it changed one.
func inlineKeys(o *unstructured.Unstructured) (changed bool) {
	if o.GetKind() != "RequestAuthentication" {
		return false
	}
	rules, _, _ := unstructured.NestedSlice(o.Object, "spec", "jwtRules")
	for _, one := range rules {
		if rule, _ := one.(map[string]any); rule != nil && (rule["jwks"] == nil || rule["jwks"] == "") {
			delete(rule, "jwksUri")
			rule["jwks"], changed = `{"keys":[]}`, true
		}
	}
	if changed {
		changed = unstructured.SetNestedSlice(o.Object, rules, "spec", "jwtRules") == nil
	}
	return changed
}

// none is exported to no namespace.
var none = []string{"~"}

// confineService has a service reach nothing but the namespaces of the mesh. It reports whether the service was reached from
// outside the cluster.
func confineService(s *corev1.Service, namespaces []string) (reached bool) {
	reached = s.Spec.Type == corev1.ServiceTypeLoadBalancer || s.Spec.Type == corev1.ServiceTypeNodePort || len(s.Spec.ExternalIPs) > 0
	if s.Annotations == nil {
		s.Annotations = map[string]string{}
	}
	var to []string
	if text := s.Annotations[exportToKey]; text != "" {
		to = strings.Split(text, ",")
	}
	s.Annotations[exportToKey] = strings.Join(within(to, namespaces), ",")
	if s.Spec.Type != corev1.ServiceTypeExternalName && s.Spec.ClusterIP != corev1.ClusterIPNone {
		s.Spec.Type, s.Spec.ClusterIP, s.Spec.ClusterIPs = corev1.ServiceTypeClusterIP, "", nil
	}
	s.Spec.ExternalIPs, s.Spec.LoadBalancerIP, s.Spec.LoadBalancerSourceRanges, s.Spec.LoadBalancerClass = nil, "", nil, nil
	s.Spec.IPFamilies = nil // those of the cluster
	s.Spec.AllocateLoadBalancerNodePorts, s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = nil, "", 0
	for i := range s.Spec.Ports {
		s.Spec.Ports[i].NodePort = 0
	}
	return reached
}

// within returns the namespaces of the mesh that something is exported to. Its own (".") and none ("~") stay as they are.
func within(exportTo, namespaces []string) []string {
	if len(exportTo) == 0 || slices.Contains(exportTo, "*") {
		return namespaces
	}
	kept := slices.DeleteFunc(slices.Clone(exportTo), func(to string) bool { return to != "." && to != "~" && !slices.Contains(namespaces, to) })
	if len(kept) == 0 {
		return none
	}
	return kept
}
