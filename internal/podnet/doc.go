// Package podnet is the network of pods that run as processes of this host: each has a network
// namespace of its own with one address, and a bridge in a further namespace connects them. The
// rules that a mesh's init container sets redirect their connections.
//
// Nothing has a name, and nothing is of the host's own namespace: when the last process and the
// last descriptor of a namespace end, however they end, the kernel removes it with its interfaces
// and rules.
package podnet
