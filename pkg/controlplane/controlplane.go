// Package controlplane says what a service mesh's control plane is to scaler,
// in plain types. Each control plane has a package of its own below this one,
// which owns all that is peculiar to it: how it is installed and started, what
// knobs become, how a proxy's identity and credentials read, what a proxy of
// its version must come to hold, and which metrics are its own.
package controlplane

import (
	"fmt"
	"time"
)

// Knobs are the settings of a mesh, independent of each other.
type Knobs struct {
	MTLS  string // "permissive" or "strict": whether plaintext is accepted
	Scope string // "all": a sidecar is configured for every service; "declared": only for those it calls
	Authz string // "none", or "declared": only declared calls are allowed
}

// Modes are the presets of knobs, by name.
var Modes = map[string]Knobs{
	"permissive": {MTLS: "permissive", Scope: "all", Authz: "none"},
	"strict":     {MTLS: "strict", Scope: "declared", Authz: "declared"},
}

// Validate says which knob has a value that it cannot have.
func (k Knobs) Validate() error {
	for _, knob := range []struct {
		name, value string
		want        [2]string
	}{
		{"mtls", k.MTLS, [2]string{"permissive", "strict"}},
		{"scope", k.Scope, [2]string{"all", "declared"}},
		{"authz", k.Authz, [2]string{"none", "declared"}},
	} {
		if knob.value != knob.want[0] && knob.value != knob.want[1] {
			return fmt.Errorf("parsing --%s %q: want %s or %s", knob.name, knob.value, knob.want[0], knob.want[1])
		}
	}
	return nil
}

// Sidecar is all that a proxy needs to speak to its control plane, except its
// token.
type Sidecar struct {
	ID          string            // "namespace/pod"
	Address     string            // host:port of the control plane's ADS service
	ServerName  string            // name that the server's certificate must carry
	RootPEM     []byte            // roots that the server and the issued chain are verified against
	NodeID      string            // node.id of the first request
	NodeCluster string            // node.cluster
	Metadata    map[string]any    // node.metadata, JSON types only
	Headers     map[string]string // gRPC metadata of every call beside the token
	Identity    string            // SPIFFE URI of the workload
	Keepalive   time.Duration     // the proxy's HTTP/2 pings; 0 = none
}

// Token is a bound service-account token.
type Token struct {
	Value   string
	Expires time.Time
	Waited  time.Duration // client-side rate limiting before the request was sent
}

// Issued is the answer to a certificate signing request.
type Issued struct {
	Chain    [][]byte  // PEM, leaf first
	Sent     time.Time // the request was handed to a connection that was up
	Received time.Time // the whole answer was there
}

// Metric is one of a control plane's own figures, evaluated over a phase.
type Metric struct {
	Name string // as it appears in the record under "own"
	Expr string // PromQL; $window stands for the phase's length
}
