package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/stat/distuv"
)

// ErrNotPositive is in the error of LeastSquaresRelative if an observation, or the value
// of the model for one, or a spread, is not above zero: it has no relative error then.
var ErrNotPositive = errors.New("not above zero")

// rounds of reweighting are enough for any noise that a proportion describes; the weights
// change by less than settled long before.
const (
	rounds  = 50
	settled = 1e-9
)

// LeastSquaresRelative is LeastSquares for residuals whose standard deviation is
// proportional to the model's value, as for repeats that vary by some percent: Sigma is
// that proportion. spread states how much more or less than that each observation varies;
// nil = all alike. The weights, one over the square of the model's value, are found by
// iteration (Carroll and Ruppert, Transformation and Weighting in Regression, chapter 2).
func LeastSquaresRelative(x [][]float64, y, spread []float64, confidence float64) (Fit, error) {
	if len(x) != len(y) || spread != nil && len(spread) != len(y) {
		return Fit{}, fmt.Errorf("fitting: %d observations of the terms, %d of the result, %d of its spread", len(x), len(y), len(spread))
	}
	level := slices.Clone(y)
	var fit Fit
	for range rounds {
		weighted, ones := make([][]float64, len(x)), make([]float64, len(y))
		for i := range x {
			scale := level[i]
			if spread != nil {
				scale *= spread[i]
			}
			if scale <= 0 {
				return Fit{}, ErrNotPositive
			}
			weighted[i] = make([]float64, len(x[i]))
			for j := range x[i] {
				weighted[i][j] = x[i][j] / scale
			}
			ones[i] = y[i] / scale
		}
		var err error
		if fit, err = LeastSquares(weighted, ones, confidence); err != nil {
			return Fit{}, err
		}
		moved := 0.0
		for i := range x {
			next := fit.At(x[i])
			moved = max(moved, math.Abs(next-level[i])/level[i])
			level[i] = next
		}
		if moved < settled {
			break
		}
	}
	fit.relative = true
	return fit, nil
}

// Deviation returns the standard deviation of one more observation at these terms about
// the value of the model there: that of the residuals, combined with that of the
// coefficients (Draper and Smith, Applied Regression Analysis, chapter 3). It is 0
// without degrees of freedom, where it cannot be estimated: check Spare.
func (f Fit) Deviation(x []float64) float64 {
	own := 1.0
	if f.relative {
		own = f.At(x)
	}
	parts := []float64{own}
	for j := range f.root {
		part := 0.0
		for i := range f.root {
			part += x[i] * f.root[i][j]
		}
		parts = append(parts, part)
	}
	return f.Sigma * length(parts)
}

type student struct {
	confidence float64
	freedom    int
}

// students has each result of Student, which takes as long as a fit: fits ask for the same few again and again.
var students sync.Map

// Student returns the t for which the interval from -t to t of Student's t distribution
// has the probability confidence, 0 to 1; +Inf without degrees of freedom.
func Student(confidence float64, freedom int) float64 {
	if freedom < 1 {
		return math.Inf(1)
	}
	asked := student{confidence, freedom}
	if known, ok := students.Load(asked); ok {
		return known.(float64)
	}
	t := distuv.StudentsT{Sigma: 1, Nu: float64(freedom)}.Quantile((1 + confidence) / 2)
	students.Store(asked, t)
	return t
}
