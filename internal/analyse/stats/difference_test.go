package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func near(a, b, relative float64) bool { return math.Abs(a-b) <= relative*math.Abs(b) }

func TestWelch(t *testing.T) {
	// With two values each and equal variances there are two degrees of freedom,
	// of which Student's t is known in closed form: P = 1 - t/sqrt(t*t+2), here
	// with t = 4/sqrt(2).
	a, b := []float64{0, 2}, []float64{4, 6}
	d, err := Welch(a, b, 0, 0.95)
	if want := 1 - math.Sqrt(0.8); err != nil || d.Value != 4 || !near(d.P, want, 1e-9) {
		t.Errorf("Welch = %+v, %v: want P %v", d, err, want)
	}
	if want := math.Sqrt(2) * 4.30265273; !near(d.High-d.Value, want, 1e-6) || !near(d.Value-d.Low, want, 1e-6) {
		t.Errorf("Welch = %+v: want 4 +- %v", d, want)
	}
	// Unequal variances and sizes, by hand: standard error sqrt(1/3+11/3) = 2,
	// t = 2.5, degrees of freedom 16/(1/18+121/27) = 3.53: P lies between that of
	// 4 and that of 3.
	a, b = []float64{1, 2, 3}, []float64{4, 4, 8, 12}
	d, err = Welch(a, b, 0, 0.95)
	if err != nil || d.Value != 5 || d.P < 0.0668 || d.P > 0.0877 {
		t.Errorf("Welch = %+v, %v", d, err)
	}
	// The other way round, all is the other way round.
	e, err := Welch(b, a, 0, 0.95)
	if err != nil || e.P != d.P || e.Value != -d.Value || !near(e.Low, -d.High, 1e-12) {
		t.Errorf("Welch = %+v, %v and the other way round %+v", d, err, e)
	}
	// Where the interval ends at 0 the p-value is what the confidence leaves.
	edge, err := Welch(a, b, 0, 1-d.P)
	if err != nil || math.Abs(edge.Low) > 1e-6 {
		t.Errorf("Welch = %+v, %v: want an interval from 0", edge, err)
	}
}

func TestWelchWithoutVariance(t *testing.T) {
	five := func(v float64) []float64 { return []float64{v, v, v, v, v} }
	for _, tt := range []struct {
		name       string
		a, b       []float64
		resolution float64
		detected   bool // at 5 %
	}{
		{"equal", five(1), five(1), 0, false},
		{"different, known exactly", five(1), five(1.001), 0, true},
		{"different by the resolution", five(1), five(1.001), 0.001, false},
		{"different by more", five(1), five(1.005), 0.001, true},
	} {
		d, err := Welch(tt.a, tt.b, tt.resolution, 0.95)
		if err != nil || d.P <= 0.05 != tt.detected || (d.Low > 0) != tt.detected {
			t.Errorf("%s: %+v, %v", tt.name, d, err)
		}
	}
	if _, err := Welch([]float64{1}, five(1), 1, 0.95); !errors.Is(err, ErrTooFew) {
		t.Errorf("Welch of one value: %v", err)
	}
}

func TestHolm(t *testing.T) {
	for _, tt := range []struct{ p, want []float64 }{
		{nil, []float64{}},
		{[]float64{0.04}, []float64{0.04}},
		{[]float64{0.01, 0.04, 0.03, 0.005}, []float64{0.03, 0.06, 0.06, 0.02}}, // as R's p.adjust
		{[]float64{0.5, 0.9, 0.4}, []float64{1, 1, 1}},
		{[]float64{0.02, 0.02, 0.02}, []float64{0.06, 0.06, 0.06}},
	} {
		got := Holm(tt.p)
		if !slices.EqualFunc(got, tt.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) {
			t.Errorf("Holm(%v) = %v, want %v", tt.p, got, tt.want)
		}
	}
}

func TestSmallestP(t *testing.T) {
	for _, tt := range []struct {
		m, n int
		want float64
	}{{0, 9, 1}, {1, 1, 1}, {2, 2, 1. / 3}, {3, 3, 0.1}, {3, 4, 2. / 35}, {4, 4, 2. / 70}, {5, 5, 2. / 252}, {1, 39, 0.05}} {
		if got := SmallestP(tt.m, tt.n); !near(got, tt.want, 1e-12) {
			t.Errorf("SmallestP(%d, %d) = %v, want %v", tt.m, tt.n, got, tt.want)
		}
	}
}

// A law is how a figure that is 1 in the mean varies from run to run. Here it
// draws the logarithm of one.
type law struct {
	name string
	draw func(*rand.Rand) float64
}

