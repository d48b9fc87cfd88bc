package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// Reference data and certified values are NIST's (Statistical Reference
// Datasets, linear regression): Norris is easy, Longley is badly conditioned.
var norris = [][2]float64{ // y, x
	{0.1, 0.2}, {338.8, 337.4}, {118.1, 118.2}, {888.0, 884.6}, {9.2, 10.1}, {228.1, 226.5}, {668.5, 666.3}, {998.5, 996.3},
	{449.1, 448.6}, {778.9, 777.0}, {559.2, 558.2}, {0.3, 0.4}, {0.1, 0.6}, {778.1, 775.5}, {668.8, 666.9}, {339.3, 338.0},
	{448.9, 447.5}, {10.8, 11.6}, {557.7, 556.0}, {228.3, 228.1}, {998.0, 995.8}, {888.8, 887.6}, {119.6, 120.2}, {0.3, 0.3},
	{0.6, 0.3}, {557.6, 556.8}, {339.3, 339.1}, {888.0, 887.2}, {998.5, 999.0}, {778.9, 779.0}, {10.2, 11.1}, {117.6, 118.3},
	{228.9, 229.2}, {668.4, 669.1}, {449.2, 448.9}, {0.2, 0.5},
}

var longley = [][7]float64{ // y, x1 to x6
	{60323, 83.0, 234289, 2356, 1590, 107608, 1947}, {61122, 88.5, 259426, 2325, 1456, 108632, 1948},
	{60171, 88.2, 258054, 3682, 1616, 109773, 1949}, {61187, 89.5, 284599, 3351, 1650, 110929, 1950},
	{63221, 96.2, 328975, 2099, 3099, 112075, 1951}, {63639, 98.1, 346999, 1932, 3594, 113270, 1952},
	{64989, 99.0, 365385, 1870, 3547, 115094, 1953}, {63761, 100.0, 363112, 3578, 3350, 116219, 1954},
	{66019, 101.2, 397469, 2904, 3048, 117388, 1955}, {67857, 104.6, 419180, 2822, 2857, 118734, 1956},
	{68169, 108.4, 442769, 2936, 2798, 120445, 1957}, {66513, 110.8, 444546, 4681, 2637, 121950, 1958},
	{68655, 112.6, 482704, 3813, 2552, 123366, 1959}, {69564, 114.2, 502601, 3931, 2514, 125368, 1960},
	{69331, 115.7, 518173, 4806, 2572, 127852, 1961}, {70551, 116.9, 554894, 4007, 2827, 130081, 1962},
}

func TestLeastSquaresOfReferenceData(t *testing.T) {
	type data struct {
		x [][]float64
		y []float64
	}
	var n, l data
	for _, row := range norris {
		n.x, n.y = append(n.x, []float64{1, row[1]}), append(n.y, row[0])
	}
	for _, row := range longley {
		l.x, l.y = append(l.x, append([]float64{1}, row[1:]...)), append(l.y, row[0])
	}
	for _, c := range []struct {
		name           string
		data           data
		values, errors []float64 // certified estimates, and standard deviations of them
		sigma          float64
		digits         float64 // relative precision that is asked for
	}{
		{"Norris", n, []float64{-0.262323073774029, 1.00211681802045}, []float64{0.232818234301152, 0.000429796848199937}, 0.884796396144373, 1e-10},
		{"Longley", l,
			[]float64{-3482258.63459582, 15.0618722713733, -0.0358191792925910, -2.02022980381683, -1.03322686717359, -0.0511041056535807, 1829.15146461355},
			[]float64{890420.383607373, 84.9149257747669, 0.0334910077722432, 0.488399681651699, 0.214274163161675, 0.226073200069370, 455.478499142212},
			304.854073561965, 1e-7},
	} {
		t.Run(c.name, func(t *testing.T) {
			fit, err := LeastSquares(c.data.x, c.data.y, 0.95)
			if err != nil {
				t.Fatal(err)
			}
			near := func(what string, got, want float64) {
				t.Helper()
				if math.Abs(got-want) > c.digits*math.Abs(want) {
					t.Errorf("%s is %.15g, want %.15g", what, got, want)
				}
			}
			near("sigma", fit.Sigma, c.sigma)
			quantile := distuv.StudentsT{Sigma: 1, Nu: float64(len(c.data.y) - len(c.values))}.Quantile(0.975)
			for j, term := range fit.Terms {
				near("a coefficient", term.Value, c.values[j])
				near("half its interval", (term.High-term.Low)/2, quantile*c.errors[j])
			}
		})
	}
}

