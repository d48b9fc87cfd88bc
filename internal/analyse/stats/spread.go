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
	// MaxExpected is the expected value of Max for a random assignment: n/R + e sqrt(n/R)
	// for R places, where e is the expected maximum of R independent standard normal
	// variables (0.564, 0.846, 1.029, 1.163 for R = 2 to 5: Teichroew, Tables of expected
	// values of order statistics, Annals of Mathematical Statistics 27, 1956). It
	// approximates the counts as normal, which is close with about ten or more at each
	// place.
	MaxExpected float64
	// P is the probability that a random assignment is at least as uneven: Pearson's
	// chi-squared test with R-1 degrees of freedom. It is valid with about five or more
	// at each place.
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
