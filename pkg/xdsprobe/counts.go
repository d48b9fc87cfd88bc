package xdsprobe

import (
	"time"

	"scaler.mesh/scaler/pkg/convergence"
)

// Counts are the values of Counters at one moment, as plain data: those of several
// processes can be added. The fields have the same meaning as in Counters.
type Counts struct {
	Connected int64

	Attempts, Refusals, Failures, Reconnects int64
	Acks, Nacks, Wasted                      int64

	Waits       int64
	Waited      time.Duration
	LongestWait time.Duration

	CertificateRequests, Certificates int64

	ByType []TypeCounts // in the order of the types subscribed to, the last of all others
}

// TypeCounts are the counts of one type.
type TypeCounts struct {
	Type      convergence.Type // the zero Type = all types that are not subscribed to
	Responses int64
	Bytes     int64 // of those responses, as messages
}

// Now returns the counts of this moment.
func (c *Counters) Now() Counts {
	n := Counts{
		Connected: c.Connected.Load(),
		Attempts:  c.Attempts.Load(), Refusals: c.Refusals.Load(), Failures: c.Failures.Load(), Reconnects: c.Reconnects.Load(),
		Acks: c.Acks.Load(), Nacks: c.Nacks.Load(), Wasted: c.Wasted.Load(),
		Waits: c.Waits.Load(), Waited: time.Duration(c.Waited.Load()), LongestWait: time.Duration(c.LongestWait.Load()),
		CertificateRequests: c.CertificateRequests.Load(), Certificates: c.Certificates.Load(),
		ByType: make([]TypeCounts, len(c.kinds)),
	}
	for i := range c.kinds {
		of := TypeCounts{Responses: c.kinds[i].responses.Load(), Bytes: c.kinds[i].bytes.Load()}
		if i < len(c.types) {
			of.Type = c.types[i]
		}
		n.ByType[i] = of
	}
	return n
}

// Plus returns the sum of two counts, of clients that subscribe to the same types.
func (c Counts) Plus(o Counts) Counts {
	sum := Counts{
		Connected: c.Connected + o.Connected,
		Attempts:  c.Attempts + o.Attempts, Refusals: c.Refusals + o.Refusals, Failures: c.Failures + o.Failures, Reconnects: c.Reconnects + o.Reconnects,
		Acks: c.Acks + o.Acks, Nacks: c.Nacks + o.Nacks, Wasted: c.Wasted + o.Wasted,
		Waits: c.Waits + o.Waits, Waited: c.Waited + o.Waited, LongestWait: max(c.LongestWait, o.LongestWait),
		CertificateRequests: c.CertificateRequests + o.CertificateRequests, Certificates: c.Certificates + o.Certificates,
	}
	if len(c.ByType) < len(o.ByType) {
		c, o = o, c
	}
	for i, of := range c.ByType {
		if i < len(o.ByType) {
			of.Responses += o.ByType[i].Responses
			of.Bytes += o.ByType[i].Bytes
		}
		sum.ByType = append(sum.ByType, of)
	}
	return sum
}

// Subscribed returns the counts of the types that clients subscribe to, in their order.
func (c Counts) Subscribed() []TypeCounts {
	if len(c.ByType) == 0 {
		return nil
	}
	return c.ByType[:len(c.ByType)-1]
}

// AllResponses returns the number of responses received, of all types, and the bytes of
// their messages.
func (c Counts) AllResponses() (responses, bytes int64) {
	for _, of := range c.ByType {
		responses += of.Responses
		bytes += of.Bytes
	}
	return responses, bytes
}
