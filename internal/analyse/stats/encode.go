package stats

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// encoded is a Histogram as JSON has it.
type encoded struct {
	Counts  string        `json:"counts"` // compressed, as HdrHistogram's libraries of all languages read it
	Lost    int64         `json:"lost,omitempty"`
	Clamped int64         `json:"clamped,omitempty"`
	Min     time.Duration `json:"min"`
	Max     time.Duration `json:"max"`
	Sum     float64       `json:"sum"` // nanoseconds
}

// MarshalJSON encodes the whole histogram: decoded histograms can be merged without loss.
func (h *Histogram) MarshalJSON() ([]byte, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	counts, err := h.counts.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		return nil, fmt.Errorf("encoding a histogram: %w", err)
	}
	return json.Marshal(encoded{string(counts), h.lost, h.clamped, h.min, h.max, h.sum})
}

// UnmarshalJSON decodes the result of MarshalJSON, replacing the content of the
// histogram.
func (h *Histogram) UnmarshalJSON(text []byte) error {
	var e encoded
	if err := json.Unmarshal(text, &e); err != nil {
		return fmt.Errorf("decoding a histogram: %w", err)
	}
	counts, err := decodeCounts(e.Counts)
	if err != nil {
		return fmt.Errorf("decoding a histogram: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts, h.lost, h.clamped, h.min, h.max, h.sum = counts, e.Lost, e.Clamped, e.Min, e.Max, e.Sum
	return nil
}
