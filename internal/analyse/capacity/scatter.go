package capacity

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"scaler.mesh/scaler/internal/analyse/stats"
)

// scatter describes how observations deviate from a model: runs from the mean of their
// size, and these means from the line. Repeats say nothing about the latter: if sizes
// deviate by themselves (because of a regime, or of the hour at which they were run), the
// residuals of one size are alike, and all runs together are worth only as many
// observations as there are sizes.
type scatter struct {
	astray  bool    // sizes miss the line by more than their repeats differ
	between float64 // mean square of sizes about the line, weighted with their runs
	within  float64 // mean square of runs about the mean of their size
	freedom int     // sizes less terms
	repeats float64 // mean number of runs of a size
}

// residual is the relative deviation of a run of a size from the line.
type residual struct {
	size point
	off  float64
}

// scattered tests the lack of fit of a line with this number of terms (Draper and Smith,
// Applied Regression Analysis, chapter 2). It divides the residuals' squares into those
// of repeats about the mean of their size, and the rest.
func scattered(seen []residual, terms int) scatter {
	type group struct{ sum, squares, n float64 }
	groups := map[point]*group{}
	var sizes []point // in one order: sums of floats depend on it
	all := 0.0
	for _, o := range seen {
		g := groups[o.size]
		if g == nil {
			g = &group{}
			groups[o.size] = g
			sizes = append(sizes, o.size)
		}
		g.sum, g.squares, g.n = g.sum+o.off, g.squares+o.off*o.off, g.n+1
		all += o.off * o.off
	}
	alone := 0.0
	for _, size := range sizes {
		g := groups[size]
		alone += g.squares - g.sum*g.sum/g.n
	}
	alone = max(0, alone) // rounding
	own := len(seen) - len(groups)
	s := scatter{freedom: len(groups) - terms, repeats: float64(len(seen)) / float64(len(groups))}
	if own < 1 || all < exact {
		return s
	}
	s.within = alone / float64(own)
	if s.freedom < 1 {
		return s
	}
	s.between = max(0, all-alone) / float64(s.freedom)
	f := distuv.F{D1: float64(s.freedom), D2: float64(own)}
	s.astray = f.Survival(s.between/s.within) < 1-confidence
	return s
}

// halfWidth returns half the width of the interval of one more observation at x, the
// terms' values.
func halfWidth(line stats.Fit, x []float64) float64 {
	return stats.Student(confidence, line.Spare) * line.Deviation(x)
}

// half returns half the width of the interval of one more run at x, the terms' values,
// about a line whose residuals are relative. If sizes go astray, the coefficients are
// only as certain as the number of sizes allows, and a run of a new size deviates both by
// its size's error and by its own.
func (s scatter) half(line stats.Fit, x []float64) float64 {
	if !s.astray {
		return halfWidth(line, x)
	}
	at, deviation := line.At(x), line.Deviation(x)
	coefficients := math.Sqrt(max(0, deviation*deviation/(line.Sigma*line.Sigma)-at*at)) // for residuals of 1
	own := (s.between + (s.repeats-1)*s.within) / s.repeats
	return stats.Student(confidence, s.freedom) * math.Hypot(at*math.Sqrt(own), coefficients*math.Sqrt(s.between))
}

// shows reports whether a term's interval excludes zero. If sizes go astray without the
// term, the reason may be the term or the sizes themselves: then the sizes must show it
// alone, because repeats cannot.
func (m fitted) shows(at int, astrayWithout bool) bool {
	term := m.Terms[at]
	half, size := term.Value-term.Low, math.Abs(term.Value)
	if !m.astray && !astrayWithout || m.Sigma == 0 {
		return half < size
	}
	if m.freedom < 1 {
		return false
	}
	return m.ofSizes(half) < size
}

// ofSizes converts half the width of a term's interval into that with the number of sizes as the number of observations.
func (m fitted) ofSizes(half float64) float64 {
	return half * stats.Student(confidence, m.freedom) / stats.Student(confidence, m.Spare) * math.Sqrt(m.between) / m.Sigma
}
