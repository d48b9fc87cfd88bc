package capture

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"scaler.mesh/scaler/internal/topology"
)

// check returns an error about the first thing in a mesh that a cluster would refuse, or
// that is missing.
func (m *Mesh) check() error {
	namespaces := map[string]bool{}
	for _, n := range m.Namespaces {
		if err := checkNamespace(n); err != nil {
			return m.at(Identity("Namespace", "", n.Name), err)
		}
		namespaces[n.Name] = true
	}
	inNamespace := func(identity, namespace string) error {
		if !namespaces[namespace] {
			return fieldError(identity, "metadata.namespace", namespace, "a Namespace of the file")
		}
		return nil
	}
	for _, s := range m.Services {
		identity := Identity("Service", s.Namespace, s.Name)
		if err := cmp.Or(inNamespace(identity, s.Namespace), checkService(identity, s)); err != nil {
			return m.at(identity, err)
		}
	}
	for _, s := range m.Slices {
		identity := Identity(endpointSlices.Kind, s.Namespace, s.Name)
		if err := cmp.Or(inNamespace(identity, s.Namespace), checkSlice(s)); err != nil {
			return m.at(identity, err)
		}
	}
	if err := m.checkServices(); err != nil {
		return err
	}
	pods := 0
	for _, w := range m.Workloads {
		identity := Identity(WorkloadKind, w.Namespace, w.Name)
		if err := cmp.Or(inNamespace(identity, w.Namespace), checkWorkload(identity, w)); err != nil {
			return m.at(identity, err)
		}
		pods += w.Spec.Replicas
	}
	if pods > topology.MaxPods {
		return fmt.Errorf("the mesh has %d pods: want %d at most", pods, topology.MaxPods)
	}
	for _, o := range m.Objects {
		identity := Identity(o.GetKind(), o.GetNamespace(), o.GetName())
		if err := checkObject(o); err != nil {
			return m.at(identity, err)
		}
		if r, _ := Configuration(o.GroupVersionKind()); !r.Cluster {
			if err := inNamespace(identity, o.GetNamespace()); err != nil {
				return m.at(identity, err)
			}
		}
	}
	return nil
}

// Bounds of what a cluster has for services.
const (
	maxAddresses = 65_000 // of the range of an embedded cluster
	maxNodePorts = 65_535
)

// checkServices checks that there are addresses and node ports for all services.
func (m *Mesh) checkServices() error {
	addresses, ports := 0, 0
	for _, s := range m.Services {
		if s.Spec.ClusterIP != corev1.ClusterIPNone && s.Spec.Type != corev1.ServiceTypeExternalName {
			addresses++
		}
		if s.Spec.Type == corev1.ServiceTypeNodePort {
			ports += len(s.Spec.Ports)
		}
	}
	switch {
	case addresses > maxAddresses:
		return fmt.Errorf("the mesh has %d services with an address: want %d at most", addresses, maxAddresses)
	case ports > maxNodePorts:
		return fmt.Errorf("the mesh has %d ports of services of type NodePort: want %d at most", ports, maxNodePorts)
	}
	return nil
}

// at adds where an object is in its file.
func (m *Mesh) at(identity string, err error) error {
	if place := m.places[identity]; place != "" {
		return fmt.Errorf("%s: %w", place, err)
	}
	return err
}

func checkLabels(identity, field string, labels map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if wrong := validation.IsQualifiedName(name); wrong != nil {
			return fieldError(identity, field, name, "names of labels: "+wrong[0])
		}
		if wrong := validation.IsValidLabelValue(labels[name]); wrong != nil {
			return fieldError(identity, field+"."+name, labels[name], "a value of a label: "+wrong[0])
		}
	}
	return nil
}

func checkPort(identity, field string, port int32) error {
	if port < 1 || port > 65535 {
		return fieldError(identity, field, port, "1 to 65535")
	}
	return nil
}

func checkProtocol(identity, field string, protocol corev1.Protocol) error {
	switch protocol {
	case "", corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP:
		return nil
	}
	return fieldError(identity, field, string(protocol), "TCP, UDP or SCTP")
}

func checkNamespace(n Namespace) error {
	identity := Identity("Namespace", "", n.Name)
	if validation.IsDNS1123Label(n.Name) != nil {
		return fieldError(identity, "metadata.name", n.Name, "a DNS label")
	}
	return checkLabels(identity, "metadata.labels", n.Labels)
}

func checkObject(o *unstructured.Unstructured) error {
	identity := Identity(o.GetKind(), o.GetNamespace(), o.GetName())
	if validation.IsDNS1123Subdomain(o.GetName()) != nil {
		return fieldError(identity, "metadata.name", o.GetName(), "a DNS name")
	}
	spec, written := o.Object["spec"]
	if _, isMap := spec.(map[string]any); written && !isMap { // some policies have none, which says something
		return fieldError(identity, "spec", spec, "an object, or none")
	}
	if controller, _, _ := unstructured.NestedString(o.Object, "spec", "controllerName"); o.GetKind() == "GatewayClass" && controller == "" {
		return fieldError(identity, "spec.controllerName", "", "the name of a controller")
	}
	return checkLabels(identity, "metadata.labels", o.GetLabels())
}

