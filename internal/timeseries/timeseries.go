// Package timeseries computes how much a counter, read at some times, grew over a window
// that begins and ends between them, and compares times.
package timeseries

import "time"

// Sample is a value with its time.
type Sample struct {
	At    time.Time
	Value float64
}

// At returns the value of a counter at a time, by linear interpolation between two
// samples: the first value before the first sample, and the last after the last. samples
// are in order of time; there is at least one.
func At(samples []Sample, t time.Time) float64 {
	if !t.After(samples[0].At) {
		return samples[0].Value
	}
	for i, b := range samples[1:] {
		if a := samples[i]; !t.After(b.At) {
			if !b.At.After(a.At) {
				return b.Value
			}
			return a.Value + (b.Value-a.Value)*t.Sub(a.At).Seconds()/b.At.Sub(a.At).Seconds()
		}
	}
	return samples[len(samples)-1].Value
}

// Bounds returns the least and the most that a counter grew in [from, to]. A value may
// have been read up to older before its timestamp or up to newer after it. known is false
// if the most is not known: if no sample is before from, unless the first one is 0, as at
// the start of a program, or if none is after to. samples are as for At.
func Bounds(samples []Sample, from, to time.Time, older, newer time.Duration) (low, high float64, known bool) {
	first, last := samples[0], samples[len(samples)-1]
	outerFirst, outerLast, enclosed := first, last, false
	innerFirst, innerLast := last, first
	begins := first.Value == 0 // whenever that was
	for _, s := range samples {
		if !s.At.Add(newer).After(from) {
			outerFirst, begins = s, true
		}
		if !s.At.Add(newer).After(to) {
			innerLast = s
		}
	}
	for i := len(samples) - 1; i >= 0; i-- {
		if s := samples[i]; !s.At.Add(-older).Before(to) {
			outerLast, enclosed = s, true
		}
		if s := samples[i]; !s.At.Add(-older).Before(from) {
			innerFirst = s
		}
	}
	return max(0, innerLast.Value-innerFirst.Value), max(0, outerLast.Value-outerFirst.Value), begins && enclosed
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Earlier returns the earlier of two times.
func Earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
