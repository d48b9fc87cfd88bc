package diff

import "strings"

// Effect names the reaction of a running proxy to a difference.
type Effect string

// The effects, the largest consequence first.
const (
	ResourceRemoved  Effect = "removed"
	ListenerDrained  Effect = "listener-drain"
	ChainDrained     Effect = "filter-chain-drain"
	ClusterWarmed    Effect = "cluster-warm"
	ResourceAdded    Effect = "added"
	InPlace          Effect = "in-place"
	EndpointsChanged Effect = "endpoints"
	PoliciesChecked  Effect = "policy-check"
	WorkloadsChanged Effect = "workloads"
)

// Effects lists the effects, the most severe first, with what the proxy does and the source of that statement.
var Effects = []struct {
	Effect Effect
	What   string
	Source string
}{
	{ResourceRemoved, "the resource is gone: connections of a listener are drained, pools of a cluster are drained, requests to a route's host are not matched any more, and a ztunnel does not know the workload or service any more", lds},
	{ListenerDrained, "a new listener takes the place of the old one, whose connections are drained: they are closed after the drain time at the latest", listenerSource},
	{ChainDrained, "the listener is updated in place: connections of the filter chains that differ are drained, those of the others stay", chainUpdate},
	{PoliciesChecked, "a ztunnel checks its open connections by the policies that it has then, and closes those that they do not allow", policies},
	{ClusterWarmed, "a new cluster is warmed, then takes the place of the old one, whose connection pools are drained: requests in flight end, connections are opened anew", warming},
	{ResourceAdded, "the resource is new: existing resources are not affected", lds},
	{InPlace, "applied in place: new requests see it, connections stay", rds},
	{WorkloadsChanged, "what a ztunnel knows of a workload or a service changes in place: new connections see it", workloadState},
	{EndpointsChanged, "hosts of a cluster change in place: connections to those that are removed are drained, the others stay", eds},
}

// Where Envoy's documentation and source define the effects. Whether a listener is updated in place is
// ListenerImpl::supportUpdateFilterChain and ListenerMessageUtil::filterChainOnlyChange in listener_impl.cc: only
// filter_chains, default_filter_chain and filter_chain_matcher may differ, and there has to be a filter chain.
// The Envoy is that of the specs, the ztunnel the one of Istio 1.31.0.
const (
	lds            = "https://www.envoyproxy.io/docs/envoy/latest/configuration/listeners/lds"
	rds            = "https://www.envoyproxy.io/docs/envoy/latest/configuration/http/http_conn_man/rds"
	eds            = "https://www.envoyproxy.io/docs/envoy/latest/intro/arch_overview/upstream/service_discovery"
	warming        = "https://www.envoyproxy.io/docs/envoy/latest/intro/arch_overview/upstream/cluster_manager#cluster-warming"
	chainUpdate    = "https://www.envoyproxy.io/docs/envoy/latest/intro/arch_overview/listeners/network_filter_chain#filter-chain-only-update"
	policies       = "https://github.com/istio/ztunnel/blob/44beaefcd456ab46f98b297023ff0a382e69bb03/src/proxy/connection_manager.rs"
	workloadState  = "https://github.com/istio/ztunnel/blob/44beaefcd456ab46f98b297023ff0a382e69bb03/src/state.rs"
	listenerSource = "https://github.com/envoyproxy/envoy/blob/v1.40.0/source/common/listener_manager/listener_impl.cc"
)

// EffectNames returns the names of all effects, in the order of their consequences.
func EffectNames() (all []string) {
	for _, e := range Effects {
		all = append(all, string(e.Effect))
	}
	return all
}

// rank returns the place of an effect among all.
func (e Effect) rank() int {
	for i, one := range Effects {
		if one.Effect == e {
			return i
		}
	}
	return len(Effects)
}

// effectOf returns the effect of a difference inside a resource. to is the resource after it.
func effectOf(kind string, c change, to *node) Effect {
	switch kind {
	case "CDS":
		return ClusterWarmed
	case "EDS":
		return EndpointsChanged
	case authorizationType:
		return PoliciesChecked
	case addressType, workloadType:
		return WorkloadsChanged
	case "LDS":
		chains := strings.HasPrefix(c.path, "filter_chains") || strings.HasPrefix(c.path, "default_filter_chain")
		switch {
		case !chains && !strings.HasPrefix(c.path, "filter_chain_matcher"), to.get("filter_chains") == nil: // an empty list is not set
			return ListenerDrained
		case c.op == Added && (c.path == "filter_chains[*]" || c.path == "filter_chains" || c.path == "default_filter_chain"):
			return InPlace // no connection is of it
		case c.path == "filter_chain_matcher" || strings.HasPrefix(c.path, "filter_chain_matcher."):
			return InPlace
		default:
			return ChainDrained
		}
	default: // routes and extensions are replaced below what uses them
		return InPlace
	}
}
