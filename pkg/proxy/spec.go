package proxy

import "time"

// Spec describes one simulated proxy as plain data: it can be written as JSON and built
// into a proxy by another process. Everything else that a proxy needs (a source of
// tokens, private keys, what proxies share) belongs to the process that it runs in.
type Spec struct {
	ID         string // "namespace/pod"; names the proxy in events
	Address    string // host:port of the control plane's service for proxies, which may be one of Backends
	ServerName string `json:",omitempty"` // name that the server's certificate must carry; "" = the host of Address
	RootPEM    []byte `json:",omitempty"` // roots that the server and the issued chain are verified against; nil = plaintext
	Authority  string `json:",omitempty"` // host:port of the service that issues certificates; "" = Address

	// ClientCertificatePEM, a chain, and ClientKeyPEM are the client certificate for a
	// control plane that requests one (mutual TLS); nil = none.
	ClientCertificatePEM, ClientKeyPEM []byte `json:",omitempty"`

	XDS         string            `json:",omitempty"` // "delta" or "sotw"; "" = what the proxy speaks by default
	NodeID      string            `json:",omitempty"` // node.id of the first request
	NodeCluster string            `json:",omitempty"` // node.cluster
	Metadata    map[string]any    `json:",omitempty"` // node.metadata, JSON types only
	Build       []byte            `json:",omitempty"` // the part of the encoded node that is the same for all: the proxy's version, extensions
	Headers     map[string]string `json:",omitempty"` // gRPC metadata of every call in addition to the token

	// Targets are the service ports that the workload calls, and Inbound those under
	// which it is called, each as "host:port". They are set for a proxy that looks up one
	// service at a time; nil means that it looks up none.
	Targets, Inbound []string `json:",omitempty"`

	// Token describes the bearer token to request for the proxy, and TokenFile is the
	// file that holds it; both are empty for a proxy without one.
	Token     TokenRequest `json:",omitzero"`
	TokenFile string       `json:",omitempty"`

	Identity string // of the workload in its certificate: a SPIFFE URI, or a DNS name
	// Node is the node whose pods the proxy serves; "" = the proxy belongs to one pod.
	Node      string        `json:",omitempty"`
	Keepalive time.Duration `json:",omitempty"` // between the proxy's HTTP/2 pings; 0 = none
	Drain     time.Duration `json:",omitempty"` // how long the proxy keeps a removed or changed listener; 0 = not at all
	// Slowdown multiplies the proxy's waits: before it tries again, and for a resource
	// that it requested. Durations given above are not multiplied.
	Slowdown Slowdown `json:",omitempty"`
	// CertificateLifetime is the lifetime that its agent requests; 0 means 24 h, the
	// default of Istio's agent (SECRET_TTL).
	CertificateLifetime time.Duration `json:",omitempty"`
}

// Slowdown multiplies durations; below 1, including 0, it counts as 1.
type Slowdown float64

// Of multiplies a duration by the slowdown.
func (s Slowdown) Of(d time.Duration) time.Duration {
	return time.Duration(float64(d) * max(1, float64(s)))
}

// TokenRequest is a request for a service account token that is bound to a pod.
type TokenRequest struct {
	Namespace, Pod, UID string // of the pod
	ServiceAccount      string // of the pod
	Audience            string // that the token is for; "" = the API server
}
