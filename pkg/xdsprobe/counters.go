package xdsprobe

import (
	"slices"
	"sync/atomic"
	"time"

	"scaler.mesh/scaler/pkg/convergence"
)

// Counters count what all clients of a Store did. All of them only grow, except
// Connected.
type Counters struct {
	// fixed after NewStore
	types []convergence.Type
	kinds []kindCounters // by the index of the type; the last is of types not subscribed to

	Connected atomic.Int64 // streams that are open now

	Attempts   atomic.Int64 // dials
	Refusals   atomic.Int64 // attempts that ended as Refused
	Failures   atomic.Int64 // attempts that ended otherwise than as Refused or Stopped
	Reconnects atomic.Int64 // streams opened by a sidecar that had lost one on which it was answered

	Acks   atomic.Int64
	Nacks  atomic.Int64
	Wasted atomic.Int64 // responses of which every resource was held already

	// Waits counts responses that were left unread for a time because the memory for
	// incoming responses, 8 MiB for all sidecars together, was in use: because of slow
	// servers, or of many responses at once. They were received later by at most that
	// time (onecall.Conn.Waited). Responses of up to 16 KiB never wait.
	Waits       atomic.Int64
	Waited      atomic.Int64 // nanoseconds, of all Waits together
	LongestWait atomic.Int64 // nanoseconds

	CertificateRequests atomic.Int64 // sent, and over
	Certificates        atomic.Int64 // received and verified
}

// kindCounters count the responses of one type.
type kindCounters struct {
	responses atomic.Int64
	bytes     atomic.Int64 // of those responses, as messages
}

// Received counts a response of a type, with its size in bytes. Clients count their own.
func (c *Counters) Received(t convergence.Type, size int) {
	i := slices.Index(c.types, t)
	if i < 0 {
		i = len(c.kinds) - 1
	}
	c.kinds[i].responses.Add(1)
	c.kinds[i].bytes.Add(int64(size))
}

// wait counts a response that was left unread for this time; 0 = it was not.
func (c *Counters) wait(d time.Duration) {
	if d == 0 {
		return
	}
	c.Waits.Add(1)
	c.Waited.Add(int64(d))
	for {
		longest := c.LongestWait.Load()
		if int64(d) <= longest || c.LongestWait.CompareAndSwap(longest, int64(d)) {
			return
		}
	}
}
