package dilation

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"scaler.mesh/scaler/pkg/scenario"
)

// istiod is the cost that its driver states.
var istiod = Cost{Pod: 0.026, Push: 0.00026, PushPerService: 1.4e-6, ReadyPerSecond: 32}

// nineWrites is the factor by which the processor time of istiod grew when fake pods began to write their status nine times instead of twice
// (docs/results/validation.md).
const nineWrites = 1.1

// The processor time of the project's own results is within a quarter of what is expected: see docs/results.
func TestExpect(t *testing.T) {
	for name, c := range map[string]struct {
		load    Load
		seconds float64 // of the rollout
		want    float64 // processor time of istiod there
	}{
		// Rows with nineWrites were measured with two writes, on machines whose speed is not known.
		"200 pods, 20 a second":          {Load{Pods: 200, Services: 20, PerSecond: 20}, 9.6, 5.9 * nineWrites},
		"400 pods, 20 a second":          {Load{Pods: 400, Services: 40, PerSecond: 20}, 19.6, 14.5 * nineWrites},
		"800 pods, 20 a second":          {Load{Pods: 800, Services: 80, PerSecond: 20}, 39.8, 39.8 * nineWrites},
		"1600 pods, 20 a second":         {Load{Pods: 1600, Services: 160, PerSecond: 20}, 80.3, 157 * nineWrites},
		"800 pods, strict, 20 a second":  {Load{Pods: 800, Services: 80, Scoped: true, PerSecond: 20}, 39.6, 19.1 * nineWrites},
		"1600 pods, strict, 20 a second": {Load{Pods: 1600, Services: 160, Scoped: true, PerSecond: 20}, 79.9, 40.7 * nineWrites},

		// docs/results/ladder.md
		"200 pods, one by one":          {Load{Pods: 200, Services: 20, PerSecond: 20, OneByOne: true, Starts: 4}, 10, 6.9},
		"400 pods, one by one":          {Load{Pods: 400, Services: 40, PerSecond: 20, OneByOne: true, Starts: 4}, 20, 13.7},
		"800 pods, one by one":          {Load{Pods: 800, Services: 80, PerSecond: 20, OneByOne: true, Starts: 4}, 40, 32.1},
		"1600 pods, one by one":         {Load{Pods: 1600, Services: 160, PerSecond: 20, OneByOne: true, Starts: 4}, 80, 109},
		"200 pods, strict, one by one":  {Load{Pods: 200, Services: 20, Scoped: true, PerSecond: 20, OneByOne: true, Starts: 4}, 10, 6.2},
		"1600 pods, strict, one by one": {Load{Pods: 1600, Services: 160, Scoped: true, PerSecond: 20, OneByOne: true, Starts: 4}, 80, 52.4},

		"200 pods at once":  {Load{Pods: 200, Services: 20}, 7, 5.6 * nineWrites},
		"1600 pods at once": {Load{Pods: 1600, Services: 160}, 55, 107 * nineWrites},
	} {
		got := Expect(c.load, istiod)
		if math.Abs(got.ControlPlane/c.want-1) > 0.25 || math.Abs(got.Seconds/c.seconds-1) > 0.25 {
			t.Errorf("%s: %.1f s of processor time in %.1f s, measured were %.1f in %.1f", name, got.ControlPlane, got.Seconds, c.want, c.seconds)
		}
	}
	if two, one := Expect(Load{Pods: 1600, Services: 160, Replicas: 2}, istiod), Expect(Load{Pods: 1600, Services: 160}, istiod); two.Seconds != one.Seconds/2 {
		t.Errorf("two replicas admit pods over %.1f s, one over %.1f", two.Seconds, one.Seconds)
	}
}

