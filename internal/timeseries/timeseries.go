// Package timeseries computes how much a counter, read at some times, grew over a window
// that begins and ends between them, and compares times.
package timeseries

import (
	"slices"
	"time"
)

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

// Bounds returns the least and the most that a counter grew in [from, to]: what it grew
// between the samples inside the window, and between those around it. Where there is none
// around it, the first or the last takes its place. samples are as for At.
func Bounds(samples []Sample, from, to time.Time) (low, high float64) {
	first, last := samples[0], samples[len(samples)-1]
	outerFirst, innerLast := first, first
	for _, s := range samples {
		if !s.At.After(from) {
			outerFirst = s
		}
		if !s.At.After(to) {
			innerLast = s
		}
	}
	outerLast, innerFirst := last, last
	for _, s := range slices.Backward(samples) {
		if !s.At.Before(to) {
			outerLast = s
		}
		if !s.At.Before(from) {
			innerFirst = s
		}
	}
	return max(0, innerLast.Value-innerFirst.Value), max(0, outerLast.Value-outerFirst.Value)
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
