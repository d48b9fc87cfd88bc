package convergence

import "strconv"

// The members of an inbound listener's content are the rules that it enforces. The reader
// of listeners (pkg/xdsprobe) and the adapters that expect them (under
// internal/controlplane) use these names. The port is the one that a filter chain
// matches, 0 for chains that match any.

// PolicyMember returns the member that represents a policy, by its name in the listener's
// RBAC filters.
func PolicyMember(name string) string { return "policy " + name }

// MutualTLSMember returns the member for a port that refuses clients without a
// certificate.
func MutualTLSMember(port int) string { return "mutual TLS " + strconv.Itoa(port) }

// PlaintextMember returns the member for a port that also accepts clients without a
// certificate.
func PlaintextMember(port int) string { return "plaintext " + strconv.Itoa(port) }
