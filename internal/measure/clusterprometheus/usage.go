package clusterprometheus

import (
	"errors"
	"fmt"
	"math"
	"time"

	"scaler.mesh/scaler/internal/timeseries"
)

// Usage holds the processor time and the memory that one pod, or several, used over a window of time.
type Usage struct {
	// CPUSeconds is processor time, taken as even between two samples; nil where fewer than MinSamples lie in the window, or none
	// encloses it.
	CPUSeconds *float64
	// Low and High enclose what it was in truth. High is nil where that is not known: no sample follows, or a program
	// ended, or began at a moment that is not known.
	Low  float64
	High *float64
	// Resident and WorkingSet are memory; nil where fewer than MinSamples lie in the window.
	Resident, WorkingSet *Memory
	Samples              int   // of processor time in the window
	Missed               int   // samples that are missing around the window's edges, where processor time is taken as even for about two intervals or more
	Restarts             int   // starts in the window that follow an earlier life of the same pod
	Err                  error // why CPUSeconds is not known; nil = it is

	there      time.Duration // how long the pod was there in the window
	thereKnown bool          // false where its start is not known, and may be in the window
	gone       bool          // it ended in the window
}

// Memory holds amounts in bytes.
type Memory struct {
	Mean float64 // weighted by time, changing evenly between two samples
	Peak float64 // the greatest of the samples in the window
	End  float64 // of the last sample in the window
}

// MinSamples is the least number of samples in a window for which figures are computed.
const MinSamples = 2

// Usage returns what a pod used in [from, to). It is false where the pod had not begun before the window's end, or had ended before its
// start.
func (m *Metrics) Usage(name string, from, to time.Time) (Usage, bool) {
	p := m.pods[name]
	if p == nil {
		return Usage{}, false
	}
	var u Usage
	var cpu, high float64
	there, highKnown := false, true
	for i, l := range p.lives {
		first, last := l.samples[0], l.last()
		if !l.started.IsZero() && !l.started.Before(to) || l.ended && last.At.Add(m.Interval).Before(from) {
			continue
		}
		there = true
		// The counter is 0 at the start: where that is not known, after the last sample of the life before.
		begin := l.started
		if begin.IsZero() && i > 0 {
			begin = p.lives[i-1].last().At
		}
		points := l.samples
		if !begin.IsZero() && begin.Before(first.At) {
			points = append([]Sample{{At: begin}}, l.samples...)
		}
		if i > 0 && !points[0].At.Before(from) && points[0].At.Before(to) {
			u.Restarts++
		}
		cpu += timeseries.At(points, to) - timeseries.At(points, from)
		for _, s := range l.samples {
			if !s.At.Before(from) && s.At.Before(to) {
				u.Samples++
			}
		}
		u.Missed += m.missed(points, from) + m.missed(points, to)
		low, most, known := timeseries.Bounds(points, from, to, m.Older, m.Newer)
		u.Low, high, highKnown = u.Low+low, high+most, highKnown && known
		switch {
		case i == 0 && first.At.After(from) && !l.started.After(from):
			u.Err = fmt.Errorf("its first sample is of %s, after the phase's start %s", clock(first.At), clock(from))
		case !l.ended && last.At.Before(to):
			u.Err = fmt.Errorf("its last sample is of %s, before the phase's end %s", clock(last.At), clock(to))
		}
	}
	if !there {
		return Usage{}, false
	}
	if highKnown {
		u.High = &high
	}
	if u.Err == nil && u.Samples < MinSamples {
		u.Err = fmt.Errorf("%d samples, at an interval of %s, lie in the phase of %s: want %d or more", u.Samples, m.Interval, to.Sub(from).Round(time.Millisecond), MinSamples)
	}
	if u.Err == nil {
		u.CPUSeconds = &cpu
	}
	u.Resident, u.WorkingSet = level(p.memory, from, to), level(p.workingSet, from, to)
	begin, end := from, to
	first, last := p.lives[0], p.lives[len(p.lives)-1]
	u.thereKnown = !first.started.IsZero() || !first.samples[0].At.After(from)
	if first.started.After(from) {
		begin = first.started
	}
	if u.gone = last.ended && last.last().At.Add(m.Interval).Before(to); u.gone {
		end = last.last().At
	}
	u.there = max(0, end.Sub(begin))
	return u, true
}

