// Package podnet provides the network of pods that run as processes of this host: each
// has its own network namespace with one address, and a bridge in a further namespace
// connects them. The rules of a mesh's init container redirect their connections.
//
// The namespaces have no names, and nothing is made in the host's own namespace: when the
// last process and the last descriptor of a namespace end, in whatever way, the kernel
// removes it with its interfaces and rules.
package podnet
