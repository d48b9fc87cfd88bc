package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Values of Teichroew's table.
func TestGreatestNormal(t *testing.T) {
	for n, want := range map[int]float64{2: 0.56419, 3: 0.84628, 4: 1.02938, 5: 1.16296, 10: 1.53875} {
		if got := greatestNormal(n); math.Abs(got-want) > 1e-5 {
			t.Errorf("the mean of the greatest of %d is %.5f, want %.5f", n, got, want)
		}
	}
}

func TestSpreadOf(t *testing.T) {
	for _, counts := range [][]int{nil, {5}, {0, 0}} {
		if s, ok := SpreadOf(counts); ok {
			t.Errorf("%v has a spread: %+v", counts, s)
		}
	}
	even, _ := SpreadOf([]int{200, 200, 200})
	if even.Max != 200 || even.P != 1 || math.Abs(even.MaxExpected-211.968) > 0.001 {
		t.Errorf("an even spread is %+v", even)
	}
	// A binomial: 2 P(X >= 60) for n = 100 is 0.0569, and 0.0455 without a correction for
	// continuity, as here.
	if s, _ := SpreadOf([]int{60, 40}); math.Abs(s.P-0.0455) > 0.0001 {
		t.Errorf("60 of 100 has the probability %.4f, want 0.0455", s.P)
	}
	if s, _ := SpreadOf([]int{375, 225, 0}); s.P > 1e-6 {
		t.Errorf("one without any of 600 has the probability %g", s.P)
	}
}

// What chance is expected to make is what it makes.
func TestSpreadOfChance(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct{ n, places int }{{20, 2}, {600, 3}, {600, 2}, {200, 5}} {
		const rounds = 2000
		var greatest, expected float64
		unlikely := 0
		for range rounds {
			counts := make([]int, c.places)
			for range c.n {
				counts[r.IntN(c.places)]++
			}
			s, _ := SpreadOf(counts)
			greatest, expected = greatest+float64(s.Max)/rounds, s.MaxExpected
			if s.P < 0.1 {
				unlikely++
			}
		}
		if math.Abs(greatest-expected) > 0.01*expected {
			t.Errorf("%d at %d places: the most are %.2f, expected %.2f", c.n, c.places, greatest, expected)
		}
		if share := float64(unlikely) / rounds; share < 0.06 || share > 0.14 {
			t.Errorf("%d at %d places: a share of %.3f has a probability below 0.1", c.n, c.places, share)
		}
	}
}
