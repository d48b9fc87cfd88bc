package stats

// CurvePoint is one point of a distribution: the share of it that is at or below a value.
type CurvePoint struct {
	Quantile float64 // 0 to 1
	Seconds  float64
}

// Curve returns the distribution by percentile, for drawing, with more points towards its
// end, as in a .hgrm file. Quantiles are over all observations, lost ones included: if
// some were lost, the curve ends below 1, at the largest received one. It is nil if none
// was received.
func (h *Histogram) Curve() []CurvePoint {
	h.mu.Lock()
	defer h.mu.Unlock()
	count := h.counts.TotalCount()
	if count == 0 {
		return nil
	}
	came := float64(count) / float64(count+h.lost)
	points := []CurvePoint{{0, h.min.Seconds()}}
	for _, row := range h.counts.CumulativeDistributionWithTicks(ticksPerHalfDistance) {
		// A bucket's upper edge may lie beyond the largest observation in it.
		value := min(max(seconds(float64(row.ValueAt)), h.min.Seconds()), h.max.Seconds())
		points = append(points, CurvePoint{row.Quantile / 100 * came, value})
	}
	return points
}
