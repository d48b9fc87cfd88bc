package capture

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/topology"
)

// Resources of endpoints. A cluster has those of Endpoints in EndpointSlices, too, which its control plane mirrors them to: Endpoints are
// read from files alone.
var (
	endpointSlices = resource(discoveryv1.GroupName, "v1", "endpointslices", "EndpointSlice")
	mirroredKind   = resource("", "v1", "endpoints", "Endpoints")
)

// Who writes EndpointSlices, by the label endpointslice.kubernetes.io/managed-by.
const (
	ofSelectors = "endpointslice-controller.k8s.io"          // from the pods that a Service selects
	ofMirrors   = "endpointslicemirroring-controller.k8s.io" // from Endpoints
	ofReplay    = "scaler.mesh"                              // no controller changes or deletes them
)

const (
	importedLabel   = "multicluster.kubernetes.io/service-name" // of an EndpointSlice: its endpoints are in another cluster
	skipMirrorLabel = "endpointslice.kubernetes.io/skip-mirror" // of Endpoints, which no controller mirrors then
	leaderKey       = "control-plane.alpha.kubernetes.io/leader"

	// endpointsAnnotation of an EndpointSlice has its captured endpoints, in JSON, where a replay does not have all of them.
	endpointsAnnotation = "scaler.mesh/endpoints"
)

// Why endpoints are left out.
const (
	followPods    = "a replay's cluster makes them of the pods that their Service selects"
	ofNoService   = "their Service is not in the mesh"
	ofAnotherName = "their Service is another name of one"
	ofOthersPods  = "of a Service of several clusters"
	ofNames       = "of type FQDN, which istiod ignores"
	notMirrored   = "a cluster makes no EndpointSlices of them, which the control plane reads"
	mirrored      = "in the EndpointSlices that mirror them"
	withoutAny    = "without addresses"
)

// endpointsObject is an object of the kind Endpoints, as far as it is read.
type endpointsObject struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Subsets  []struct {
		Addresses         []endpointAddress `json:"addresses"`
		NotReadyAddresses []endpointAddress `json:"notReadyAddresses"`
		Ports             []struct {
			Name     string          `json:"name"`
			Port     int32           `json:"port"`
			Protocol corev1.Protocol `json:"protocol"`
		} `json:"ports"`
	} `json:"subsets"`
}

type endpointAddress struct {
	IP        string                  `json:"ip"`
	TargetRef *corev1.ObjectReference `json:"targetRef"`
}

// endpointSlice takes an EndpointSlice, until all Services are known.
func (g *Gatherer) endpointSlice(object *unstructured.Unstructured) error {
	var s discoveryv1.EndpointSlice
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &s); err != nil {
		return err
	}
	s.Namespace = cmp.Or(s.Namespace, metav1.NamespaceDefault)
	if text := s.Annotations[endpointsAnnotation]; text != "" {
		var all []discoveryv1.Endpoint
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			return fmt.Errorf("annotation %s: %w", endpointsAnnotation, err)
		}
		s.Endpoints = all
	}
	g.slices = append(g.slices, s)
	return nil
}

// addEndpoints takes Endpoints, until all Services are known.
func (g *Gatherer) addEndpoints(object *unstructured.Unstructured) error {
	var e endpointsObject
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &e); err != nil {
		return err
	}
	e.Metadata.Namespace = cmp.Or(e.Metadata.Namespace, metav1.NamespaceDefault)
	g.endpoints = append(g.endpoints, e)
	return nil
}

