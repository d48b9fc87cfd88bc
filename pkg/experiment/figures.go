package experiment

import (
	"fmt"
	"time"

	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/recorder"
	"scaler.mesh/scaler/pkg/stats"
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
	latency := record.Latency(summary)
	return &latency, nil
}

// LateInstrument is the scheduling lag at p99 above which scaler's own latencies
// are doubted, and the longest wait of a response for being received.
const LateInstrument = 10 * time.Millisecond

// UsageOf is a component's usage as the record has it.
func UsageOf(u recorder.Usage) *record.Usage {
	usage := &record.Usage{
		Cores:       &record.Level{Mean: &u.CoresMean, Peak: &u.CoresPeak},
		CPUSeconds:  &u.CPUSeconds,
		MemoryBytes: &record.Level{Mean: &u.MemoryMean, Peak: &u.MemoryPeak, End: &u.MemoryEnd},
		Saturation:  u.Saturation,
		Restarts:    &u.Restarts,
	}
	if u.Heap != nil {
		usage.HeapBytes = &record.Level{Mean: &u.Heap.Mean, End: &u.Heap.End}
	}
	return usage
}

// LateReceipt warns by how much responses were received late because scaler takes
// so many bytes of them at once and no more; nil where that is negligible.
func LateReceipt(c *xdsprobe.Counters) *record.Warning {
	longest := time.Duration(c.LongestWait.Load())
	if longest <= LateInstrument {
		return nil
	}
	all, _ := c.AllResponses()
	return &record.Warning{About: "latencies", Reason: record.ReasonLateReceipt, Values: map[string]float64{
		"waited": float64(c.Waits.Load()), "responses": float64(all),
		"longestSeconds": longest.Seconds(), "totalSeconds": time.Duration(c.Waited.Load()).Seconds(),
	}}
}

// XDSCounts are a fleet's counters as the record has them.
func XDSCounts(c *xdsprobe.Counters) *record.XDS {
	x := &record.XDS{
		Responses: map[string]int64{}, Bytes: map[string]int64{},
		Acks: new(c.Acks.Load()), Nacks: new(c.Nacks.Load()),
		Attempts: new(c.Attempts.Load()), Refusals: new(c.Refusals.Load()),
		Reconnects: new(c.Reconnects.Load()), WastedResponses: new(c.Wasted.Load()),
	}
	for _, t := range c.Types() {
		x.Responses[t.String()], x.Bytes[t.String()] = c.Responses(t)
	}
	return x
}

// SampleInterval is how often processes are read and targets scraped.
const SampleInterval = time.Second

// InstrumentName is scaler's own as a component and a scrape job. Others are
// called as their processes are.
const InstrumentName = "scaler"
