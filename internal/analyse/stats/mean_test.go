package stats_test

import (
	"math"
	"testing"

	"scaler.mesh/scaler/internal/analyse/stats"
)

func TestMeanOf(t *testing.T) {
	// Intervals and p by R's t.test.
	for _, c := range []struct {
		values []float64
		want   stats.Mean
	}{
		{[]float64{1, 2, 3, 4, 5}, stats.Mean{Value: 3, Low: 1.036757, High: 4.963243, P: 0.013236}},
		{[]float64{0.5, 0.7, 0.6}, stats.Mean{Value: 0.6, Low: 0.351586, High: 0.848414, P: 0.009133}},
		{[]float64{-1, 1}, stats.Mean{Value: 0, Low: -12.706205, High: 12.706205, P: 1}},
		{[]float64{2, 2, 2}, stats.Mean{Value: 2, Low: 2, High: 2, P: 0}},
		{[]float64{0, 0}, stats.Mean{P: 1}},
	} {
		got, ok := stats.MeanOf(c.values, 0.95)
		if !ok {
			t.Errorf("%v: not enough", c.values)
		}
		for _, pair := range [][2]float64{{got.Value, c.want.Value}, {got.Low, c.want.Low}, {got.High, c.want.High}, {got.P, c.want.P}} {
			if math.Abs(pair[0]-pair[1]) > 1e-5 {
				t.Errorf("%v: %+v, want %+v", c.values, got, c.want)
				break
			}
		}
	}
	if _, ok := stats.MeanOf([]float64{1}, 0.95); ok {
		t.Error("one value has an interval")
	}
}

func TestMerge(t *testing.T) {
	a, b := filled(1, 3, 5), filled(2, 1, 9, -1)
	a.Merge(b)
	want := filled(3, 3, 5, 1, 9, -1)
	if got := a.Summary(); *got.Min != 0 || *got.Max != *want.Summary().Max || got.Count != 5 || got.Lost != 3 || got.Clamped != 1 || *got.Mean != *want.Summary().Mean {
		t.Errorf("merged: %+v, want %+v", got, want.Summary())
	}
	empty := stats.NewHistogram()
	empty.Merge(filled(0, 7))
	empty.Merge(stats.NewHistogram())
	if got := empty.Summary(); got.Count != 1 || *got.Min != *got.Max {
		t.Errorf("merged into an empty one: %+v", got)
	}
}
