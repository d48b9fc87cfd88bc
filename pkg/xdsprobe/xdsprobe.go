// Package xdsprobe is an ADS client for the delta and the state-of-the-world variants of
// xDS: each Client opens its own connection, subscribes to a set of resource types and to
// the resources that its resources name, acknowledges or rejects responses, and
// reconnects with Envoy's backoff. The set is a table (ResourceType). The standard one
// has Envoy's types in Envoy's order of requests; others may include secrets (SDS) and
// types that are not Envoy's.
//
// Clients report the events of pkg/proxy. Callers, such as agents (internal/istioagent)
// and the adapters of control planes, provide tokens, node metadata and the certificate
// of the workload; pkg/convergence decides what a client should hold. The package imports
// neither Kubernetes nor a particular mesh.
//
// Thousands of clients run in one process and must not disturb what they measure.
// Responses are scanned in their wire format; equal resources are read once and held once
// for all clients that share a Store.
package xdsprobe

import (
	"crypto/tls"
	"time"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

// Variant is the variant of the xDS protocol that a client speaks.
type Variant string

// The variants. Istio's proxies speak Delta.
const (
	Delta Variant = "delta" // DeltaAggregatedResources
	SotW  Variant = "sotw"  // StreamAggregatedResources, state of the world
)

// Config is the configuration of one client.
type Config struct {
	ID         string // names the client in events
	Address    string // host:port of the ADS server, or of a Service of Backends
	ServerName string // name that the server's certificate must carry; "" means the host of Address
	RootPEM    []byte // roots that the server is verified against; nil means plaintext

	// Backends are the Services that Address may be one of; nil means that Address is no
	// Service.
	Backends *proxy.Backends

	Variant     Variant        // "" means Delta
	NodeID      string         // node.id, sent in the first request of each stream
	NodeCluster string         // node.cluster
	Metadata    map[string]any // node.metadata: JSON types, with map[string]any and []any for composites

	// Build is the encoded rest of the node: the part that is the same for every workload
	// of the proxy's program, such as name, version and extensions, which is by far the
	// largest part of a first request. It is shared: no client copies it. nil means only
	// a user_agent_name of envoy.
	Build []byte

	Headers   map[string]string // gRPC metadata of the stream in addition to the token
	Keepalive time.Duration     // HTTP/2 pings on an idle connection; 0 means none (Istio's agent: 30 s)
	Drain     time.Duration     // how long a removed or changed listener lives on; 0 means not at all (Istio's agent: 45 s)

	// Types are the types of the store that the client subscribes to; nil means all.
	Types []convergence.Type

	// Token provides the bearer token of streams; nil means none.
	Token proxy.TokenSource
	// Certificate provides, for each connection, the certificate for a server that
	// requests one (mutual TLS); nil means none.
	Certificate func() (*tls.Certificate, error)

	// AwaitCertificate means that the workload's certificate does not come over this
	// stream: types that are AfterWarming wait until Certified is called, if a resource
	// that they follow is Secured.
	AwaitCertificate bool
	// OnSecret, if not nil, is called after each response with the certificates in it
	// that are new to the client. received is the time of the response, and requested
	// that of the request that it answers; zero = the server sent it unasked, as it does
	// when it renews one. It must neither block nor call the client.
	OnSecret func(name string, secret *Secret, requested, received time.Time)

	// BackoffBase and BackoffMax bound the wait before a stream is retried; 0 means
	// Envoy's 500 ms and 30 s.
	BackoffBase, BackoffMax time.Duration
	// Retry returns how long to wait after an attempt has ended; nil means Envoy's
	// backoff. It is called once for each attempt, in order, and also when a token could
	// not be obtained. answered is true if the server ended the stream with a status, and
	// false if the connection or the stream broke.
	Retry func(end proxy.StreamEnded, answered bool) time.Duration

	// NodeInEach means that the first requests of all types contain the node, not only
	// the first request of a stream.
	NodeInEach bool

	// Slowdown multiplies the client's waits: before it retries a stream, and for a
	// resource that it requested.
	Slowdown proxy.Slowdown
}
