package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Mean is the mean of a few independent values of one figure, with its interval.
type Mean struct {
	Value float64
	// Low and High are the confidence interval of the true mean, if the values are normal
	// (Student's t).
	Low, High float64
	// P is the probability of a mean at least this far from 0 if the true one were 0
	// (one-sample t test; for differences between pairs: the paired t test).
	P float64
}

// MeanOf returns the mean of at least two values; ok is false if there are fewer, because
// the spread is unknown then.
func MeanOf(values []float64, confidence float64) (m Mean, ok bool) {
	n := float64(len(values))
	if n < 2 {
		return Mean{}, false
	}
	mean, deviation := stat.MeanStdDev(values, nil)
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}
	of := deviation / math.Sqrt(n)
	half := t.Quantile((1+confidence)/2) * of
	m = Mean{Value: mean, Low: mean - half, High: mean + half, P: 1}
	switch {
	case of > 0:
		m.P = 2 * t.Survival(math.Abs(mean)/of)
	case mean != 0: // all values are the same
		m.P = 0
	}
	return m, true
}
