package worker

import (
	"time"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// LateInstrument is the scheduling lag at p99 above which scaler's own latencies
// are uncertain, and the longest wait of a response for being received.
const LateInstrument = 10 * time.Millisecond

// LateReceipt warns by how much responses were received late because scaler takes
// so many bytes of them at once and no more; nil where that is negligible. Where time is
// slowed down by a factor the waits are divided by it.
func LateReceipt(c xdsprobe.Counts, slowdown float64) *record.Warning {
	longest, total := c.LongestWait.Seconds()/slowdown, c.Waited.Seconds()/slowdown
	if longest <= LateInstrument.Seconds() {
		return nil
	}
	all, _ := c.AllResponses()
	return &record.Warning{About: "latencies", Reason: record.ReasonLateReceipt, Values: map[string]float64{
		"waited": float64(c.Waits), "responses": float64(all),
		"longestSeconds": longest, "totalSeconds": total,
	}}
}

// XDSCounts returns the counters of sidecars as the record has them.
func XDSCounts(c xdsprobe.Counts) *record.XDS {
	x := &record.XDS{
		Responses: map[string]int64{}, Bytes: map[string]int64{},
		Acks: &c.Acks, Nacks: &c.Nacks,
		Attempts: &c.Attempts, Refusals: &c.Refusals,
		Reconnects: &c.Reconnects, WastedResponses: &c.Wasted,
	}
	for _, of := range c.Subscribed() {
		x.Responses[of.Type.String()], x.Bytes[of.Type.String()] = of.Responses, of.Bytes
	}
	return x
}
