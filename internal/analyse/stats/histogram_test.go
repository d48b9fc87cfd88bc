package stats_test

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"scaler.mesh/scaler/internal/analyse/stats"
)

func filled(lost int64, ds ...time.Duration) *stats.Histogram {
	h := stats.NewHistogram()
	for _, d := range ds {
		h.Record(d)
	}
	h.Lose(lost)
	return h
}

func TestSummary(t *testing.T) {
	ms := time.Millisecond
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i+1) * ms
	}
	tests := []struct {
		name string
		h    *stats.Histogram
		want stats.Summary
	}{
		{
			name: "nothing recorded has no figures",
			h:    filled(0),
			want: stats.Summary{Unit: "s"},
		},
		{
			name: "all lost has a count of lost and no figures",
			h:    filled(7),
			want: stats.Summary{Unit: "s", Lost: 7},
		},
		{
			name: "one observation is every quantile",
			h:    filled(0, 3*ms),
			want: stats.Summary{Unit: "s", Count: 1, Min: new(0.003), Mean: new(0.003), P50: new(0.003), P90: new(0.003), P99: new(0.003), P999: new(0.003), Max: new(0.003)},
		},
		{
			name: "zero is a value",
			h:    filled(0, 0),
			want: stats.Summary{Unit: "s", Count: 1, Min: new(0.0), Mean: new(0.0), P50: new(0.0), P90: new(0.0), P99: new(0.0), P999: new(0.0), Max: new(0.0)},
		},
		{
			name: "nearest rank",
			h:    filled(0, hundred...),
			want: stats.Summary{Unit: "s", Count: 100, Min: new(0.001), Mean: new(0.0505), P50: new(0.05), P90: new(0.09), P99: new(0.099), P999: new(0.1), Max: new(0.1)},
		},
		{
			name: "quantiles that fall among the lost are unknown",
			h:    filled(10, hundred[:90]...),
			want: stats.Summary{Unit: "s", Count: 90, Lost: 10, Min: new(0.001), Mean: new(0.0455), P50: new(0.05), P90: new(0.09), Max: new(0.09)},
		},
		{
			name: "out of range is clamped and counted, never dropped",
			h:    filled(0, -time.Second, 48*time.Hour),
			want: stats.Summary{Unit: "s", Count: 2, Clamped: 2, Min: new(0.0), Mean: new(43200.0), P50: new(0.0), P90: new(86400.0), P99: new(86400.0), P999: new(86400.0), Max: new(86400.0)},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			threeDigits := cmp.Comparer(func(a, b float64) bool { return a == b || max(a, b)-min(a, b) <= 0.001*max(a, b) })
			if diff := cmp.Diff(tt.want, tt.h.Summary(), threeDigits); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
		})
	}
}

// Quantiles must be within the stated precision of those of the sorted sample.
func TestSummaryAgainstSortedSample(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	h := stats.NewHistogram()
	sample := make([]time.Duration, 9999)
	for i := range sample {
		sample[i] = time.Duration(rng.ExpFloat64() * float64(time.Second))
		h.Record(sample[i])
	}
	slices.Sort(sample)
	got := h.Summary()
	for _, q := range []struct {
		name string
		rank int
		got  *float64
	}{{"p50", 5000, got.P50}, {"p90", 9000, got.P90}, {"p99", 9900, got.P99}, {"p99.9", 9990, got.P999}, {"max", 9999, got.Max}, {"min", 1, got.Min}} {
		want := sample[q.rank-1].Seconds()
		if *q.got < want*0.999 || *q.got > want*1.001 {
			t.Errorf("%s = %g s, sorted sample has %g s", q.name, *q.got, want)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	h := stats.NewHistogram()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 1000 {
				h.Record(time.Duration(i) * time.Microsecond)
				h.Lose(1)
				_ = h.Summary()
			}
		})
	}
	wg.Wait()
	if s := h.Summary(); s.Count != 8000 || s.Lost != 8000 {
		t.Errorf("count %d, lost %d: want 8000 of each", s.Count, s.Lost)
	}
}

func TestFileRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	many := make([]time.Duration, 5000)
	for i := range many {
		many[i] = time.Duration(rng.ExpFloat64() * float64(50*time.Millisecond))
	}
	for name, h := range map[string]*stats.Histogram{
		"empty":   filled(0),
		"lost":    filled(3),
		"one":     filled(0, 1234567),
		"clamped": filled(1, -5, 100*time.Hour, time.Second),
		"many":    filled(12, many...),
	} {
		t.Run(name, func(t *testing.T) {
			first := write(t, h)
			back, err := stats.ReadHistogram(strings.NewReader(first))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(h.Summary(), back.Summary()); diff != "" {
				t.Errorf("summary after a round trip (-want +got):\n%s", diff)
			}
			if again := write(t, back); again != first {
				t.Errorf("file after a round trip:\n%s\nwant\n%s", again, first)
			}
		})
	}
}

func write(t *testing.T, h *stats.Histogram) string {
	t.Helper()
	var b bytes.Buffer
	n, err := h.WriteTo(&b)
	if err != nil {
		t.Fatal(err)
	}
	if n != int64(b.Len()) {
		t.Errorf("WriteTo says %d bytes and wrote %d", n, b.Len())
	}
	return b.String()
}

// HdrHistogram's plotters take every line of four fields that does not start
// with '#', and read the value and 1/(1-percentile) from it.
func TestFileIsReadableByPlotters(t *testing.T) {
	text := write(t, filled(0, time.Millisecond, 2*time.Millisecond, 3*time.Millisecond))
	if !strings.Contains(text, "      0.003000319 1.000000000000          3            inf\n") {
		t.Errorf("no row for the largest value in\n%s", text)
	}
	for line := range strings.Lines(text) {
		if fields := len(strings.Fields(line)); line[0] != '#' && fields != 0 && fields != 4 {
			t.Errorf("line %q has %d fields, want 4", line, fields)
		}
	}
}

func TestReadHistogramErrors(t *testing.T) {
	whole := write(t, filled(2, time.Second))
	for name, text := range map[string]string{
		"empty":             "",
		"of another tool":   " Value\tPercentile\tTotalCount\t1/(1-Percentile)\n",
		"cut off":           whole[:len(whole)/2],
		"buckets damaged":   strings.Replace(whole, "#[Histogram = HIST", "#[Histogram = hist", 1),
		"numbers damaged":   strings.Replace(whole, "Lost = 2", "Lost = two", 1),
		"a negative number": strings.Replace(whole, "Lost = 2", "Lost = -2", 1),
		"not a number":      strings.Replace(whole, "Sum = 1e+09", "Sum = NaN", 1),
	} {
		t.Run(name, func(t *testing.T) {
			if h, err := stats.ReadHistogram(strings.NewReader(text)); err == nil {
				t.Errorf("read as %+v: want an error", h.Summary())
			}
		})
	}
}

// A file of some hundred kilobytes whose buckets decompress to a gigabyte is refused.
func TestReadHistogramIsBounded(t *testing.T) {
	var packed bytes.Buffer
	packed.Write([]byte{0x1c, 0x84, 0x93, 0x14, 0, 0, 0, 0})
	z := zlib.NewWriter(&packed)
	for range 1 << 10 {
		if _, err := z.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	text := "#[Histogram = " + base64.StdEncoding.EncodeToString(packed.Bytes()) + "]\n"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := stats.ReadHistogram(strings.NewReader(text))
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "decompresses to more than") {
		t.Errorf("error %v, want that it decompresses to too much", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
		t.Errorf("it took %d bytes of memory", took)
	}
}

func FuzzReadHistogram(f *testing.F) {
	var b bytes.Buffer
	if _, err := filled(2, time.Second, time.Minute).WriteTo(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("#[Unit = s, Lost = 1, Clamped = 0, Min = 0 ns, Max = 0 ns, Sum = 0 ns]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := stats.ReadHistogram(bytes.NewReader(data))
		if err != nil {
			return
		}
		if _, err := h.WriteTo(&bytes.Buffer{}); err != nil {
			t.Errorf("writing what was read: %v", err)
		}
		h.Summary()
	})
}
