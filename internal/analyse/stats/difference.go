package stats

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Difference is the difference between the means of two samples.
type Difference struct {
	Value     float64 // mean of the second less mean of the first
	Low, High float64 // confidence interval of Value
	P         float64 // probability that samples of equal populations have means at least this far from each other
}

// Welch compares the means of two samples by Student's t, each with its own variance
// (Welch, The Generalization of "Student's" Problem when Several Different Population
// Variances are Involved, Biometrika 34, 1947). It assumes that each sample's values are
// independent and approximately normal; heavy tails make it conservative.
//
// A sample's standard deviation counts as at least resolution, the precision of the
// values themselves: values that were rounded to the same figure did not come from a
// population without variance.
//
// The error is ErrTooFew if a sample has less than two values, because its variance is
// unknown then.
func Welch(first, second []float64, resolution, confidence float64) (Difference, error) {
	if len(first) < 2 || len(second) < 2 {
		return Difference{}, ErrTooFew
	}
	square := func(x []float64) float64 { // of the mean's standard error
		return max(stat.Variance(x, nil), resolution*resolution) / float64(len(x))
	}
	a, b := square(first), square(second)
	d := Difference{Value: stat.Mean(second, nil) - stat.Mean(first, nil)}
	if a+b == 0 {
		d.Low, d.High, d.P = d.Value, d.Value, 1
		if d.Value != 0 {
			d.P = 0
		}
		return d, nil
	}
	// Satterthwaite's degrees of freedom, as in Welch's equation 28.
	freedom := (a + b) * (a + b) / (a*a/float64(len(first)-1) + b*b/float64(len(second)-1))
	t := distuv.StudentsT{Sigma: 1, Nu: freedom}
	half := math.Sqrt(a+b) * t.Quantile((1+confidence)/2)
	d.Low, d.High = d.Value-half, d.Value+half
	d.P = 2 * t.CDF(-math.Abs(d.Value)/math.Sqrt(a+b))
	return d, nil
}

// RunsNeeded returns the number of values that each sample needs for a one-sided Welch
// test at this level to have this power, 0 to 1, if the populations have the difference of
// the means and the variances of these samples. It is the smallest n at which the difference,
// in standard errors, is the sum of the quantiles of Student's t for the level and for the
// power (Cohen, Statistical Power Analysis for the Behavioral Sciences, chapter 2). ok is
// false if it would exceed most, or a sample has less than two values.
func RunsNeeded(first, second []float64, resolution, level, power float64, most int) (n int, ok bool) {
	if len(first) < 2 || len(second) < 2 {
		return 0, false
	}
	difference := math.Abs(stat.Mean(second, nil) - stat.Mean(first, nil))
	a := max(stat.Variance(first, nil), resolution*resolution)
	b := max(stat.Variance(second, nil), resolution*resolution)
	few := func(n int) bool {
		if a+b == 0 {
			return difference == 0
		}
		t := distuv.StudentsT{Sigma: 1, Nu: (a + b) * (a + b) / (a*a + b*b) * float64(n-1)}
		return difference < math.Sqrt((a+b)/float64(n))*(t.Quantile(1-level)+t.Quantile(power))
	}
	if few(most) {
		return 0, false
	}
	return 2 + sort.Search(most-2, func(i int) bool { return !few(i + 2) }), true
}

// Holm corrects the p-values of several tests for their number, so that the probability
// of even one false alarm among all is below the level that the corrected values are
// compared with, however the tests depend on each other (Holm, A Simple Sequentially
// Rejective Multiple Test Procedure, Scandinavian Journal of Statistics 6, 1979). The
// result is in the order of p.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(p[i], p[j]) })
	corrected := make([]float64, len(p))
	least := 0.0
	for rank, i := range order {
		least = max(least, min(1, float64(len(p)-rank)*p[i]))
		corrected[i] = least
	}
	return corrected
}

// SmallestP returns the smallest two-sided p-value that samples of m and n values can
// reach without any assumption about their populations. It belongs to samples of which
// all values of one are above all of the other. For samples of one population that is the
// case for 2 of all the ways to divide the m+n values (Mann and Whitney, On a Test of
// Whether one of Two Random Variables is Stochastically Larger than the Other, Annals of
// Mathematical Statistics 18, 1947). It returns 1 if a sample is empty.
func SmallestP(m, n int) float64 {
	if m < 1 || n < 1 {
		return 1
	}
	ways := 1.0 // m+n over m
	for i := 1; i <= m; i++ {
		ways *= float64(n+i) / float64(i)
	}
	return min(1, 2/ways)
}
