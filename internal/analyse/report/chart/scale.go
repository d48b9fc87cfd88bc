package chart

import (
	"math"
	"slices"
)

// Kind says how an axis maps values to places.
type Kind int

// The kinds of axes.
const (
	Linear Kind = iota // from 0
	Log                // for values above 0: others are drawn at the lower end
	// Percentile maps quantiles from 0 to 1 (exclusive): each further nine has
	// the same width, so that rare values are visible.
	Percentile
)

// Axis is a chart's x or y axis. Its ends follow from what is drawn.
type Axis struct {
	Name  string // "" = none
	Kind  Kind
	Ticks Ticks
}

// scale is an axis with ends.
type scale struct {
	name      string
	low, high float64 // after bend
	bend      func(float64) float64
	ticks     []float64
	format    func(float64) string
}

// beyond is the largest value that is drawn; larger values are drawn at its place.
const beyond = 1e100

// share returns the position of v between the ends, from 0 to 1.
func (s scale) share(v float64) float64 {
	v = min(v, beyond)
	return min(1, max(0, (s.bend(v)-s.low)/(s.high-s.low)))
}

// over makes the scale for all of values.
func (a Axis) over(values []float64) scale {
	least, most := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if math.IsNaN(v) || a.Kind == Log && v <= 0 {
			continue
		}
		v = min(v, beyond)
		least, most = min(least, v), max(most, v)
	}
	var s scale
	switch a.Kind {
	case Log:
		s = logScale(least, most)
	case Percentile:
		s = percentileScale(most)
	default:
		s = linearScale(most, a.Ticks.Binary)
	}
	s.name, s.format = a.Name, a.Ticks.Text
	return s
}

// linearScale returns a scale from 0, with labels that are round numbers.
func linearScale(most float64, binary bool) scale {
	if !(most > 0) || math.IsInf(most, 0) {
		most = 1
	}
	step := niceStep(most / 4)
	if binary {
		step = math.Exp2(math.Ceil(math.Log2(most/4) - 1e-9))
	}
	s := scale{high: math.Ceil(most/step-1e-9) * step, bend: func(v float64) float64 { return v }}
	for i := 0; float64(i)*step <= s.high*(1+1e-9); i++ {
		s.ticks = append(s.ticks, float64(i)*step)
	}
	return s
}

// endAt ends the axis at a value below its last tick, and removes the ticks beyond it.
func (s *scale) endAt(v float64) {
	if !(v > 0) {
		return
	}
	s.high = v
	s.ticks = slices.DeleteFunc(s.ticks, func(t float64) bool { return t > v*(1+1e-9) })
}

// niceStep returns the smallest of 1, 2 and 5 times a power of ten that is not below v.
func niceStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// ticksAtMost limits the steps of a logarithmic axis.
const ticksAtMost = 8

// logScale makes a scale between two values that are each 1, 2 or 5 times a power of ten.
func logScale(least, most float64) scale {
	if math.IsInf(least, 0) || math.IsInf(most, 0) {
		least, most = 0.1, 1
	}
	var steps []float64
	for power := math.Floor(math.Log10(least)); len(steps) == 0 || steps[len(steps)-1] < most*(1-1e-9); power++ {
		for _, m := range []float64{1, 2, 5} {
			steps = append(steps, m*math.Pow(10, power))
		}
	}
	for len(steps) > 2 && steps[1] <= least*(1+1e-9) {
		steps = steps[1:]
	}
	for len(steps) > 2 && steps[len(steps)-2] >= most*(1-1e-9) {
		steps = steps[:len(steps)-1]
	}
	low := math.Log10(steps[0])
	s := scale{low: low, high: math.Log10(steps[len(steps)-1]), ticks: steps, bend: func(v float64) float64 {
		if v <= 0 {
			return low
		}
		return math.Log10(v)
	}}
	if len(steps) > ticksAtMost {
		s.ticks = nil
		first, last := math.Ceil(s.low-1e-9), math.Floor(s.high+1e-9)
		for power := first; power <= last; power += math.Ceil((last - first + 1) / ticksAtMost) {
			s.ticks = append(s.ticks, math.Pow(10, power))
		}
	}
	return s
}

// percentileScale makes a scale that reaches at least two nines, and further if there are
// values there.
func percentileScale(most float64) scale {
	nines := func(q float64) float64 { return -math.Log10(1 - min(max(q, 0), 1-1e-9)) }
	high := 2.0
	if !math.IsInf(most, 0) {
		high = max(high, nines(most))
	}
	s := scale{high: high, bend: nines, ticks: []float64{0, 0.5}}
	for n := 1.0; n <= high+1e-9; n++ {
		s.ticks = append(s.ticks, 1-math.Pow(10, -n))
	}
	return s
}
