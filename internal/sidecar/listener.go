package sidecar

import (
	"encoding/json"
	"slices"

	"scaler.mesh/scaler/pkg/convergence"
)

// listener is the part of a Listener with the rules that it enforces.
type listener struct {
	Direction string        `json:"traffic_direction"`
	Chains    []filterChain `json:"filter_chains"`
	Fallback  *filterChain  `json:"default_filter_chain"`
}

type filterChain struct {
	Match struct {
		Port int `json:"destination_port"` // 0 = any
	} `json:"filter_chain_match"`
	Socket struct {
		Config struct {
			Require bool `json:"require_client_certificate"`
		} `json:"typed_config"`
	} `json:"transport_socket"`
	Filters json.RawMessage `json:"filters"`
}

// members returns the members of an inbound listener's content, as pkg/convergence spells
// them: every port with whether it accepts clients without a certificate, and the
// policies that are enforced.
func (l listener) members() []string {
	if l.Direction != "INBOUND" {
		return nil
	}
	chains := l.Chains
	if l.Fallback != nil {
		chains = append(slices.Clone(chains), *l.Fallback)
	}
	var members []string
	open := map[int]bool{}
	for _, c := range chains {
		open[c.Match.Port] = open[c.Match.Port] || !c.Socket.Config.Require
		var filters any
		if json.Unmarshal(c.Filters, &filters) == nil { // it may have none
			members = append(members, policies(filters)...)
		}
	}
	for port, isOpen := range open {
		if isOpen {
			members = append(members, convergence.PlaintextMember(port))
		} else {
			members = append(members, convergence.MutualTLSMember(port))
		}
	}
	slices.Sort(members)
	return slices.Compact(members)
}

// policies returns the members that represent the policies of RBAC filters: those of
// their rules, as shadow rules enforce nothing.
func policies(node any) (members []string) {
	switch node := node.(type) {
	case []any:
		for _, each := range node {
			members = append(members, policies(each)...)
		}
	case map[string]any:
		for name, each := range node {
			rules, ok := each.(map[string]any)
			if all, has := rules["policies"].(map[string]any); ok && has && name == "rules" {
				for policy := range all {
					members = append(members, convergence.PolicyMember(policy))
				}
			}
			members = append(members, policies(each)...)
		}
	}
	return members
}
