package experiment

import (
	"fmt"
	"time"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// SaveHistogram writes one distribution; nil means that there is nothing in it.
func SaveHistogram(w *record.Writer, name string, h *stats.Histogram) (*record.Latency, error) {
	summary := h.Summary()
	if summary.Count+summary.Lost == 0 {
		return nil, nil
	}
	if err := w.Histogram(name, h); err != nil {
		return nil, fmt.Errorf("writing the distribution of %s: %w", name, err)
	}
	latency := record.Latency(summary).Known()
	return &latency, nil
}

// LateInstrument is the scheduling lag at p99 above which scaler's own latencies
// are doubted, and the longest wait of a response for being received.
const LateInstrument = 10 * time.Millisecond

// UsageOf is a component's usage as the record has it.
func UsageOf(u measure.Usage) *record.Usage {
	usage := &record.Usage{
		Cores:       &record.Level{Mean: &u.CoresMean, Peak: &u.CoresPeak, Peak100ms: u.CoresPeakBrief},
		CPUSeconds:  &u.CPUSeconds,
		MemoryBytes: &record.Level{Mean: &u.MemoryMean, Peak: &u.MemoryPeak, End: &u.MemoryEnd},
		Saturation:  u.Saturation,
		Restarts:    &u.Restarts,

		WaitedSeconds: u.Waited,
	}
	if w := u.WorkingSet; w != nil {
		usage.WorkingSetBytes = &record.Level{Mean: &w.Mean, Peak: &w.Peak, End: &w.End}
	}
	if u.Heap != nil {
		usage.HeapBytes = &record.Level{Mean: &u.Heap.Mean, End: &u.Heap.End}
	}
	return usage
}

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

// XDSCounts are a fleet's counters as the record has them.
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

// SampleInterval is how often processes are read and targets scraped.
const SampleInterval = time.Second

// InstrumentName is scaler's own as a component and a scrape job. Others are
// called as their processes are.
const InstrumentName = "scaler"
