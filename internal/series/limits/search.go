package limits

import (
	"math"

	"scaler.mesh/scaler/internal/analyse/stats"
)

// Scale is the range of a setting, and how it is searched.
type Scale struct {
	Min, Max   float64 // values that are tried at most
	Start      float64 // the first that is tried
	Resolution float64 // the bracket's ends may differ by this share, as 0.1
	Step       float64 // values are multiples of it; 0 = they have three digits
	// Harder says that greater values are harder to meet an objective with, as of a
	// rate; else smaller ones are, as of a memory limit.
	Harder bool
}

// Bracket contains the limit: it is the interval between the hardest value that met the
// objective and the easiest that missed it. An end that is nil was not found.
type Bracket struct {
	Passes *float64 `json:"passes,omitempty"`
	Fails  *float64 `json:"fails,omitempty"`
}

// Try is a value that was tried.
type Try struct {
	Value float64
	Met   bool
}

// Bracket returns the bracket that the tries determine.
func (s Scale) Bracket(tries []Try) (b Bracket) {
	for _, t := range tries {
		if !t.Met && (b.Fails == nil || s.harder(*b.Fails, t.Value)) {
			b.Fails = &t.Value
		}
	}
	for _, t := range tries {
		// What was met beyond a value that was missed is chance.
		if t.Met && (b.Fails == nil || s.harder(*b.Fails, t.Value)) && (b.Passes == nil || s.harder(t.Value, *b.Passes)) {
			b.Passes = &t.Value
		}
	}
	return b
}

// Next returns the value to try after these, first in factors of two and then between the ends
// of the bracket. done says that nothing is left to try: the bracket is narrow enough, or
// the range is used up.
func (s Scale) Next(tries []Try) (value float64, done bool) {
	b := s.Bracket(tries)
	switch {
	case b.Passes == nil && b.Fails == nil:
		return s.grid(s.Start), false
	case b.Fails == nil:
		return s.outward(*b.Passes, s.Harder)
	case b.Passes == nil:
		return s.outward(*b.Fails, !s.Harder)
	}
	low, high := min(*b.Passes, *b.Fails), max(*b.Passes, *b.Fails)
	if high <= low*(1+s.Resolution)*(1+1e-9) {
		return 0, true
	}
	middle := s.grid(math.Sqrt(low * high))
	if middle <= low || middle >= high {
		if middle = s.grid((low + high) / 2); middle <= low || middle >= high {
			return 0, true // nothing lies between them
		}
	}
	return middle, false
}

// outward returns the double or half of a value, within the range.
func (s Scale) outward(from float64, up bool) (value float64, done bool) {
	if up {
		value = min(s.grid(2*from), s.Max)
		return value, value <= from
	}
	value = max(s.grid(from/2), s.Min)
	return value, value >= from
}

// grid returns the nearest value that can be tried.
func (s Scale) grid(v float64) float64 {
	if s.Step > 0 {
		v = math.Round(v/s.Step) * s.Step
	} else {
		v = stats.ThreeDigits(v)
	}
	return min(max(v, s.Min), s.Max)
}

// harder reports whether a is harder than b.
func (s Scale) harder(a, b float64) bool {
	if s.Harder {
		return a > b
	}
	return a < b
}

// Most returns the largest number of values that are tried after these, over all
// places where the limit may lie.
func (s Scale) Most(tries []Try) int {
	return int(s.Worst(tries, unbounded, func(float64) float64 { return 1 }))
}

// unbounded is more tries than any search takes.
const unbounded = 100

// Worst returns the most that the first so many values cost that are tried after these, over all
// places where the limit may lie.
func (s Scale) Worst(tries []Try, first int, cost func(value float64) float64) float64 {
	known := s.Bracket(tries)
	most := 0.0
	for _, limit := range s.places() {
		if known.Passes != nil && s.harder(*known.Passes, limit) || known.Fails != nil && !s.harder(*known.Fails, limit) {
			continue
		}
		all, sum := append([]Try(nil), tries...), 0.0
		for {
			v, done := s.Next(all)
			if done || len(all) >= len(tries)+first {
				break
			}
			all, sum = append(all, Try{v, !s.harder(v, limit)}), sum+cost(v)
		}
		most = max(most, sum)
	}
	return most
}

// places are values across the range, and beyond both ends.
func (s Scale) places() []float64 {
	const number = 500
	all := []float64{s.Min / 2, s.Max * 2}
	for i := range number + 1 {
		all = append(all, s.Min*math.Pow(s.Max/s.Min, float64(i)/number))
	}
	return all
}
