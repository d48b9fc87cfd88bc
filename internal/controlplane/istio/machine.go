package istio

import (
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/pkg/convergence"
)

// machine is a WorkloadEntry, which a Service of its namespace may select as it selects pods.
type machine struct {
	id, namespace string
	address       string
	network       string
	labels        map[string]string
	ports         map[string]int64
}

// readMachine reads a WorkloadEntry. Its own labels count before those of its specification
// (ConvertWorkloadEntry of istiod's pilot/pkg/serviceregistry/serviceentry).
func readMachine(o *unstructured.Unstructured) machine {
	m := machine{id: identity(o), namespace: o.GetNamespace(), labels: map[string]string{}, ports: map[string]int64{}}
	m.address, _, _ = unstructured.NestedString(o.Object, "spec", "address")
	m.network, _, _ = unstructured.NestedString(o.Object, "spec", "network")
	labels, _, _ := unstructured.NestedStringMap(o.Object, "spec", "labels")
	maps.Copy(m.labels, labels)
	maps.Copy(m.labels, o.GetLabels())
	ports, _, _ := unstructured.NestedMap(o.Object, "spec", "ports")
	for name, port := range ports {
		if number, ok := port.(int64); ok {
			m.ports[name] = number
		}
	}
	return m
}

// certain reports whether the endpoint of a machine is its address, wherever a sidecar is: behind the
// gateway of another network it is not.
func (m machine) certain() bool {
	_, err := netip.ParseAddr(m.address)
	return err == nil && m.network == ""
}

// selected reports whether a Service takes a machine among its endpoints: one with a cluster address
// does (serviceInstancesFromWorkloadInstances of pilot/pkg/serviceregistry/kube/controller).
func (m machine) selected(v visible) bool {
	return m.namespace == v.Namespace && len(v.Spec.Selector) > 0 && len(m.labels) > 0 && !v.external() && !v.headless() && selects(v.Spec.Selector, m.labels)
}

// port returns the port on which a machine serves a Service's port; 0 if it does not
// (serviceInstanceFromWorkloadInstance, likewise): a port that the entry has by name counts before the
// number of the Service.
func (m machine) port(p corev1.ServicePort) int64 {
	if p.TargetPort.StrVal != "" {
		return m.ports[p.TargetPort.StrVal]
	}
	switch named := m.ports[p.Name]; {
	case named != 0:
		return named
	case p.TargetPort.IntVal != 0:
		return int64(p.TargetPort.IntVal)
	default:
		return int64(p.Port)
	}
}

// Machines returns the endpoints that Services have besides pods, by "namespace/name:port": those of the
// WorkloadEntries that they select.
func (r *replayed) Machines() map[string]convergence.Endpoints {
	all := map[string]convergence.Endpoints{}
	r.eachMachine(func(_ machine, service string, at netip.AddrPort) {
		if all[service] == nil {
			all[service] = convergence.Endpoints{}
		}
		all[service][at] = convergence.Healthy
	})
	return all
}

// eachMachine calls do for each endpoint of a machine that is certain.
func (r *replayed) eachMachine(do func(m machine, service string, at netip.AddrPort)) {
	for _, m := range r.machines {
		if !m.certain() {
			continue
		}
		for _, v := range r.services {
			if !m.selected(v) {
				continue
			}
			for _, p := range v.Spec.Ports {
				if port := m.port(p); port > 0 && port <= 65535 {
					do(m, v.Namespace+"/"+v.Name+":"+p.Name, netip.AddrPortFrom(netip.MustParseAddr(m.address), uint16(port)))
				}
			}
		}
	}
}

// comparedMachines returns the identities of the WorkloadEntries whose endpoints are expected.
func (r *replayed) comparedMachines() []string {
	var all []string
	r.eachMachine(func(m machine, _ string, _ netip.AddrPort) {
		if !slices.Contains(all, m.id) {
			all = append(all, m.id)
		}
	})
	return all
}

// certainSlice reports whether sidecars hold the endpoints of an EndpointSlice as the API server lists them: its ports have numbers, and
// of endpoints that are not ready it is stated whether they terminate. istiod takes one of which it is not stated as terminating
// (endpointHealthStatus of pilot/pkg/serviceregistry/kube/controller), and the API as not.
func certainSlice(s *discoveryv1.EndpointSlice) bool {
	return !slices.ContainsFunc(s.Ports, func(p discoveryv1.EndpointPort) bool { return p.Port == nil }) &&
		!slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool {
			return e.Conditions.Ready != nil && !*e.Conditions.Ready && e.Conditions.Terminating == nil
		})
}
