// Package proxy is the vocabulary for simulated proxies: what one is (Proxy), what it
// reports (Observer and its events), and the credentials that it needs. It has only plain
// types: it depends neither on Kubernetes, nor on Envoy, nor on a particular mesh, and
// not every proxy speaks xDS.
//
// Packages that implement Proxy, such as internal/istioagent, define how a proxy behaves.
// The adapter of a control plane, below internal/controlplane, decides which
// implementation a pod has.
package proxy

import (
	"context"

	"scaler.mesh/scaler/pkg/convergence"
)

// Proxy is one simulated proxy of a workload, with its agent if it has one.
type Proxy interface {
	// Run runs the proxy until the context ends, and returns after all its goroutines
	// have ended. A failure on the way is reported as an event and retried; the only
	// error is an invalid specification. It is called once.
	Run(ctx context.Context) error
	// Reset closes the proxy's connection to the control plane, or the next one if it is
	// just connecting. The proxy reconnects as after any loss. It does nothing between
	// two attempts.
	Reset()
	// Renew makes the proxy request a new certificate now instead of when the current one
	// is due for renewal. It does nothing before Run, or for a proxy that requests none.
	Renew()
	// Holdings returns the amount that the proxy holds of each type. Types of which it
	// holds nothing are left out. It may be called while the proxy runs.
	Holdings() map[convergence.Type]Holding
	// Held returns the resources that the proxy holds, sorted by type and then by name.
	// It may be called while the proxy runs. The slice is the caller's; the resources are
	// shared and do not change.
	Held() []*Resource
	// Draining returns the keys of the resources that the proxy holds only until the
	// listeners that named them have drained, in no order. The slice is the caller's.
	Draining() []convergence.Key
}

// Holding is the amount of one type that a proxy holds.
type Holding struct {
	Resources int
	Bytes     int64 // of the resources' own messages
}

// Resource is one resource that a proxy holds.
type Resource struct {
	convergence.Key
	Size    int                  // of the resource's own message, in bytes
	Content *convergence.Content // nil where only the presence matters
	Message []byte               // encoded; nil unless the proxy was to keep it. It must not be changed
}
