package capture

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"scaler.mesh/scaler/internal/topology"
)

// check returns an error about the first thing in a mesh that a cluster would refuse, or
// that is missing.
func (m *Mesh) check() error {
	namespaces := map[string]bool{}
	for _, n := range m.Namespaces {
		identity := Identity("Namespace", "", n.Name)
		if wrong := validation.IsDNS1123Label(n.Name); wrong != nil {
			return m.at(identity, fieldError(identity, "metadata.name", n.Name, "a DNS label"))
		}
		if err := checkLabels(identity, "metadata.labels", n.Labels); err != nil {
			return m.at(identity, err)
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
		if err := errors.Join(inNamespace(identity, s.Namespace), checkService(identity, s)); err != nil {
			return m.at(identity, first(err))
		}
	}
	pods := 0
	for _, w := range m.Workloads {
		identity := Identity(WorkloadKind, w.Namespace, w.Name)
		if err := errors.Join(inNamespace(identity, w.Namespace), checkWorkload(identity, w)); err != nil {
			return m.at(identity, first(err))
		}
		pods += w.Spec.Replicas
	}
	if pods > topology.MaxPods {
		return fmt.Errorf("the mesh has %d pods: want %d at most", pods, topology.MaxPods)
	}
	for _, o := range m.Objects {
		identity := Identity(o.GetKind(), o.GetNamespace(), o.GetName())
		if wrong := validation.IsDNS1123Subdomain(o.GetName()); wrong != nil {
			return m.at(identity, fieldError(identity, "metadata.name", o.GetName(), "a DNS name"))
		}
		if r, _ := Configuration(o.GroupVersionKind()); !r.Cluster {
			if err := inNamespace(identity, o.GetNamespace()); err != nil {
				return m.at(identity, err)
			}
		}
	}
	return nil
}

// first returns the first of joined errors.
func first(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()[0]
	}
	return err
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
	names := map[string]bool{}
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
		if p.Name == "" && len(s.Spec.Ports) > 1 {
			return fieldError(identity, field+".name", "", "a name, as the service has several ports")
		}
		if names[p.Name] {
			return fieldError(identity, field+".name", p.Name, "each name once")
		}
		names[p.Name] = true
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
	if w.Spec.Gateway && !w.Spec.Sidecar {
		return fieldError(identity, "spec.sidecar", false, "true, as it is a gateway")
	}
	if a := w.Spec.Account; a != "" && validation.IsDNS1123Subdomain(a) != nil {
		return fieldError(identity, "spec.serviceAccount", a, "a DNS name")
	}
	for i, p := range w.Spec.Ports {
		field := fmt.Sprintf("spec.ports[%d]", i)
		if err := checkPort(identity, field+".port", p.Port); err != nil {
			return err
		}
		if err := checkProtocol(identity, field+".protocol", p.Protocol); err != nil {
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
