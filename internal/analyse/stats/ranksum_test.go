package stats

import (
	"errors"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// divided returns the p-value by its definition: of all ways to divide the values, as
// many as lie at least so unevenly.
func divided(first, second []float64) float64 {
	all := append(append([]float64{}, first...), second...)
	uneven := func(in uint) float64 {
		u := 0.0
		for i, a := range all {
			for j, b := range all {
				if in>>i&1 == 1 && in>>j&1 == 0 && a < b {
					u++
				}
			}
		}
		return math.Abs(u - float64(len(first)*len(second))/2)
	}
	seen, ways, as := uneven(1<<len(first)-1), 0.0, 0.0
	for in := range uint(1) << len(all) {
		if bits.OnesCount(in) == len(first) {
			ways++
			if uneven(in) >= seen {
				as++
			}
		}
	}
	return as / ways
}

func TestRankSum(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	sample := func(n int) []float64 {
		var s []float64
		for range n {
			s = append(s, random.ExpFloat64())
		}
		return s
	}
	for range 100 {
		a, b := sample(1+random.IntN(5)), sample(1+random.IntN(5))
		p, err := RankSum(a, b)
		back, _ := RankSum(b, a)
		if err != nil || !near(p, divided(a, b), 1e-9) || !near(back, p, 1e-9) {
			t.Errorf("RankSum(%v, %v) = %v, %v, the other way round %v: want %v", a, b, p, err, back, divided(a, b))
		}
	}
	if _, err := RankSum(nil, sample(1)); !errors.Is(err, ErrTooFew) {
		t.Errorf("RankSum of nothing is %v", err)
	}
}

func TestRankSumOfKnownSamples(t *testing.T) {
	upTo := func(n int, from float64) []float64 {
		var s []float64
		for i := range n {
			s = append(s, from+float64(i))
		}
		return s
	}
	for _, tt := range []struct {
		name string
		a, b []float64
		want float64
	}{
		{"all of one above all of the other", upTo(6, 0), upTo(6, 100), SmallestP(6, 6)},
		{"the same, of many", upTo(100, 0), upTo(100, 1000), SmallestP(100, 100)},
		{"equal", upTo(5, 0), upTo(5, 0), 1},
		{"one value", []float64{3, 3, 3}, []float64{3, 3}, 1},
		{"two pairs the other way, of five and five", []float64{1, 2, 3, 4, 7}, []float64{5, 6, 8, 9, 10}, 8. / 252},
	} {
		if p, err := RankSum(tt.a, tt.b); err != nil || !near(p, tt.want, 1e-9) {
			t.Errorf("%s: %v, %v, want %v", tt.name, p, err, tt.want)
		}
	}
	// A pair that is equal is cautiously taken for half a pair the other way.
	separate, _ := RankSum([]float64{1, 2, 3}, []float64{4, 5, 6})
	touching, _ := RankSum([]float64{1, 2, 4}, []float64{4, 5, 6})
	if touching <= separate {
		t.Errorf("p is %v where a value is equal, %v where none is", touching, separate)
	}
}

// No more false alarms than the level allows, however values are spread.
func TestRankSumFalseAlarms(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const runs = 4000
	alarms := 0
	for range runs {
		var both [2][]float64
		for i := range both {
			for range 6 {
				both[i] = append(both[i], math.Exp(2*random.NormFloat64()))
			}
		}
		if p, _ := RankSum(both[0], both[1]); p <= 0.05 {
			alarms++
		}
	}
	if alarms > runs/20+60 { // four standard deviations
		t.Errorf("%d alarms in %d", alarms, runs)
	}
}