func TestLeastSquaresThatCannotBe(t *testing.T) {
	line := func(n int) (x [][]float64, y []float64) {
		for i := range n {
			x, y = append(x, []float64{1, float64(i)}), append(y, 3+2*float64(i))
		}
		return x, y
	}
	one, oneY := line(1)
	two, twoY := line(2)
	three, threeY := line(3)
	for _, c := range []struct {
		name string
		x    [][]float64
		y    []float64
		want error
	}{
		{"nothing", nil, nil, ErrTooFew},
		{"no terms", [][]float64{{}}, []float64{1}, ErrTooFew},
		{"one of two", one, oneY, ErrTooFew},
		{"two of two", two, twoY, nil},
		{"three of two", three, threeY, nil},
		{"the same size again and again", [][]float64{{1, 5}, {1, 5}, {1, 5}}, []float64{1, 2, 3}, ErrCollinear},
		{"a tenth of it", [][]float64{{1, 200, 20}, {1, 400, 40}, {1, 800, 80}, {1, 1600, 160}}, []float64{1, 2, 3, 4}, ErrCollinear},
		{"a term that is zero", [][]float64{{1, 0}, {1, 0}, {1, 0}}, []float64{1, 2, 3}, ErrCollinear},
	} {
		t.Run(c.name, func(t *testing.T) {
			fit, err := LeastSquares(c.x, c.y, 0.95)
			if !errors.Is(err, c.want) {
				t.Fatalf("error is %v, want %v", err, c.want)
			}
			if err != nil {
				return
			}
			for j, want := range []float64{3, 2} {
				term := fit.Terms[j]
				if math.Abs(term.Value-want) > 1e-9 || term.Low > want+1e-9 || term.High < want-1e-9 {
					t.Errorf("term %d is %+v, want %g", j, term, want)
				}
			}
			if exact := fit.Spare == 0; exact != math.IsInf(fit.Terms[0].High, 1) {
				t.Errorf("with %d degrees of freedom the interval is %+v", fit.Spare, fit.Terms[0])
			}
		})
	}
	if _, err := LeastSquares(three, twoY, 0.95); err == nil {
		t.Error("no error for results that lack")
	}
}

// An interval holds the truth as often as it says.
func TestIntervalsOfAFit(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const trials = 2000
	held := 0
	for range trials {
		var x [][]float64
		var y []float64
		for _, pods := range []float64{200, 400, 800, 1600} {
			x = append(x, []float64{1, pods})
			y = append(y, 80e6+0.5e6*pods+10e6*r.NormFloat64())
		}
		fit, err := LeastSquares(x, y, 0.9)
		if err != nil {
			t.Fatal(err)
		}
		if slope := fit.Terms[1]; slope.Low <= 0.5e6 && 0.5e6 <= slope.High {
			held++
		}
	}
	if share := float64(held) / trials; math.Abs(share-0.9) > 0.03 {
		t.Errorf("the 90 %% interval held the truth in %.1f %% of the trials", 100*share)
	}
}

func TestAt(t *testing.T) {
	fit := Fit{Terms: []Term{{Value: 3}, {Value: 2}}}
	if got := fit.At([]float64{1, 10}); got != 23 {
		t.Errorf("At is %g, want 23", got)
	}
}
