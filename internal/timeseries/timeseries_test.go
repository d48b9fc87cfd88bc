package timeseries

import (
	"testing"
	"time"
)

func at(seconds float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func TestAt(t *testing.T) {
	samples := []Sample{{at(0), 2}, {at(10), 4}, {at(10), 5}, {at(20), 10}}
	for seconds, want := range map[float64]float64{-1: 2, 0: 2, 5: 3, 10: 4, 15: 7.5, 20: 10, 30: 10} {
		if got := At(samples, at(seconds)); got != want {
			t.Errorf("after %v s: %v, want %v", seconds, got, want)
		}
	}
	if got := At([]Sample{{at(0), 0}, {at(0), 3}}, at(0.5)); got != 3 {
		t.Errorf("after two samples of one moment: %v, want 3", got)
	}
}

func TestBounds(t *testing.T) {
	samples := []Sample{{at(0), 2}, {at(10), 4}, {at(20), 7}, {at(30), 11}}
	for _, c := range []struct {
		name      string
		samples   []Sample
		from, to  float64
		low, high float64
	}{
		{"between samples", samples, 5, 25, 3, 9},
		{"at samples", samples, 10, 20, 3, 3},
		{"without a sample inside", samples, 12, 18, 0, 3},
		{"before the first sample", samples, -5, 5, 0, 2},
		{"before the first sample, of a program that began", []Sample{{at(0), 0}, {at(10), 4}}, -5, 5, 0, 4},
		{"after the last sample", samples, 25, 35, 0, 4},
	} {
		low, high := Bounds(c.samples, at(c.from), at(c.to))
		if low != c.low || high != c.high {
			t.Errorf("%s: %v to %v, want %v to %v", c.name, low, high, c.low, c.high)
		}
	}
}