// gatherEndpoints keeps the endpoints of Services that are not pods that they select.
func (g *Gatherer) gatherEndpoints() {
	services := map[string]*corev1.Service{}
	for i := range g.mesh.Services {
		s := &g.mesh.Services[i]
		services[s.Namespace+"/"+s.Name] = s
	}
	names, mirrors := map[string]bool{}, map[string]bool{}
	for _, s := range g.slices {
		names[s.Namespace+"/"+s.Name] = true
		if s.Labels[discoveryv1.LabelManagedBy] == ofMirrors {
			mirrors[serviceOf(&s)] = true
		}
	}
	for i := range g.slices {
		s := &g.slices[i]
		trimmed := g.trimmedSlice(s)
		why := unkept(services, serviceOf(s), s.Labels[discoveryv1.LabelManagedBy] == ofSelectors)
		switch {
		case s.Labels[importedLabel] != "":
			why = ofOthersPods
		case s.AddressType == discoveryv1.AddressTypeFQDN:
			why = ofNames
		case why == "":
			if err := checkSlice(trimmed); err != nil {
				why = refused + err.Error()
			}
		}
		if why != "" {
			g.LeaveOut(endpointSlices.name(), why, 1)
			continue
		}
		g.mesh.Slices = append(g.mesh.Slices, trimmed)
	}
	for _, e := range g.endpoints {
		id := e.Metadata.Namespace + "/" + e.Metadata.Name
		why := unkept(services, id, true)
		_, leads := e.Metadata.Annotations[leaderKey]
		switch {
		case why != "":
		case mirrors[id]:
			why = mirrored
		case e.Metadata.Labels[skipMirrorLabel] == "true", leads:
			why = notMirrored
		default:
			why = g.mirror(e, names)
		}
		if why != "" {
			g.LeaveOut(mirroredKind.name(), why, 1)
		}
	}
}

// unkept returns why the endpoints of a Service are left out; "" = they are kept. selected reports that a controller makes them from the pods
// that the Service selects, if it selects any.
func unkept(services map[string]*corev1.Service, id string, selected bool) string {
	s := services[id]
	switch {
	case id == metav1.NamespaceDefault+"/kubernetes":
		return ofCluster
	case s == nil:
		return ofNoService
	case s.Spec.Type == corev1.ServiceTypeExternalName:
		return ofAnotherName
	case selected && len(s.Spec.Selector) > 0:
		return followPods
	}
	return ""
}

// mirror keeps Endpoints as the EndpointSlices that a cluster mirrors them to, one of each subset and family of addresses. It returns why
// it does not; "" = it does.
func (g *Gatherer) mirror(e endpointsObject, taken map[string]bool) string {
	var all []discoveryv1.EndpointSlice
	for i, subset := range e.Subsets {
		for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6} {
			s := discoveryv1.EndpointSlice{AddressType: family}
			s.Namespace, s.Labels = e.Metadata.Namespace, map[string]string{discoveryv1.LabelServiceName: e.Metadata.Name}
			add := func(addresses []endpointAddress, ready bool) {
				for _, a := range addresses {
					if strings.Contains(a.IP, ":") == (family == discoveryv1.AddressTypeIPv6) {
						s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{a.IP}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}, TargetRef: a.TargetRef})
					}
				}
			}
			add(subset.Addresses, true)
			add(subset.NotReadyAddresses, false)
			if s.Endpoints == nil {
				continue
			}
			s.Endpoints = s.Endpoints[:min(len(s.Endpoints), maxEndpoints)] // which a controller mirrors of a subset, by default
			for _, p := range subset.Ports {
				s.Ports = append(s.Ports, discoveryv1.EndpointPort{Name: &p.Name, Port: &p.Port, Protocol: &p.Protocol})
			}
			for try := 0; s.Name == "" || taken[s.Namespace+"/"+s.Name]; try++ {
				s.Name = e.Metadata.Name + "-" + digest(fmt.Sprint(family, i, try), 5)
			}
			taken[s.Namespace+"/"+s.Name] = true
			trimmed := g.trimmedSlice(&s)
			if err := checkSlice(trimmed); err != nil {
				return refused + err.Error()
			}
			all = append(all, trimmed)
		}
	}
	if all == nil {
		return withoutAny
	}
	g.mesh.Slices = append(g.mesh.Slices, all...)
	return ""
}