func checkService(identity string, s corev1.Service) error {
	if wrong := validation.IsDNS1035Label(s.Name); wrong != nil {
		return fieldError(identity, "metadata.name", s.Name, "a DNS label that begins with a letter")
	}
	switch s.Spec.Type {
	case "", corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer:
		if len(s.Spec.Ports) == 0 && s.Spec.ClusterIP != corev1.ClusterIPNone {
			return fieldError(identity, "spec.ports", "[]", "a port at least")
		}
	case corev1.ServiceTypeExternalName:
		if wrong := validation.IsDNS1123Subdomain(strings.TrimSuffix(s.Spec.ExternalName, ".")); wrong != nil {
			return fieldError(identity, "spec.externalName", s.Spec.ExternalName, "a DNS name")
		}
	default:
		return fieldError(identity, "spec.type", string(s.Spec.Type), "ClusterIP, NodePort, LoadBalancer or ExternalName")
	}
	if s.Spec.ClusterIP != "" && s.Spec.ClusterIP != corev1.ClusterIPNone {
		return fieldError(identity, "spec.clusterIP", s.Spec.ClusterIP, "None, or none: the replay gives services their addresses")
	}
	for i, text := range s.Spec.ExternalIPs { // as the API server takes them
		at, err := netip.ParseAddr(text)
		if err != nil || isLocal(at) {
			return fieldError(identity, fmt.Sprintf("spec.externalIPs[%d]", i), text, "an IP address that is neither local nor unspecified")
		}
	}
	names, numbers := map[string]bool{}, map[string]bool{}
	for i, p := range s.Spec.Ports {
		field := fmt.Sprintf("spec.ports[%d]", i)
		if err := checkPort(identity, field+".port", p.Port); err != nil {
			return err
		}
		if err := checkProtocol(identity, field+".protocol", p.Protocol); err != nil {
			return err
		}
		if p.TargetPort.IntVal < 0 || p.TargetPort.IntVal > 65535 {
			return fieldError(identity, field+".targetPort", p.TargetPort.IntVal, "1 to 65535, or the name of a port")
		}
		if target := p.TargetPort.StrVal; target != "" && validation.IsValidPortName(target) != nil {
			return fieldError(identity, field+".targetPort", target, "1 to 65535, or the name of a port")
		}
		if p.Name != "" && validation.IsDNS1123Label(p.Name) != nil {
			return fieldError(identity, field+".name", p.Name, "a DNS label")
		}
		number := fmt.Sprint(p.Port, protocol(p.Protocol))
		if numbers[number] {
			return fieldError(identity, field+".port", p.Port, "each port of a protocol once")
		}
		numbers[number] = true
		if p.Name == "" && len(s.Spec.Ports) > 1 {
			return fieldError(identity, field+".name", "", "a name, as the service has several ports")
		}
		if names[p.Name] {
			return fieldError(identity, field+".name", p.Name, "each name once")
		}
		names[p.Name] = true
	}
	if err := checkLabels(identity, "metadata.labels", s.Labels); err != nil {
		return err
	}
	return checkLabels(identity, "spec.selector", s.Spec.Selector)
}

func checkWorkload(identity string, w Workload) error {
	if wrong := validation.IsDNS1123Subdomain(w.Name); wrong != nil {
		return fieldError(identity, "metadata.name", w.Name, "a DNS name")
	}
	if w.Spec.Owner == "" {
		return fieldError(identity, "spec.owner", "", "a kind, as in Deployment")
	}
	if w.Spec.Replicas < 1 || w.Spec.Replicas > topology.MaxPods {
		return fieldError(identity, "spec.replicas", w.Spec.Replicas, fmt.Sprintf("1 to %d", topology.MaxPods))
	}
	if !slices.Contains(proxies, w.Spec.Proxy) {
		return fieldError(identity, "spec.proxy", string(w.Spec.Proxy), ofAFile)
	}
	if a := w.Spec.Account; a != "" && validation.IsDNS1123Subdomain(a) != nil {
		return fieldError(identity, "spec.serviceAccount", a, "a DNS name")
	}
	containers := map[string]bool{}
	for i, c := range w.Spec.Containers {
		field := fmt.Sprintf("spec.containers[%d]", i)
		if validation.IsDNS1123Label(c.Name) != nil || containers[c.Name] {
			return fieldError(identity, field+".name", c.Name, "a DNS label that no other container has")
		}
		containers[c.Name] = true
		if err := checkPorts(identity, field+".ports", c.Ports); err != nil {
			return err
		}
	}
	for i, z := range w.Spec.Zones {
		if z.Zone == "" || validation.IsValidLabelValue(z.Zone) != nil || validation.IsValidLabelValue(z.Region) != nil {
			return fieldError(identity, fmt.Sprintf("spec.zones[%d].zone", i), z.Zone, "the name of a zone, and of its region")
		}
	}
	return checkLabels(identity, "spec.labels", w.Spec.Labels)
}

// checkPorts checks the ports of a container.
func checkPorts(identity, field string, ports []Port) error {
	names := map[string]bool{}
	for i, p := range ports {
		at := fmt.Sprintf("%s[%d]", field, i)
		if err := checkPort(identity, at+".port", p.Port); err != nil {
			return err
		}
		if err := checkProtocol(identity, at+".protocol", p.Protocol); err != nil {
			return err
		}
		if p.Name == "" {
			continue
		}
		if wrong := validation.IsValidPortName(p.Name); wrong != nil || names[p.Name] {
			return fieldError(identity, at+".name", p.Name, "the name of a port, each once in a container")
		}
		names[p.Name] = true
	}
	return nil
}
