package xdsprobe

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"scaler.mesh/scaler/pkg/convergence"
)

// Types of what enforces policies, in an Any.
const (
	httpRBACURL      = "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC"
	networkRBACURL   = "type.googleapis.com/envoy.extensions.filters.network.rbac.v3.RBAC"
	downstreamTLSURL = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext"
)

// inbound is the traffic_direction of listeners that accept traffic for the workload.
const inbound = 1

// enforced collects what a listener enforces, for the members of its content: see
// convergence.PolicyMember and the functions next to it. Packed messages that are invalid
// are ignored.
type enforced struct {
	policies []string
	open     map[int]bool // ports: whether any chain takes clients without a certificate
}

// chain is a FilterChain without its filters.
type chain struct {
	port   int // that it matches; 0 means any
	socket packed
}

// merge reads b into c, as protobuf merges a repeated singular field.
func (c *chain) merge(b []byte) {
	for m := read(b); m.next(); {
		switch {
		case m.is(1, protowire.BytesType): // filter_chain_match
			for match := read(m.bytes); match.next(); {
				if match.is(8, protowire.BytesType) { // destination_port
					c.port = int(uint32(wrapped(match.bytes, uint64(c.port))))
				}
			}
		case m.is(6, protowire.BytesType): // transport_socket
			for t := read(m.bytes); t.next(); {
				if t.is(3, protowire.BytesType) { // typed_config
					_ = c.socket.merge(t.bytes)
				}
			}
		}
	}
}

// wrapped returns the number in a UInt32Value or BoolValue, or the previous value if
// there is none.
func wrapped(b []byte, before uint64) uint64 {
	for m := read(b); m.next(); {
		if m.is(1, protowire.VarintType) {
			before = m.varint
		}
	}
	return before
}

// demanding reports whether the chain refuses clients without a certificate.
func (c *chain) demanding() bool {
	if !c.socket.validAs(downstreamTLSURL) {
		return false
	}
	var require uint64
	for m := read(c.socket.value); m.next(); {
		if m.is(2, protowire.BytesType) { // require_client_certificate
			require = wrapped(m.bytes, require)
		}
	}
	return require != 0
}

// chain takes in what a chain lets through.
func (e *enforced) chain(c chain) {
	if e.open == nil {
		e.open = make(map[int]bool)
	}
	e.open[c.port] = e.open[c.port] || !c.demanding()
}

// filter reads the configuration of an HTTP or network filter, if it is RBAC.
func (e *enforced) filter(config packed) {
	if !config.validAs(httpRBACURL, networkRBACURL) {
		return
	}
	for m := read(config.value); m.next(); {
		if !m.is(1, protowire.BytesType) { // rules; shadow_rules enforce nothing
			continue
		}
		for r := read(m.bytes); r.next(); {
			if r.is(2, protowire.BytesType) { // policies
				e.policies = append(e.policies, scanName(r.bytes)) // the map's key is field 1 too
			}
		}
	}
}

// content returns the members as a content.
func (e *enforced) content() *convergence.Content {
	var members []string
	for _, name := range e.policies {
		members = append(members, convergence.PolicyMember(name))
	}
	for port, open := range e.open {
		if open {
			members = append(members, convergence.PlaintextMember(port))
		} else {
			members = append(members, convergence.MutualTLSMember(port))
		}
	}
	slices.Sort(members)
	return &convergence.Content{Members: slices.Compact(members)}
}
