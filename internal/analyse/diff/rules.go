package diff

import (
	"strings"

	"scaler.mesh/scaler/pkg/record"
)

// Rule is one way in which two runs differ although the configuration does not.
type Rule struct {
	Name string `json:"name"`
	What string `json:"what"`
}

// The rules, by name.
const (
	addresses = "addresses"
	podNames  = "pod-names"
	order     = "order"
	versions  = "versions"
	nodes     = "nodes"
	peers     = "peers"
)

// Rules list what is removed before sides are compared. Versions and nonces need no rule: they belong to
// responses and not to resources.
var Rules = []Rule{
	{addresses, "addresses of the mesh's services, pods and hosts of ServiceEntries, which each cluster or istiod assigns anew, count as the names of service, workload and host; what ztunnels hold of the API server's own Service, which has the port of the cluster, is left out"},
	{podNames, "generated names of pods count as the workload's name"},
	{order, "the order of lists that Envoy or ztunnel reads as sets has no meaning: endpoints, addresses and ports of workloads and services, filter chains, ranges of addresses, virtual hosts and their domains, permissions and principals of a policy, names in a filter chain's match and in a certificate's check"},
	{nodes, "the node of a workload, which the scheduler chooses anew, has no meaning"},
	{peers, "the workloads by which sidecars, gateways and waypoints know their peers are left out: istiod does not send these proxies each change of them (AMBIENT_SCOPED_ADDRESS_PUSHES), so that runs differ in them; ztunnels are sent the same workloads, which are compared"},
	{versions, "the resource version of a WasmPlugin, which istiod gives to the module as a variable, is that of the cluster's store, and has no meaning"},
}

// RuleNames returns the names of the rules.
func RuleNames() (all []string) {
	for _, r := range Rules {
		all = append(all, r.Name)
	}
	return all
}

// unordered are the lists that Envoy reads as sets, by message and field: of filter chains and ranges of addresses the most specific
// match wins, of virtual hosts the most specific domain, a policy allows what one of its permissions and one of its
// principals do, and localities state their priority.
var unordered = map[string]bool{
	"envoy.config.listener.v3.Listener.filter_chains":                                                      true,
	"envoy.config.listener.v3.FilterChainMatch.prefix_ranges":                                              true,
	"envoy.config.listener.v3.FilterChainMatch.source_prefix_ranges":                                       true,
	"envoy.config.listener.v3.FilterChainMatch.direct_source_prefix_ranges":                                true,
	"envoy.config.listener.v3.FilterChainMatch.source_ports":                                               true,
	"envoy.config.listener.v3.FilterChainMatch.server_names":                                               true,
	"envoy.config.listener.v3.FilterChainMatch.application_protocols":                                      true,
	"envoy.config.route.v3.RouteConfiguration.virtual_hosts":                                               true,
	"envoy.config.route.v3.VirtualHost.domains":                                                            true,
	"envoy.config.endpoint.v3.ClusterLoadAssignment.endpoints":                                             true,
	"envoy.config.endpoint.v3.LocalityLbEndpoints.lb_endpoints":                                            true,
	"envoy.config.rbac.v3.Policy.permissions":                                                              true,
	"envoy.config.rbac.v3.Policy.principals":                                                               true,
	"envoy.config.rbac.v3.Permission.Set.rules":                                                            true,
	"envoy.config.rbac.v3.Principal.Set.ids":                                                               true,
	"xds.type.matcher.v3.IPMatcher.range_matchers":                                                         true,
	"xds.type.matcher.v3.IPMatcher.IPRangeMatcher.ranges":                                                  true,
	"istio.workload.Workload.addresses":                                                                    true,
	"istio.workload.Workload.authorization_policies":                                                       true,
	"istio.workload.Service.addresses":                                                                     true,
	"istio.workload.Service.ports":                                                                         true,
	"istio.workload.Service.subject_alt_names":                                                             true,
	"istio.workload.PortList.ports":                                                                        true,
	"istio.security.Authorization.groups":                                                                  true,
	"envoy.extensions.transport_sockets.tls.v3.CertificateValidationContext.match_typed_subject_alt_names": true,
	"envoy.extensions.transport_sockets.tls.v3.CertificateValidationContext.match_subject_alt_names":       true,
}

// versionKey is the variable of a module that has the resource version of its object.
const versionKey = "ISTIO_META_WASM_PLUGIN_RESOURCE_VERSION"

// names are the texts of one side that differ in every run, and what they count as.
type names map[string]string

// newNames returns the names of the objects of a configuration, without the rules that are off.
func newNames(objects []record.AddressedObject, options Options) names {
	n := names{}
	for _, o := range objects {
		stands := o.Name + "." + o.Namespace
		if o.Kind == "Pod" {
			stands = "pod(" + o.Workload + "." + o.Namespace + ")"
		}
		if !options.off(addresses) {
			for _, a := range o.Addresses {
				n[a] = stands
			}
		}
		if o.Kind == "Pod" && o.Workload != "" && !options.off(podNames) {
			n[o.Name] = stands
		}
	}
	return n
}

// in replaces what is in a text: whole words only, so that 10.0.0.1 is not found in 10.0.0.10.
func (n names) in(text string) string {
	if len(n) == 0 || text == "" {
		return text
	}
	if stands, ok := n[text]; ok {
		return stands
	}
	var b strings.Builder
	changed := false
	for at := 0; at < len(text); {
		end := at
		for end < len(text) && inWord(text[end]) {
			end++
		}
		if end == at {
			b.WriteByte(text[at])
			at++
			continue
		}
		rest := text[at:end]
		for rest != "" { // an address with a port, a name in a domain
			if stands, ok := n[rest]; ok {
				b.WriteString(stands)
				changed = true
				break
			}
			cut := strings.LastIndexAny(rest, ":.")
			if cut < 0 {
				break
			}
			rest = rest[:cut]
		}
		if _, ok := n[rest]; !ok {
			rest = ""
		}
		b.WriteString(text[at+len(rest) : end])
		at = end
	}
	if !changed {
		return text
	}
	return b.String()
}

func inWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '.' || c == ':' || c == '-'
}
