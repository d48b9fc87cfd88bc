package istio

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scaler.mesh/scaler/internal/capture"
	"scaler.mesh/scaler/pkg/convergence"
)

// rule is a DestinationRule.
type rule struct {
	namespace, host string
	root            string // namespace of the mesh
	exportTo        []string
	subsets         []subset
	selects         bool // it is for some workloads only
}

// subset is one of a DestinationRule.
type subset struct {
	name   string
	labels map[string]string
}

func (of *replayed) readRule(o *unstructured.Unstructured) rule {
	host, _, _ := unstructured.NestedString(o.Object, "spec", "host")
	r := rule{namespace: o.GetNamespace(), root: of.root, host: capture.FullHost(host, o.GetNamespace(), trustDomain)}
	if r.exportTo, _, _ = unstructured.NestedStringSlice(o.Object, "spec", "exportTo"); len(r.exportTo) == 0 {
		r.exportTo = of.defaults.rules
	}
	_, r.selects, _ = unstructured.NestedMap(o.Object, "spec", "workloadSelector")
	subsets, _, _ := unstructured.NestedSlice(o.Object, "spec", "subsets")
	for _, s := range subsets {
		of, _ := s.(map[string]any)
		name, _ := of["name"].(string)
		labels, _, _ := unstructured.NestedStringMap(of, "labels")
		r.subsets = append(r.subsets, subset{name, labels})
	}
	return r
}

// appliesTo reports whether a rule certainly applies to what workloads of a namespace send to a
// service: rules of that namespace, of the service's and of the root namespace do, if they are
// exported (PushContext.destinationRule of istiod's pilot/pkg/model).
func (r rule) appliesTo(from string, v visible) bool {
	switch {
	case r.selects || r.host != v.host:
		return false
	case len(r.exportTo) == 0 || slices.Contains(r.exportTo, "*"):
		return r.namespace == from || r.namespace == v.Namespace || r.namespace == r.root
	default:
		return r.namespace == from && (slices.Contains(r.exportTo, ".") || slices.Contains(r.exportTo, from))
	}
}

// ruleOf returns the only rule for a host; nil if there is none, or several: one of these may take the
// place of the other, or be merged with it.
func ruleOf(rules []rule, host string) *rule {
	var found *rule
	for i := range rules {
		if !capture.HostMatches(rules[i].host, host) {
			continue
		}
		if found != nil {
			return nil
		}
		found = &rules[i]
	}
	return found
}

// subsetsFor returns the subsets that a service certainly has for the workloads of a namespace.
func (v visible) subsetsFor(from string) []subset {
	if v.rule == nil || !v.rule.appliesTo(from, v) {
		return nil
	}
	return v.rule.subsets
}

// all reports whether a subset selects all endpoints of a service: its pods, which have labels.
func (s subset) all(v visible) bool {
	return !v.sliced && len(v.Spec.Selector) > 0 && selects(s.labels, v.Spec.Selector)
}

// entry is a host of a ServiceEntry.
type entry struct {
	visible
	ports      []entryPort
	resolution string
	addressed  bool // it has addresses of its own
	chooses    bool // its endpoints are workloads
}

type entryPort struct {
	number   int
	protocol string
}

// readEntry returns the hosts of a ServiceEntry.
func (r *replayed) readEntry(o *unstructured.Unstructured) []entry {
	var of entry
	if of.exportTo, _, _ = unstructured.NestedStringSlice(o.Object, "spec", "exportTo"); len(of.exportTo) == 0 {
		of.exportTo = r.defaults.services
	}
	of.resolution, _, _ = unstructured.NestedString(o.Object, "spec", "resolution")
	_, of.chooses, _ = unstructured.NestedMap(o.Object, "spec", "workloadSelector")
	addresses, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "addresses")
	of.addressed = len(addresses) > 0
	ports, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports")
	for _, p := range ports {
		port, _ := p.(map[string]any)
		number, _ := port["number"].(int64)
		protocol, _ := port["protocol"].(string)
		of.ports = append(of.ports, entryPort{int(number), strings.ToUpper(protocol)})
	}
	of.Service = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}}
	var all []entry
	hosts, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "hosts")
	for _, host := range hosts {
		of.host = host
		all = append(all, of)
	}
	return all
}

// certain reports whether a host has clusters for sure: it is in no other object, and what stands
// behind it does not depend on workloads.
func (r *replayed) certain(e entry) bool {
	switch {
	case r.named[e.host] != 1 || e.chooses:
		return false
	case strings.Contains(e.host, "*"):
		return e.none()
	default:
		return e.none() || e.resolution == "STATIC" || e.dns()
	}
}

// none reports whether connections to a host go to the address that they are for.
func (e entry) none() bool { return e.resolution == "" || e.resolution == "NONE" }

func (e entry) dns() bool { return e.resolution == "DNS" || e.resolution == "DNS_ROUND_ROBIN" }

// listens reports whether a port of a host has the listener on any address.
func (e entry) listens(p entryPort) bool {
	return e.dns() && !e.addressed && (p.protocol == "TLS" || p.protocol == "HTTPS")
}

// compared reports whether all that a host becomes is compared by name.
func (r *replayed) compared(e entry) bool {
	return r.certain(e) && !slices.ContainsFunc(e.ports, func(p entryPort) bool { return !e.listens(p) })
}

// wantEntries returns the clusters of the hosts that a workload certainly sees, and of ports with TLS
// the listener that they have for sure. What a proxy is configured to may move it to addresses that
// istiod allocates.
func (r *replayed) wantEntries(w *capture.Workload, scope egress) []convergence.Want {
	var wants []convergence.Want
	stock := !w.Spec.OwnProxyConfig() && !r.configured && scope.redirected
	for _, e := range r.entries {
		if !r.certain(e) || !scope.sees(w.Namespace, e.visible) {
			continue
		}
		for _, p := range e.ports {
			if p.protocol == "UDP" {
				continue
			}
			name := outboundCluster(p.number, e.host)
			wants = append(wants, convergence.WantOf(convergence.CDS, name))
			if e.resolution == "STATIC" && !r.isChosen(e.host) {
				wants = append(wants, convergence.WantOf(convergence.EDS, name))
			}
			if e.listens(p) && stock && w.Spec.Proxy != capture.Gateway && !scope.partial {
				wants = append(wants, convergence.WantOf(convergence.LDS, anyAddress(p.number)))
			}
		}
	}
	return wants
}

// subsetCluster returns the name of a subset's cluster.
func subsetCluster(port int, subset, host string) string {
	return fmt.Sprintf("outbound|%d|%s|%s", port, subset, host)
}