// trimmedSlice returns an EndpointSlice reduced to what a control plane reads: addresses, conditions and ports. istiod takes neither zones
// nor nodes from it, only from pods (updateEndpointCacheForSlice of pilot/pkg/serviceregistry/kube/controller, endpointSlicesBuilder of
// pilot/pkg/serviceregistry/ambient). Of endpoints that are pods it is kept that they are: those that name one, and those with the address of a
// pod of the namespace, which istiod takes for it.
func (g *Gatherer) trimmedSlice(s *discoveryv1.EndpointSlice) discoveryv1.EndpointSlice {
	t := discoveryv1.EndpointSlice{
		TypeMeta:    metav1.TypeMeta{APIVersion: discoveryv1.SchemeGroupVersion.String(), Kind: endpointSlices.Kind},
		ObjectMeta:  metav1.ObjectMeta{Name: s.Name, Namespace: s.Namespace, Labels: map[string]string{discoveryv1.LabelServiceName: s.Labels[discoveryv1.LabelServiceName]}},
		AddressType: s.AddressType,
	}
	for _, e := range s.Endpoints {
		of := discoveryv1.Endpoint{Addresses: e.Addresses, Conditions: e.Conditions}
		pod := isPod(e) || slices.ContainsFunc(e.Addresses, func(a string) bool { return g.addresses[s.Namespace+"/"+a] })
		if pod {
			of.TargetRef = &corev1.ObjectReference{Kind: "Pod"}
		}
		t.Endpoints = append(t.Endpoints, of)
	}
	for _, p := range s.Ports {
		of := discoveryv1.EndpointPort{Port: p.Port}
		if p.Name != nil && *p.Name != "" {
			of.Name = p.Name
		}
		if p.Protocol != nil && *p.Protocol != corev1.ProtocolTCP && *p.Protocol != "" {
			of.Protocol = p.Protocol
		}
		t.Ports = append(t.Ports, of)
	}
	return t
}

// serviceOf returns the namespace and name of an EndpointSlice's Service.
func serviceOf(s *discoveryv1.EndpointSlice) string {
	return s.Namespace + "/" + s.Labels[discoveryv1.LabelServiceName]
}

func isPod(e discoveryv1.Endpoint) bool { return e.TargetRef != nil && e.TargetRef.Kind == "Pod" }

// Bounds of the API server for an EndpointSlice.
const (
	maxEndpoints = 1000
	maxAddressed = 100 // addresses of an endpoint
)

// checkSlice returns an error about the first thing in an EndpointSlice that a cluster would refuse.
func checkSlice(s discoveryv1.EndpointSlice) error {
	identity := Identity(endpointSlices.Kind, s.Namespace, s.Name)
	if validation.IsDNS1123Subdomain(s.Name) != nil {
		return fieldError(identity, "metadata.name", s.Name, "a DNS name")
	}
	if s.Labels[discoveryv1.LabelServiceName] == "" {
		return fieldError(identity, "metadata.labels."+discoveryv1.LabelServiceName, "", "the name of a Service")
	}
	if err := checkLabels(identity, "metadata.labels", s.Labels); err != nil {
		return err
	}
	switch s.AddressType {
	case discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6:
	default:
		return fieldError(identity, "addressType", string(s.AddressType), "IPv4 or IPv6")
	}
	if len(s.Endpoints) > maxEndpoints {
		return fieldError(identity, "endpoints", len(s.Endpoints), fmt.Sprintf("%d at most", maxEndpoints))
	}
	for i, e := range s.Endpoints {
		at := fmt.Sprintf("endpoints[%d].addresses", i)
		if len(e.Addresses) == 0 || len(e.Addresses) > maxAddressed {
			return fieldError(identity, at, len(e.Addresses), fmt.Sprintf("1 to %d", maxAddressed))
		}
		for k, a := range e.Addresses {
			if !isAddress(s.AddressType, a) {
				return fieldError(identity, fmt.Sprintf("%s[%d]", at, k), a, "an address of type "+string(s.AddressType)+" of another machine")
			}
		}
	}
	names := map[string]bool{}
	for i, p := range s.Ports {
		at := fmt.Sprintf("ports[%d]", i)
		name := topology.Value(p.Name)
		if name != "" && validation.IsDNS1123Label(name) != nil || names[name] {
			return fieldError(identity, at+".name", name, "a DNS label, each once")
		}
		names[name] = true
		if err := checkProtocol(identity, at+".protocol", topology.Value(p.Protocol)); err != nil {
			return err
		}
		if p.Port != nil {
			if err := checkPort(identity, at+".port", *p.Port); err != nil {
				return err
			}
		}
	}
	return nil
}

// isAddress reports whether the API server accepts an address of an EndpointSlice.
func isAddress(of discoveryv1.AddressType, text string) bool {
	a, err := netip.ParseAddr(text)
	return err == nil && a.Is4() == (of == discoveryv1.AddressTypeIPv4) && !a.Is4In6() && a.Zone() == "" && !isLocal(a)
}

// isLocal reports whether an address is that of no other machine: the API server refuses it for endpoints and external addresses.
func isLocal(a netip.Addr) bool {
	return a.IsUnspecified() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsLinkLocalMulticast()
}

