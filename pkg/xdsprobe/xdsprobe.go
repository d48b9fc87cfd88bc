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
	"context"
	"crypto"
	"time"
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
	Token TokenSource

	Issuer   Issuer                        // signs certificates; nil means that the sidecar asks for none
	Keys     func() (crypto.Signer, error) // a private key for a certificate; needed with Issuer
	Identity string                        // SPIFFE URI that is asked for and that the chain must carry

	// Bounds of the wait before a stream is tried again; 0 means Envoy's 500 ms
	// and 30 s.
	BackoffBase, BackoffMax time.Duration
}

// Token is a bearer token of one sidecar.
type Token struct {
	Value   string
	Expires time.Time     // zero means never
	Waited  time.Duration // client-side waiting before the token was asked for
}

// TokenSource provides tokens. It is asked again for a stream or a certificate
// when 80 % of the last token's life have passed, as a kubelet renews the file
// that an agent reads.
type TokenSource interface {
	Token(ctx context.Context) (Token, error)
}

// Issued is the answer to a certificate signing request.
type Issued struct {
	Chain          [][]byte // PEM, leaf first
	Sent, Received time.Time
}

// Issuer sends a certificate signing request once; a sidecar does the retries.
// Errors that carry a gRPC status are told apart by it; with an error Issued.Sent
// says whether the request was sent.
type Issuer interface {
	Issue(ctx context.Context, token string, csrPEM []byte) (Issued, error)
}
