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
		name         string
		samples      []Sample
		from, to     float64
		older, newer time.Duration
		low, high    float64
		known        bool
	}{
		{"between samples", samples, 5, 25, 0, 0, 3, 9, true},
		{"at samples", samples, 10, 20, 0, 0, 3, 3, true},
		{"at samples of a moment that is not known", samples, 10, 20, time.Second, time.Second, 0, 9, true},
		{"without a sample inside", samples, 12, 18, 0, 0, 0, 3, true},
		{"before the first sample", samples, -5, 5, 0, 0, 0, 2, false},
		{"before the first sample, of a program that began", []Sample{{at(0), 0}, {at(10), 4}}, -5, 5, 0, 0, 0, 4, true},
		{"after the last sample", samples, 25, 35, 0, 0, 0, 4, false},
	} {
		low, high, known := Bounds(c.samples, at(c.from), at(c.to), c.older, c.newer)
		if low != c.low || high != c.high || known != c.known {
			t.Errorf("%s: %v to %v, known %v, want %v to %v, %v", c.name, low, high, known, c.low, c.high, c.known)
		}
	}
}
