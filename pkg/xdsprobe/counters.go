package xdsprobe

import (
	"sync/atomic"

	"scaler.mesh/scaler/pkg/convergence"
)

// kinds is the length of arrays that are indexed by resource type. Index 0 is
// for types that a sidecar does not ask for.
const kinds = int(convergence.ECDS) + 1

// Counters count what all sidecars of a Store did. They only grow, but for
// Connected.
type Counters struct {
	Connected atomic.Int64 // streams that are open now

	Attempts   atomic.Int64 // dials
	Refusals   atomic.Int64 // attempts that ended as Refused
	Failures   atomic.Int64 // attempts that ended otherwise than as Refused or Stopped
	Reconnects atomic.Int64 // streams opened by a sidecar that had lost one on which it was answered

	Responses [kinds]atomic.Int64 // by convergence.Type; 0: of types not asked for
	Bytes     [kinds]atomic.Int64 // of those responses, as messages
	Acks      atomic.Int64
	Nacks     atomic.Int64
	Wasted    atomic.Int64 // responses of which every resource was held already

	CertificateRequests atomic.Int64 // sent, and over
	Certificates        atomic.Int64 // received and verified
}
