package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Spread says how evenly n things are distributed over places, compared with a random
// assignment in which each of them goes to any place with equal probability,
// independently of the others: a multinomial distribution with equal probabilities.
type Spread struct {
	Max int // the most at one place
	// MaxExpected is the mean of Max under chance: n/R + e sqrt(n/R) for R places, e being
	// the mean of the greatest of R independent standard normal variables (0.564, 0.846,
	// 1.029, 1.163 for R = 2 to 5: Teichroew, Tables of expected values of order statistics,
	// Annals of Mathematical Statistics 27, 1956). It takes the counts as normal, which is
	// close from about ten at a place on.
	MaxExpected float64
	// P is the probability with which chance makes a spread as uneven as this, or more:
	// Pearson's chi-squared test with R-1 degrees of freedom. It is valid from about five at
	// a place on.
	P float64
}

// SpreadOf returns the spread for these counts of things at each place; false for fewer
// than two places, or nothing.
func SpreadOf(counts []int) (Spread, bool) {
	n := 0
	for _, c := range counts {
		n += c
	}
	if len(counts) < 2 || n == 0 {
		return Spread{}, false
	}
	even := float64(n) / float64(len(counts))
	var chi float64
	for _, c := range counts {
		chi += (float64(c) - even) * (float64(c) - even) / even
	}
	return Spread{
		Max:         slices.Max(counts),
		MaxExpected: even + greatestNormal(len(counts))*math.Sqrt(even),
		P:           distuv.ChiSquared{K: float64(len(counts) - 1)}.Survival(chi),
	}, true
}

// greatestNormal returns the mean of the greatest of n independent standard normal
// variables: the integral of x n phi(x) Phi(x)^(n-1), by the trapezoidal rule.
func greatestNormal(n int) float64 {
	const limit, step = 10.0, 0.01
	normal := distuv.UnitNormal
	var sum float64
	for x := -limit; x <= limit; x += step {
		sum += x * float64(n) * normal.Prob(x) * math.Pow(normal.CDF(x), float64(n-1)) * step
	}
	return sum
}
