package compare

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"scaler.mesh/scaler/pkg/record"
)

// The default are the hardest cases alone; docs/results has all rates, of 1000 trials.
var trials = flag.Int("trials", 0, "simulated comparisons of each kind, of all kinds; 0 = 400 of the hardest kinds")

// A law draws a figure whose true mean is 1; geometric reports that its geometric mean is.
type law struct {
	name string
	draw func(*rand.Rand) float64
}

var laws = []law{
	{"normal, 2%", func(r *rand.Rand) float64 { return 1 + 0.02*r.NormFloat64() }},
	{"normal, 5%", func(r *rand.Rand) float64 { return 1 + 0.05*r.NormFloat64() }},
	{"lognormal, 20%", func(r *rand.Rand) float64 { return math.Exp(0.2 * r.NormFloat64()) }},
	{"uniform, 20%", func(r *rand.Rand) float64 { return 0.9 + 0.2*r.Float64() }},
	{"heavy tails", func(r *rand.Rand) float64 { // Student's t with 3 degrees of freedom
		a, b, c := r.NormFloat64(), r.NormFloat64(), r.NormFloat64()
		return math.Exp(0.05 * r.NormFloat64() / math.Sqrt((a*a+b*b+c*c)/3))
	}},
	{"one run of ten 20% slower", func(r *rand.Rand) float64 {
		if r.IntN(10) == 0 {
			return 1.2 + 0.03*r.NormFloat64()
		}
		return 1 + 0.03*r.NormFloat64()
	}},
}

// of makes a group of n runs each; B's true value is factor times A's.
func (l law) of(r *rand.Rand, n int, factor float64) Group {
	f := Figure{Name: "rollout.cores", Path: "controlPlane.rollout.cores.mean", Unit: Cores}
	for range n {
		f.A.take(record.Value{Value: new(l.draw(r))})
		f.B.take(record.Value{Value: new(factor * l.draw(r))})
	}
	f.describe()
	return Group{Label: "simulated", A: Side{Used: make([]string, n)}, B: Side{Used: make([]string, n)}, Figures: []Figure{f}, Interleaved: true}
}

// rates returns the shares of comparisons with each outcome.
func (l law) rates(trials, n int, factor float64, bound Bound) map[Outcome]float64 {
	r := rand.New(rand.NewPCG(uint64(n), math.Float64bits(factor)))
	shares := map[Outcome]float64{}
	for range trials {
		shares[judge([]Group{l.of(r, n, factor)}, []Bound{bound})[0].Outcome] += 1 / float64(trials)
	}
	return shares
}

// How often each outcome comes of a bound of +10 %, by the true difference. A difference
// below the bound may be reported as beyond it, and one above it to be inside, in no more
// than one of twenty comparisons. The rates are logged; docs/results has them.
func TestErrorRatesOfBounds(t *testing.T) {
	trials, sizes, changes := *trials, []int{4, 5, 10}, []float64{0, 0.05, 0.099, 0.101, 0.15, 0.2, 0.3}
	if trials == 0 {
		trials, sizes, changes = 400, []int{5}, []float64{0.099, 0.101}
	}
	bound, err := ParseBound("rollout.cores>+10%")
	if err != nil {
		t.Fatal(err)
	}
	most := alpha + 4*math.Sqrt(alpha*(1-alpha)/float64(trials))
	for _, l := range laws {
		for _, n := range sizes {
			for _, change := range changes {
				shares := l.rates(trials, n, 1+change, bound)
				t.Logf("| %s | %d | %+.1f %% | %.3f | %.3f | %.3f |", l.name, n, 100*change, shares[Inside], shares[Undecided], shares[Beyond])
				wrong := shares[Beyond]
				if change > 0.1 {
					wrong = shares[Inside]
				}
				if wrong > most {
					t.Errorf("%s, %d runs each, true difference %+.1f %%: wrong in %.3f of the comparisons", l.name, n, 100*change, wrong)
				}
			}
		}
	}
}

// Of ten bounds that B keeps, or of ten that it exceeds, none may be judged wrongly in
// 19 of 20 comparisons.
func TestErrorRatesOfManyBounds(t *testing.T) {
	const trials, bounds = 500, 10
	for _, change := range []float64{0.099, 0.101} {
		r := rand.New(rand.NewPCG(1, 1))
		wrong := 0
		for range trials {
			var group Group
			var all []Bound
			for i := range bounds {
				group.Figures = append(group.Figures, laws[1].of(r, 5, 1+change).Figures...)
				group.Figures[i].Name = fmt.Sprintf("figure%d", i)
				all = append(all, Bound{Figure: group.Figures[i].Name, Change: 0.1, Percent: true})
			}
			result := Result{Bounds: judge([]Group{group}, all)}
			for _, j := range result.Bounds {
				if change < 0.1 && j.Outcome == Beyond || change > 0.1 && j.Outcome == Inside {
					wrong++
					break
				}
			}
		}
		share := float64(wrong) / trials
		t.Logf("10 bounds of +10 %%, true differences %+.1f %%: a wrong outcome in %.3f of the comparisons", 100*change, share)
		if share > alpha+4*math.Sqrt(alpha*(1-alpha)/trials) {
			t.Errorf("a wrong outcome in %.3f of the comparisons", share)
		}
	}
}

// The number of runs that is reported to decide does, four times of five.
func TestRunsToDecide(t *testing.T) {
	bound := Bound{Figure: "rollout.cores", Change: 0.1, Percent: true}
	r := rand.New(rand.NewPCG(5, 6))
	// A sample with the true difference and spread: 12.5 % above, which varies by 5 %.
	f := Figure{Name: "rollout.cores", Unit: Cores}
	for _, z := range []float64{-1.264911, -0.632456, 0, 0.632456, 1.264911} { // variance 1
		f.A.take(record.Value{Value: new(math.Exp(0.05 * z))})
		f.B.take(record.Value{Value: new(1.125 * math.Exp(0.05*z))})
	}
	f.describe()
	j := judge([]Group{{Figures: []Figure{f}, Interleaved: true}}, []Bound{bound})[0]
	if j.Outcome != Undecided || j.RunsToDecide == nil {
		t.Fatalf("%+v: want it undecided", j)
	}
	log := law{"lognormal, 5%", func(r *rand.Rand) float64 { return math.Exp(0.05 * r.NormFloat64()) }}
	decided := 0
	const trials = 500
	for range trials {
		if judge([]Group{log.of(r, *j.RunsToDecide, 1.125)}, []Bound{bound})[0].Outcome == Beyond {
			decided++
		}
	}
	if share := float64(decided) / trials; share < 0.72 || share > 0.9 {
		t.Errorf("%d runs each decide in %.2f of the comparisons, want about 0.8", *j.RunsToDecide, share)
	}
	// At the bound itself no number of runs decides.
	f.B = Sample{}
	for _, v := range f.A.values {
		f.B.take(record.Value{Value: new(1.1 * v)})
	}
	f.describe()
	if j := judge([]Group{{Figures: []Figure{f}, Interleaved: true}}, []Bound{bound})[0]; j.Outcome != Undecided || j.RunsToDecide != nil {
		t.Errorf("at the bound: %+v", j)
	}
}
