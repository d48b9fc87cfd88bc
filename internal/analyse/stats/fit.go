package stats

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Fit is a linear model, y = sum of x[i]*Terms[i], with the least sum of squared
// residuals.
type Fit struct {
	Terms []Term
	Sigma float64 // standard deviation of the residuals; 0 without degrees of freedom
	Spare int     // degrees of freedom: observations less terms

	relative bool        // Sigma is a share of the model's value
	root     [][]float64 // root times its transpose is the covariance of the coefficients for a Sigma of 1
}

// Term is one coefficient of a Fit. Without degrees of freedom its interval is
// unknown, from -Inf to +Inf.
type Term struct {
	Value     float64
	Low, High float64 // confidence interval
}

// The reasons why observations do not determine a model.
var (
	ErrTooFew    = errors.New("fewer observations than terms")
	ErrCollinear = errors.New("terms that cannot be distinguished")
)

// collinear is the condition number of the terms, scaled to equal length, above which
// they count as linearly dependent: sums of each other up to rounding errors.
const collinear = 1e10

// LeastSquares fits a linear model to observations: y[i] belongs to the terms x[i]. A
// constant is a term that is 1 everywhere. The intervals hold the true coefficients with
// the given confidence, 0 to 1, if the residuals are independent and normal: Student's t
// for the residuals' degrees of freedom (Draper and Smith, Applied Regression Analysis,
// chapter 5).
//
// The error is ErrTooFew or ErrCollinear if the observations do not determine the
// coefficients.
func LeastSquares(x [][]float64, y []float64, confidence float64) (Fit, error) {
	if len(x) != len(y) {
		return Fit{}, fmt.Errorf("fitting: %d observations of the terms, %d of the result", len(x), len(y))
	}
	if len(x) == 0 || len(x) < len(x[0]) || len(x[0]) == 0 {
		return Fit{}, ErrTooFew
	}
	n, p := len(x), len(x[0])
	// Terms of very different size (bytes and pods) are scaled to a common size.
	scale := make([]float64, p)
	terms := mat.NewDense(n, p, nil)
	for j := range p {
		for i := range n {
			scale[j] = math.Hypot(scale[j], x[i][j])
		}
		if scale[j] == 0 {
			return Fit{}, ErrCollinear
		}
		for i := range n {
			terms.Set(i, j, x[i][j]/scale[j])
		}
	}
	var qr mat.QR
	qr.Factorize(terms)
	if cond := qr.Cond(); math.IsNaN(cond) || cond > collinear {
		return Fit{}, ErrCollinear
	}
	var solved mat.VecDense
	if err := qr.SolveVecTo(&solved, false, mat.NewVecDense(n, y)); err != nil {
		return Fit{}, fmt.Errorf("fitting: %w", err)
	}
	return describe(terms, &qr, scale, y, &solved, confidence)
}

// describe makes a Fit of solved coefficients.
func describe(terms *mat.Dense, qr *mat.QR, scale, y []float64, solved *mat.VecDense, confidence float64) (Fit, error) {
	n, p := terms.Dims()
	fit := Fit{Terms: make([]Term, p), Spare: n - p}
	var fitted mat.VecDense
	fitted.MulVec(terms, solved)
	residual := 0.0
	for i, v := range y {
		residual += (v - fitted.AtVec(i)) * (v - fitted.AtVec(i))
	}
	root, err := covarianceRoot(qr, scale)
	if err != nil {
		return Fit{}, err
	}
	fit.root = root
	t := math.Inf(1)
	if fit.Spare > 0 {
		fit.Sigma = math.Sqrt(residual / float64(fit.Spare))
		t = fit.Sigma * Student(confidence, fit.Spare)
	}
	for j := range fit.Terms {
		value, half := solved.AtVec(j)/scale[j], length(root[j])
		fit.Terms[j] = Term{Value: value, Low: value - t*half, High: value + t*half}
	}
	return fit, nil
}

// covarianceRoot returns the inverse of R, its rows in the units of the terms: the length
// of a row is the standard error of that coefficient for residuals of 1.
func covarianceRoot(qr *mat.QR, scale []float64) ([][]float64, error) {
	p := len(scale)
	var r mat.Dense
	qr.RTo(&r)
	upper := mat.NewTriDense(p, mat.Upper, nil)
	for i := range p {
		for j := i; j < p; j++ {
			upper.SetTri(i, j, r.At(i, j))
		}
	}
	var inverse mat.TriDense
	if err := inverse.InverseTri(upper); err != nil {
		return nil, ErrCollinear
	}
	root := make([][]float64, p)
	for i := range root {
		root[i] = make([]float64, p)
		for j := i; j < p; j++ {
			root[i][j] = inverse.At(i, j) / scale[i]
		}
	}
	return root, nil
}

func length(v []float64) (l float64) {
	for _, x := range v {
		l = math.Hypot(l, x)
	}
	return l
}

// At returns the value of the model for these terms.
func (f Fit) At(x []float64) (y float64) {
	for j, term := range f.Terms {
		y += term.Value * x[j]
	}
	return y
}