var laws = []law{
	{"normal, 5%", func(r *rand.Rand) float64 { return math.Log1p(0.05 * r.NormFloat64()) }},
	{"lognormal, 50%", func(r *rand.Rand) float64 { return 0.5 * r.NormFloat64() }},
	{"exponential", func(r *rand.Rand) float64 { return math.Log(r.ExpFloat64()) }},
	{"uniform, 20%", func(r *rand.Rand) float64 { return math.Log(0.9 + 0.2*r.Float64()) }},
	{"heavy tails", func(r *rand.Rand) float64 { // Student's t with 3 degrees of freedom
		a, b, c := r.NormFloat64(), r.NormFloat64(), r.NormFloat64()
		return 0.05 * r.NormFloat64() / math.Sqrt((a*a+b*b+c*c)/3)
	}},
	{"a neighbour's noise in one run of ten", func(r *rand.Rand) float64 {
		if r.IntN(10) == 0 {
			return 1 + 0.05*r.NormFloat64()
		}
		return 0.05 * r.NormFloat64()
	}},
	{"rounded to three digits", func(r *rand.Rand) float64 { return math.Log(math.Round(115*(1+0.002*r.NormFloat64())) / 115) }},
}

// family draws as many logarithms as there are figures, for one run. Half of
// what they vary by is common to all, as a slow run is slow in every figure.
func family(r *rand.Rand, of law, figures int) []float64 {
	common := of.draw(r)
	drawn := make([]float64, figures)
	for i := range drawn {
		drawn[i] = of.draw(r)
		if i%2 == 0 {
			drawn[i] = (drawn[i] + common) / 2
		}
	}
	return drawn
}

// detected counts the figures that are detected as different, of n runs against n; those before
// moved are larger by shift in the second.
func detected(r *rand.Rand, of law, n, figures, moved int, shift float64) (right, wrong int) {
	runs := make([][]float64, 2*n)
	for i := range runs {
		runs[i] = family(r, of, figures)
	}
	p := make([]float64, figures)
	for f := range p {
		var a, b []float64
		for i := range n {
			a, b = append(a, runs[i][f]), append(b, runs[n+i][f])
			if f < moved {
				b[i] += shift
			}
		}
		d, _ := Welch(a, b, 0.001, 0.95)
		p[f] = d.P
	}
	for f, corrected := range Holm(p) {
		switch {
		case corrected > 0.05:
		case f < moved:
			right++
		default:
			wrong++
		}
	}
	return right, wrong
}

// Of comparisons of like with like, 120 figures each, no more than one in twenty
// may raise an alarm at all, whatever the law. The seed is fixed: the bound
// allows for the three standard errors that so many trials leave.
func TestFalseAlarms(t *testing.T) {
	const figures = 120
	trials := 400
	bound := 0.05 + 3*math.Sqrt(0.05*0.95/float64(trials))
	for _, of := range laws {
		for _, n := range []int{4, 5} {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			alarms := 0
			for range trials {
				if _, wrong := detected(r, of, n, figures, 0, 0); wrong > 0 {
					alarms++
				}
			}
			rate := float64(alarms) / float64(trials)
			t.Logf("%s, %d against %d: %.3f", of.name, n, n, rate)
			if rate > bound {
				t.Errorf("%s, %d against %d: a false alarm in %.3f of the comparisons, want at most %.3f", of.name, n, n, rate, bound)
			}
		}
	}
}

// How large a true difference has to be to be detected, among 300 figures, as a run
// has them, of which 10 differ and which vary by 5 % from run to run.
func TestPower(t *testing.T) {
	const trials, figures, moved = 100, 300, 10
	for _, tt := range []struct {
		n      int
		factor float64
		least  float64 // share of the true differences that is detected
	}{{4, 2, 0.95}, {5, 1.5, 0.95}, {5, 1.3, 0.75}, {10, 1.15, 0.85}} {
		r := rand.New(rand.NewPCG(2, uint64(tt.n)))
		var right, alarms int
		for range trials {
			detected, wrong := detected(r, laws[0], tt.n, figures, moved, math.Log(tt.factor))
			right += detected
			if wrong > 0 {
				alarms++
			}
		}
		power := float64(right) / trials / moved
		t.Logf("%d against %d, %.2f times: %.2f detected, false alarms in %.3f", tt.n, tt.n, tt.factor, power, float64(alarms)/trials)
		if power < tt.least {
			t.Errorf("%d against %d, %.2f times: %.2f are detected, want %.2f", tt.n, tt.n, tt.factor, power, tt.least)
		}
		if float64(alarms)/trials > 0.1 {
			t.Errorf("%d against %d, %.2f times: false alarms in %d of %d", tt.n, tt.n, tt.factor, alarms, trials)
		}
	}
}
