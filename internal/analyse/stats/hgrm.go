package stats

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Two comment lines at the end of a file hold the data that a plain .hgrm lacks: the
// exact numbers, and the histogram itself.
const (
	exactFormat = "#[Unit = s, Lost = %d, Clamped = %d, Min = %d ns, Max = %d ns, Sum = %g ns]\n"
	exactPrefix = "#[Unit = "
	wholePrefix = "#[Histogram = "
	wholeSuffix = "]"
)

// ticksPerHalfDistance is the number of quantiles printed for each halving of the
// distance to 1; HdrHistogram's own tools print 5.
const ticksPerHalfDistance = 5

// WriteTo writes h as a .hgrm file: HdrHistogram's percentile distribution, values in
// seconds, which its plotters read. Two comment lines follow, which plotters skip and
// ReadHistogram reads: the exact numbers, and all buckets in HdrHistogram's compressed V2
// encoding. Nothing is lost.
func (h *Histogram) WriteTo(w io.Writer) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	whole, err := h.counts.EncodeV2()
	if err != nil {
		return 0, fmt.Errorf("encoding a histogram: %w", err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%17s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)")
	if h.counts.TotalCount() > 0 {
		for _, row := range h.counts.CumulativeDistributionWithTicks(ticksPerHalfDistance) {
			quantile := row.Quantile / 100
			fmt.Fprintf(&b, "%17.9f %14.12f %10d %14s\n", seconds(float64(row.ValueAt)), quantile, row.Count, inverse(quantile))
		}
	}
	fmt.Fprintf(&b, "#[Mean    = %12.9f, StdDeviation   = %12.9f]\n", h.mean(), seconds(h.counts.StdDev()))
	fmt.Fprintf(&b, "#[Max     = %12.9f, Total count    = %12d]\n", h.max.Seconds(), h.counts.TotalCount())
	fmt.Fprintf(&b, exactFormat, h.lost, h.clamped, h.min.Nanoseconds(), h.max.Nanoseconds(), h.sum)
	fmt.Fprintf(&b, "%s%s%s\n", wholePrefix, whole, wholeSuffix)
	return b.WriteTo(w)
}

func (h *Histogram) mean() float64 {
	if h.counts.TotalCount() == 0 {
		return 0
	}
	return seconds(h.sum / float64(h.counts.TotalCount()))
}

func seconds(nanoseconds float64) float64 { return nanoseconds / float64(time.Second) }

func inverse(quantile float64) string {
	if quantile >= 1 {
		return "inf"
	}
	return fmt.Sprintf("%.2f", 1/(1-quantile))
}

// ReadHistogram reads a file written by WriteTo and returns an equal histogram. It
// returns an error for a .hgrm of another program, which lacks the comment lines.
func ReadHistogram(r io.Reader) (*Histogram, error) {
	h := NewHistogram()
	var exact, whole bool
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 8<<20) // a histogram with every bucket filled takes about 300 kB
	for lines.Scan() {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, exactPrefix):
			if err := h.readExact(line); err != nil {
				return nil, fmt.Errorf("reading a histogram: %w", err)
			}
			exact = true
		case strings.HasPrefix(line, wholePrefix):
			counts, err := decodeCounts(strings.TrimSuffix(strings.TrimPrefix(line, wholePrefix), wholeSuffix))
			if err != nil {
				return nil, fmt.Errorf("reading a histogram: decoding the line that starts with %q: %w", wholePrefix, err)
			}
			h.counts, whole = counts, true
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading a histogram: %w", err)
	}
	if !exact || !whole {
		return nil, fmt.Errorf("reading a histogram: want lines starting with %q and %q at its end, as scaler writes them", exactPrefix, wholePrefix)
	}
	return h, nil
}

// readExact reads the numbers after the buckets.
func (h *Histogram) readExact(line string) error {
	var lost, clamped, least, most int64
	var sum float64
	if _, err := fmt.Sscanf(line+"\n", exactFormat, &lost, &clamped, &least, &most, &sum); err != nil {
		return fmt.Errorf("line %q: %w", line, err)
	}
	for _, v := range []float64{float64(lost), float64(clamped), float64(least), float64(most - least), sum} {
		if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("line %q: want no negative and no infinite numbers, and Min no larger than Max", line)
		}
	}
	h.lost, h.clamped, h.sum = lost, clamped, sum
	h.min, h.max = time.Duration(least), time.Duration(most)
	return nil
}

// decodeCounts reads the buckets. It accepts only histograms of this package's range and
// precision, so that all histograms of a program can be merged.
func decodeCounts(encoded string) (*hdrhistogram.Histogram, error) {
	if err := checkInflated(encoded); err != nil {
		return nil, err
	}
	counts, err := hdrhistogram.Decode([]byte(encoded))
	if err != nil {
		return nil, err
	}
	if counts.LowestTrackableValue() != lowest || counts.HighestTrackableValue() != highest || counts.SignificantFigures() != digits {
		return nil, fmt.Errorf("histogram of %d to %d ns with %d digits: want %d to %d ns with %d digits",
			counts.LowestTrackableValue(), counts.HighestTrackableValue(), counts.SignificantFigures(), lowest, highest, digits)
	}
	return counts, nil
}

// maxInflated limits the size of a histogram's buckets before they are decoded; one of
// this package with every bucket filled has less than half of it.
const maxInflated = 4 << 20

// checkInflated refuses buckets that decompress to more than any histogram has: a short
// file may hold gigabytes of zeros. Text that is not compressed is left to the decoder.
func checkInflated(encoded string) error {
	const header = 8 // cookie and length
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(data) < header {
		return nil
	}
	z, err := zlib.NewReader(bytes.NewReader(data[header:]))
	if err != nil {
		return nil
	}
	defer z.Close()
	n, err := io.Copy(io.Discard, io.LimitReader(z, maxInflated+1))
	if err == nil && n > maxInflated {
		return fmt.Errorf("it decompresses to more than %d bytes", maxInflated)
	}
	return nil
}