// Together returns the sum of all pods in [from, to). A pod is part of the mean of memory for as long as it was there, and not of the end
// once it ended. A sum of peaks, which need not come together, is a bound.
func (m *Metrics) Together(from, to time.Time) Usage {
	cpu, high := 0.0, 0.0
	sum := Usage{CPUSeconds: &cpu, High: &high, Resident: &Memory{}, WorkingSet: &Memory{}}
	found := false
	for _, name := range m.Pods() {
		u, ok := m.Usage(name, from, to)
		if !ok {
			continue
		}
		found = true
		sum.Low, sum.Samples, sum.Restarts = sum.Low+u.Low, sum.Samples+u.Samples, sum.Restarts+u.Restarts
		sum.Missed += u.Missed
		sum.CPUSeconds, sum.High = plus(sum.CPUSeconds, u.CPUSeconds), plus(sum.High, u.High)
		if u.there > 0 || !u.thereKnown {
			sum.Resident, sum.WorkingSet = sum.Resident.plus(u.Resident.share(u, to.Sub(from))), sum.WorkingSet.plus(u.WorkingSet.share(u, to.Sub(from)))
		}
		if u.Err != nil {
			sum.Err = errors.Join(sum.Err, fmt.Errorf("pod %s: %w", name, u.Err))
		}
	}
	if !found {
		return Usage{Err: errors.New("there are no samples of any pod")}
	}
	return sum
}

func plus(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	return new(*a + *b)
}

func (m *Memory) plus(other *Memory) *Memory {
	if m == nil || other == nil {
		return nil
	}
	return &Memory{m.Mean + other.Mean, m.Peak + other.Peak, m.End + other.End}
}

// share returns what the memory of a pod adds to the sum of all over a window; nil if it is not known how long the pod ran.
func (m *Memory) share(u Usage, window time.Duration) *Memory {
	if m == nil || !u.thereKnown {
		return nil
	}
	part := Memory{Mean: m.Mean * u.there.Seconds() / window.Seconds(), Peak: m.Peak, End: m.End}
	if u.gone {
		part.End = 0
	}
	return &part
}

// wideGap is the greatest distance of the samples around a moment, in intervals: one sample may be missing.
const wideGap = 2.5

// missed returns the number of samples that are missing between the two around a moment, if these are more than wideGap apart.
func (m *Metrics) missed(points []Sample, t time.Time) int {
	for i, b := range points[1:] {
		intervals := b.At.Sub(points[i].At).Seconds() / m.Interval.Seconds()
		if points[i].At.Before(t) && b.At.After(t) && intervals > wideGap {
			return int(math.Round(intervals)) - 1
		}
	}
	return 0
}

// level returns the memory in [from, to); nil if it has too few samples.
func level(samples []Sample, from, to time.Time) *Memory {
	var inside []Sample
	for _, s := range samples {
		if !s.At.Before(from) && s.At.Before(to) {
			inside = append(inside, s)
		}
	}
	if len(inside) < MinSamples {
		return nil
	}
	m := &Memory{Peak: inside[0].Value, End: inside[len(inside)-1].Value}
	for i, b := range inside[1:] {
		a := inside[i]
		m.Mean += (a.Value + b.Value) / 2 * b.At.Sub(a.At).Seconds()
		m.Peak = max(m.Peak, b.Value)
	}
	m.Mean /= inside[len(inside)-1].At.Sub(inside[0].At).Seconds()
	return m
}

// Span is the time from the first sample of processor time in a window to the last.
type Span struct {
	First, Last time.Time
	CPUSeconds  float64
	Memory      []Sample // of resident memory
}

// Span returns the Span of a pod in [from, to]; false with fewer than two samples.
func (m *Metrics) Span(name string, from, to time.Time) (s Span, ok bool) {
	p := m.pods[name]
	if p == nil {
		return s, false
	}
	for i, l := range p.lives {
		for j, one := range l.samples {
			if one.At.Before(from) || one.At.After(to) {
				continue
			}
			switch {
			case s.First.IsZero():
				s.First = one.At
			case j > 0:
				s.CPUSeconds += one.Value - l.samples[j-1].Value
			case i > 0:
				s.CPUSeconds += one.Value // since the restart
			}
			s.Last = one.At
		}
	}
	for _, one := range p.memory {
		if !one.At.Before(s.First) && !one.At.After(s.Last) {
			s.Memory = append(s.Memory, one)
		}
	}
	return s, s.Last.After(s.First)
}
