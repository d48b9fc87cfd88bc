package stats

import (
	"math"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The range in which a Histogram distinguishes values, in nanoseconds, to three decimal
// digits. Values outside it are clamped and counted as such; latencies above a day need
// no buckets.
const (
	lowest  = int64(time.Nanosecond)
	highest = int64(24 * time.Hour)
	digits  = 3
)

// Histogram is the whole distribution of a latency: it has every observation, to three
// significant digits, and the number of lost ones. Minimum, maximum and mean are exact.
// It is safe for concurrent use; the zero value is not usable.
type Histogram struct {
	mu      sync.Mutex
	counts  *hdrhistogram.Histogram
	lost    int64
	clamped int64
	unmet   int64
	min     time.Duration
	max     time.Duration
	sum     float64 // nanoseconds
}

// NewHistogram returns an empty histogram.
func NewHistogram() *Histogram {
	return &Histogram{counts: hdrhistogram.New(lowest, highest, digits)}
}

// Record adds one observation. A negative one counts as zero and one above a
// day as a day: neither is dropped, both are counted as clamped.
func (h *Histogram) Record(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	inRange := min(max(d, 0), time.Duration(highest))
	if inRange != d {
		h.clamped++
	}
	// The value is within the histogram's range, so only a count of 2^63 could fail.
	_ = h.counts.RecordValue(int64(inRange))
	if h.counts.TotalCount() == 1 {
		h.min, h.max = inRange, inRange
	}
	h.min = min(h.min, inRange)
	h.max = max(h.max, inRange)
	h.sum += float64(inRange)
}

// Lose adds n observations that had not arrived by the time limit.
func (h *Histogram) Lose(n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost += n
}

// Forgo adds n observations that cannot be: what they wait for is not going to come, and that is no
// loss. They are no part of quantiles, and a file of the histogram does not have them.
func (h *Histogram) Forgo(n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unmet += n
}

// Merge adds the content of other, which is not changed and must not be h.
func (h *Histogram) Merge(other *Histogram) {
	other.mu.Lock()
	defer other.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if other.counts.TotalCount() > 0 {
		if h.counts.TotalCount() == 0 {
			h.min, h.max = other.min, other.max
		}
		h.min, h.max = min(h.min, other.min), max(h.max, other.max)
	}
	h.counts.Merge(other.counts) // of the same range: none is dropped
	h.lost += other.lost
	h.clamped += other.clamped
	h.unmet += other.unmet
	h.sum += other.sum
}

// Summary summarizes a histogram, in Unit. Quantiles are over Count and Lost together,
// and a lost observation counts as longer than any received one: a quantile that falls
// among the lost is nil, because it is only known to exceed Max. Min, Mean and Max are
// over the received observations, and nil if there were none.
type Summary struct {
	Unit    string // always "s"
	Count   int64  // observations received
	Lost    int64  // observations that had not come by the time limit
	Clamped int64  // of Count, those outside 0 to 24 h, taken as that bound
	Unmet   int64  // observations that cannot be; see Forgo
	Min     *float64
	Mean    *float64
	P50     *float64
	P90     *float64
	P99     *float64
	P999    *float64
	Max     *float64
}

// Summary returns a summary of everything recorded so far.
func (h *Histogram) Summary() Summary {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := Summary{Unit: "s", Count: h.counts.TotalCount(), Lost: h.lost, Clamped: h.clamped, Unmet: h.unmet}
	if s.Count == 0 {
		return s
	}
	s.Min = new(h.min.Seconds())
	s.Mean = new(h.sum / float64(s.Count) / float64(time.Second))
	s.Max = new(h.max.Seconds())
	s.P50 = h.quantile(0.5)
	s.P90 = h.quantile(0.9)
	s.P99 = h.quantile(0.99)
	s.P999 = h.quantile(0.999)
	return s
}

// quantile returns the smallest observation that is at least as large as the share q of
// all observations (nearest rank), in seconds; nil if it is a lost one. The caller holds
// mu, and the histogram is not empty.
func (h *Histogram) quantile(q float64) *float64 {
	count := h.counts.TotalCount()
	rank := NearestRank(q, count+h.lost)
	if rank > count {
		return nil
	}
	value := h.counts.ValueAtQuantile(100 * float64(rank) / float64(count))
	// A bucket's upper edge may lie beyond the largest observation in it.
	return new(min(max(time.Duration(value), h.min), h.max).Seconds())
}

// NearestRank returns the rank of the q quantile among n ordered observations, counted
// from 1: ceil(q*n).
func NearestRank(q float64, n int64) int64 {
	const rounding = 1e-9 // 0.99*200 must be 198, not the next above
	rank := int64(math.Ceil(q*float64(n) - rounding))
	return min(max(rank, 1), n)
}
