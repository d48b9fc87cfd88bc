// Package xdsprobe simulates sidecars: each Sidecar does toward a control plane
// what a proxy and its agent would do, and nothing else. It dials a connection of
// its own, speaks ADS (delta or state of the world), follows the subscription
// graph with Envoy's order of requests, acknowledges or rejects, reconnects with
// Envoy's backoff, and asks for a certificate beside its stream.
//
// Plain data goes in (Config), events come out (Observer). How identities,
// metadata and tokens come about is left to an adapter of the control plane, what
// a sidecar should hold to pkg/convergence. The package knows no Kubernetes.
//
// Thousands of sidecars run in one process and must not disturb what they
// measure. Responses are read by a scan over their wire format; equal resources
// are read once and held once for all sidecars that share a Store.
package xdsprobe

import (
	"crypto"
	"time"

	"scaler.mesh/scaler/pkg/proxy"
)

// Variant is the flavour of the xDS protocol that a sidecar speaks.
type Variant string

// The variants. Istio's proxies speak Delta.
const (
	Delta Variant = "delta" // DeltaAggregatedResources
	SotW  Variant = "sotw"  // StreamAggregatedResources, state of the world
)

// Config is one sidecar.
type Config struct {
	ID         string // names the sidecar in events
	Address    string // host:port of the ADS server
	ServerName string // name that the server's certificate must carry; "" means the host of Address
	RootPEM    []byte // roots that the server and issued chains are verified against; nil means plaintext

	Variant     Variant        // "" means Delta
	NodeID      string         // node.id, sent in the first request of each stream
	NodeCluster string         // node.cluster
	Metadata    map[string]any // node.metadata: JSON types, with map[string]any and []any for composites

	// Build is the rest of the node, encoded: what the proxy's program says of
	// itself whatever its workload, as name, version and extensions, which are by
	// far the most of a first request. It is shared: no sidecar makes a copy. nil
	// means that the proxy only calls itself envoy.
	Build []byte

	Headers   map[string]string // gRPC metadata of the stream beside the token
	Keepalive time.Duration     // HTTP/2 pings on an idle connection; 0 means none (Istio's agent: 30 s)
	Drain     time.Duration     // how long a listener lives on that is gone or changed; 0 means not at all (Istio\'s agent: 45 s)

	// Token provides the bearer token of stream and certificate requests. nil
	// means none.
	Token proxy.TokenSource

	Issuer   proxy.Issuer                  // signs certificates; nil means that the sidecar asks for none
	Keys     func() (crypto.Signer, error) // a private key for a certificate; needed with Issuer
	Identity string                        // SPIFFE URI that is asked for and that the chain must carry

	// Bounds of the wait before a stream is tried again; 0 means Envoy's 500 ms
	// and 30 s.
	BackoffBase, BackoffMax time.Duration
}