// The factor is the least with which the demand stays below the limit, and depends on nothing else than the load, how many
// processors there are and how fast they are.
func TestFactor(t *testing.T) {
	usual, ladder := Load{Pods: 200, Services: 20, PerSecond: 20, OneByOne: true, Starts: 4, Processors: 8}, Load{Pods: 1600, Services: 160, PerSecond: 20, OneByOne: true, Starts: 4, Processors: 8}
	strict := ladder
	strict.Scoped = true
	two := Machine{2, 1.1}
	for name, c := range map[string]struct {
		load    Load
		machine Machine
		want    float64
	}{
		"the default":            {usual, two, 3},
		"50 pods":                {Load{Pods: 50, Services: 5, PerSecond: 20, OneByOne: true, Starts: 4, Processors: 8}, two, 3},
		"on faster processors":   {usual, Machine{2, 2.2}, 2},
		"on slower processors":   {usual, Machine{2, 0.55}, 6},
		"of unknown speed":       {usual, Machine{2, 0}, 4},
		"on four processors":     {usual, Machine{4, 1.1}, 2},
		"on a large machine":     {usual, Machine{64, 1.1}, 1},
		"1600 pods, 20 a second": {ladder, two, 6}, // 4 on average, in which istiod's 8 processors would be 7.3 of 8
		"1600, slow processors":  {ladder, Machine{2, 1}, 6},
		"1600, slower ones":      {ladder, Machine{2, 0.63}, 12}, // 8 on average: istiod's 8 processors would be 12.7 of 16
		"1600 pods, strict":      {strict, two, 3},
		"1600, four processors":  {ladder, Machine{4, 1.1}, 3},
		"1600, one processor":    {ladder, Machine{1, 1.1}, 16},
		"1600, no limit":         {Load{Pods: 1600, Services: 160, PerSecond: 20, OneByOne: true, Starts: 4}, two, 16},
		"1600 pods at once":      {Load{Pods: 1600, Services: 160}, two, 6},
		"bursts":                 {Load{Pods: 200, Services: 20, PerSecond: 10, Peak: 100}, two, 6},
		"a slow arrival":         {Load{Pods: 200, Services: 20, PerSecond: 1}, two, 1},
		"1600 pods in bursts":    {Load{Pods: 1600, Services: 160, PerSecond: 20, Peak: 20, Starts: 4}, two, 6},
		"without priority":       {Load{Pods: 200, Services: 20, PerSecond: 20, OneByOne: true, Starts: 4, Equal: true}, two, 6},
		"changes after it":       {Load{Pods: 800, Services: 80, PerSecond: 1, Changes: 1000}, two, 6},
		"no processors":          {usual, Machine{0, 1.1}, 6},
		"more than can be done":  {Load{Pods: 100_000, Services: 10_000}, Machine{1, 1.1}, scenario.MaxDilation},
		"nothing":                {Load{}, two, 1},
	} {
		if got := Expect(c.load, istiod).Factor(c.machine); got != c.want {
			t.Errorf("%s: %g, want %g (a machine of %.2f)", name, got, c.want, Expect(c.load, istiod).machine())
		}
	}
}

// The speed that is measured differs by a tenth from one measurement to the next. For loads at random, the choice then differs in fewer than a
// third, where steps of one would make it nearly a half.
func TestFactorIsSteady(t *testing.T) {
	random, differ := rand.New(rand.NewPCG(1, 2)), 0
	const loads = 2000
	for range loads {
		d := Expect(Load{Pods: 50 + random.IntN(2000), Services: 50, PerSecond: 5 + 30*random.Float64()}, istiod)
		speed := 0.8 + 0.4*random.Float64()
		if d.Factor(Machine{2, speed}) != d.Factor(Machine{2, 1.1 * speed}) {
			differ++
		}
	}
	if share := float64(differ) / loads; share > 0.33 {
		t.Errorf("%.2f of the choices differ", share)
	}
}

// Twice a factor is one that is chosen from, up to the greatest.
func TestSlower(t *testing.T) {
	for _, k := range factors {
		if got := Slower(k); got != min(2*k, scenario.MaxDilation) || !slices.Contains(factors, got) {
			t.Errorf("after %g: %g", k, got)
		}
	}
}

func TestChoose(t *testing.T) {
	m := Machine{2, 1.4}
	small, large := Expect(Load{Pods: 50, Services: 5, PerSecond: 20}, istiod), Expect(Load{Pods: 1600, Services: 160, PerSecond: 20}, istiod)
	for _, all := range [][]Demand{{small, large}, {large, small}} {
		factor, choice := Choose(all, m)
		if factor != large.Factor(m) || choice.Seconds != 80 || choice.Processors != 2 || choice.Speed != 1.4 || choice.ControlPlaneSeconds != large.ControlPlane || choice.Limit != Limit {
			t.Errorf("%g, %+v", factor, choice)
		}
	}
	if factor, _ := Choose(nil, m); factor != 1 {
		t.Errorf("of nothing: %g", factor)
	}
}

// A machine needs half as long with twice the processors, or twice their speed.
func TestDemandOnAMachine(t *testing.T) {
	d := Demand{ControlPlane: 10, Instrument: 2, Cluster: 20}
	for m, want := range map[Machine]float64{{Processors: 2}: 16, {Processors: 4}: 8, {Processors: 2, Speed: 2}: 8} {
		if got := d.On(m); got != want {
			t.Errorf("%+v needs %g s, want %g", m, got, want)
		}
	}
}