// sliceFields returns an EndpointSlice as an object, without fields that say nothing.
func sliceFields(s *discoveryv1.EndpointSlice) (map[string]any, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(object, "metadata", "creationTimestamp")
	all, _ := object["endpoints"].([]any)
	for _, one := range all {
		if e, ok := one.(map[string]any); ok && len(e["conditions"].(map[string]any)) == 0 {
			delete(e, "conditions")
		}
	}
	for _, list := range []string{"endpoints", "ports"} {
		if object[list] == nil {
			delete(object, list)
		}
	}
	return object, nil
}

// sliceObject returns an EndpointSlice as a replay makes it: without the endpoints that are pods, whose names and addresses are others there.
// An annotation has all of them then.
func sliceObject(s *discoveryv1.EndpointSlice) *unstructured.Unstructured {
	of := *s
	of.Labels = maps.Clone(s.Labels)
	of.Labels[discoveryv1.LabelManagedBy] = ofReplay
	if of.Endpoints = slices.DeleteFunc(slices.Clone(s.Endpoints), isPod); len(of.Endpoints) < len(s.Endpoints) {
		if text, err := json.Marshal(s.Endpoints); err == nil { // endpoints are JSON
			of.Annotations = map[string]string{endpointsAnnotation: string(text)}
		}
	}
	object, err := sliceFields(&of)
	if err != nil {
		return named(s.APIVersion, s.Kind, s.Namespace, s.Name) // an EndpointSlice converts
	}
	if object["endpoints"] == nil {
		object["endpoints"] = []any{}
	}
	return &unstructured.Unstructured{Object: object}
}

// ServiceSlices returns the EndpointSlices of the mesh by the namespace/name of their Services.
func (m *Mesh) ServiceSlices() map[string][]*discoveryv1.EndpointSlice {
	all := map[string][]*discoveryv1.EndpointSlice{}
	for i := range m.Slices {
		s := &m.Slices[i]
		all[serviceOf(s)] = append(all[serviceOf(s)], s)
	}
	return all
}

// sliceEndpoints returns the number of healthy endpoints that the EndpointSlices of a replay list, an address once for each port of a Service.
func (m *Mesh) sliceEndpoints() int {
	type endpoint struct {
		service, port string
		at            netip.AddrPort
	}
	healthy := map[endpoint]bool{}
	for i := range m.Slices {
		s := &m.Slices[i]
		for _, p := range s.Ports {
			for _, e := range s.Endpoints {
				if p.Port == nil || isPod(e) || e.Conditions.Ready != nil && !*e.Conditions.Ready {
					continue
				}
				for _, text := range e.Addresses {
					if a, err := netip.ParseAddr(text); err == nil {
						healthy[endpoint{serviceOf(s), topology.Value(p.Name), netip.AddrPortFrom(a, uint16(*p.Port))}] = true
					}
				}
			}
		}
	}
	return len(healthy)
}

// withoutPods returns the differences by the endpoints of EndpointSlices that are pods.
func (m *Mesh) withoutPods() (all []Difference) {
	for i := range m.Slices {
		s, pods := &m.Slices[i], 0
		for _, e := range s.Endpoints {
			if isPod(e) {
				pods++
			}
		}
		if pods > 0 {
			all = append(all, Difference{
				Identity(s.Kind, s.Namespace, s.Name), output.Many(pods, "endpoint") + " of " + fmt.Sprint(len(s.Endpoints)),
				"endpoints of Service " + s.Labels[discoveryv1.LabelServiceName] + ", and pushes when they change: they are pods, which have other names and addresses in a replay",
			})
		}
	}
	return all
}

// endpointSlice rewrites the names and addresses of an EndpointSlice.
func (r rewriter) endpointSlice(s discoveryv1.EndpointSlice) discoveryv1.EndpointSlice {
	s = *s.DeepCopy()
	s.Name, s.Namespace = r.name(s.Name), r.namespace(s.Namespace)
	s.Labels[discoveryv1.LabelServiceName] = r.name(s.Labels[discoveryv1.LabelServiceName])
	for i := range s.Endpoints {
		for k, address := range s.Endpoints[i].Addresses {
			s.Endpoints[i].Addresses[k] = r.host(address)
		}
	}
	for i := range s.Ports {
		if name := s.Ports[i].Name; name != nil {
			*name = r.portName(*name)
		}
	}
	return s
}
