package stats

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// What is encoded and decoded is the same histogram, and merges as it would.
func TestHistogramJSON(t *testing.T) {
	for name, record := range map[string]func(*Histogram){
		"empty":    func(*Histogram) {},
		"lost":     func(h *Histogram) { h.Lose(3) },
		"clamped":  func(h *Histogram) { h.Record(-time.Second); h.Record(48 * time.Hour) },
		"one":      func(h *Histogram) { h.Record(1234567 * time.Nanosecond) },
		"extremes": func(h *Histogram) { h.Record(0); h.Record(1); h.Record(24 * time.Hour) },
		"many": func(h *Histogram) {
			for i := range 10000 {
				h.Record(time.Duration(i*i) * time.Microsecond)
			}
			h.Lose(7)
		},
	} {
		h := NewHistogram()
		record(h)
		text, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		decoded := new(Histogram)
		if err := json.Unmarshal(text, decoded); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got, want := decoded.Summary(), h.Summary(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: decoded %+v, want %+v", name, got, want)
		}
		sum, twice := NewHistogram(), NewHistogram()
		sum.Merge(h)
		sum.Merge(decoded)
		record(twice)
		record(twice)
		if got, want := sum.Summary(), twice.Summary(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: merged %+v, want %+v", name, got, want)
		}
	}
}

func TestHistogramJSONErrors(t *testing.T) {
	for text, want := range map[string]string{
		`7`:               "decoding a histogram",
		`{"counts":"AA"}`: "decoding a histogram",
		// of 1 to 100 with 3 digits, as another program has it
		`{"counts":"HISTFAAAABh4nJNpmSzMwMDAyAABTFCaEUozAQAdsAEz"}`: "decoding a histogram",
	} {
		h := NewHistogram()
		h.Lose(2)
		if err := json.Unmarshal([]byte(text), h); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		if h.Summary().Lost != 2 {
			t.Errorf("%s: it changed the histogram", text)
		}
	}
}
