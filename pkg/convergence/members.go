package convergence

import "strconv"

// The members of an inbound listener's content are what it enforces. Whoever
// reads listeners (pkg/xdsprobe) and whoever expects something of them (the
// adapters under internal/controlplane) use these names; the port is that which
// a filter chain matches, 0 for chains that match any.

// PolicyMember returns the member that represents a policy, by its name in the listener's
// RBAC filters.
func PolicyMember(name string) string { return "policy " + name }

// MutualTLSMember means that a port takes none but clients with a certificate.
func MutualTLSMember(port int) string { return "mutual TLS " + strconv.Itoa(port) }

// PlaintextMember means that a port takes clients without a certificate too.
func PlaintextMember(port int) string { return "plaintext " + strconv.Itoa(port) }
