package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// For a straight line the deviation of one more observation has a closed form
// (Draper and Smith, chapter 3): sigma x sqrt(1 + 1/n + (x - mean)^2 / Sxx).
func TestDeviationOfALine(t *testing.T) {
	var x [][]float64
	var y []float64
	mean, sxx := 0.0, 0.0
	for _, row := range norris {
		x, y = append(x, []float64{1, row[1]}), append(y, row[0])
		mean += row[1] / float64(len(norris))
	}
	for _, row := range norris {
		sxx += (row[1] - mean) * (row[1] - mean)
	}
	fit, err := LeastSquares(x, y, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []float64{0, mean, 500, 5000} {
		want := fit.Sigma * math.Sqrt(1+1/float64(len(norris))+(at-mean)*(at-mean)/sxx)
		if got := fit.Deviation([]float64{1, at}); math.Abs(got/want-1) > 1e-9 {
			t.Errorf("deviation at %v is %v, want %v", at, got, want)
		}
	}
}

func TestLeastSquaresRelative(t *testing.T) {
	x := [][]float64{{1, 2}, {1, 4}, {1, 6}, {1, 8}, {1, 16}}
	y := []float64{7, 11, 15, 19, 35}
	fit, err := LeastSquaresRelative(x, y, []float64{1, 2, 3, 4, 5}, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := fit.Terms[0].Value, fit.Terms[1].Value; math.Abs(a-3) > 1e-9 || math.Abs(b-2) > 1e-9 || fit.Sigma > 1e-9 {
		t.Errorf("exact observations give %v + %v x with a deviation of %v, want 3 + 2 x", a, b, fit.Sigma)
	}
	for name, c := range map[string]struct {
		y, spread []float64
	}{
		"an observation of zero": {[]float64{0, 11, 15, 19, 35}, nil},
		"a spread of zero":       {y, []float64{1, 1, 0, 1, 1}},
	} {
		if _, err := LeastSquaresRelative(x, c.y, c.spread, 0.95); !errors.Is(err, ErrNotPositive) {
			t.Errorf("%s: %v, want %v", name, err, ErrNotPositive)
		}
	}
	if _, err := LeastSquaresRelative(x, y, []float64{1}, 0.95); err == nil {
		t.Error("a spread for each of some observations is taken")
	}
}

// Of many experiments whose noise is a share of the value, 95 % have the next
// observation, far outside, within the interval.
func TestRelativeIntervalsCover(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	truth := func(n float64) float64 { return 100 + 0.6*n }
	const experiments = 2000
	inside := 0
	for range experiments {
		var x [][]float64
		var y []float64
		for _, n := range []float64{200, 200, 200, 400, 400, 400, 800, 800, 800} {
			x, y = append(x, []float64{1, n}), append(y, truth(n)*(1+0.05*random.NormFloat64()))
		}
		fit, err := LeastSquaresRelative(x, y, nil, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		far := []float64{1, 3200}
		next := truth(3200) * (1 + 0.05*random.NormFloat64())
		if math.Abs(next-fit.At(far)) <= Student(0.95, fit.Spare)*fit.Deviation(far) {
			inside++
		}
	}
	if share := float64(inside) / experiments; share < 0.935 || share > 0.965 {
		t.Errorf("%.3f of the intervals hold the next observation, want 0.95", share)
	}
}

func TestStudent(t *testing.T) {
	for spare, want := range map[int]float64{0: math.Inf(1), 1: 12.706, 2: 4.303, 10: 2.228, 1000: 1.962} {
		if got := Student(0.95, spare); math.Abs(got-want) > 0.001 {
			t.Errorf("with %d degrees of freedom %v, want %v", spare, got, want)
		}
	}
}
