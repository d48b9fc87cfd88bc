package measure

import (
	"errors"
	"fmt"
	"sort"
	"time"

	"scaler.mesh/scaler/internal/timeseries"
	"scaler.mesh/scaler/pkg/record"
)

// SaturationNoise is the share of an interval below which waiting is taken for
// the scheduler's ordinary work: each wake-up waits some microseconds even on
// an idle machine, and a thousand or two of them a second are no saturation.
const SaturationNoise = 0.02

// peakWindow is the least length over which peak cores are a mean.
const peakWindow = time.Second

// Usage holds the figures of a component over a window of time.
type Usage struct {
	// CPUSeconds is processor time, user and system, of all threads, those that
	// ended included, and of processes that died in the window.
	CPUSeconds float64
	// CoresMean is CPUSeconds over the window's length.
	CoresMean float64
	// CoresPeak is the greatest mean over any 1 s, or any interval between two readings
	// where that is longer, in the window, processor time
	// taken as even between two readings, and at least CoresMean.
	CoresPeak float64
	// CoresPeakBrief is the greatest mean over an interval of [BriefInterval], or as much
	// longer as time is slowed down or scaler ran late, from one edge to another. The
	// intervals follow each other, so that one that lies across two of them may exceed it.
	// Nil where the component is not read so often: see [Sampler.WatchBriefly].
	CoresPeakBrief *float64
	// MemoryMean is resident memory in bytes, weighted by time, over the time
	// in which the component ran.
	MemoryMean float64
	// Ran is the part of the window in which the component ran, in seconds.
	Ran float64
	// MemoryPeak is the greatest resident memory in bytes: of the readings, and
	// of the kernel's high-water mark wherever it rose between two of them.
	MemoryPeak float64
	// MemoryEnd is resident memory in bytes at the window's end, 0 where the
	// component was not running then.
	MemoryEnd float64
	// WorkingSet is the memory of its control group; nil where a reading of the window
	// has none.
	WorkingSet *WorkingSet
	// Saturation is an upper bound of the share of the window in which the
	// component had a thread ready to run that waited for a processor. Of each
	// interval between two readings it takes min(1, waited/length), where
	// waited sums the kernel's run delays over threads (nothing when that is
	// below [SaturationNoise]), and weights it by length. It is a bound
	// because threads that wait at the same moment are added. A delay counts
	// where it ends, so a long one may appear an interval late. It does not
	// see goroutines that wait inside a process for one of too few GOMAXPROCS.
	// Where time is slowed down by k, what a thread waits up to k-1 times its own processor
	// time of the interval is no delay, and is left out: see [Sampler.SlowDown].
	// Nil where the kernel keeps no run delays.
	Saturation *float64
	// Waited is the kernel's run delays, in seconds, over all threads: all of them,
	// however short, whether they are delays where time is slowed down or not. Nil where it keeps none.
	Waited *float64
	// Restarts counts the times a process took the place of an earlier one.
	Restarts int
	// ThreadsPeak and OpenFilesPeak are the greatest counts read.
	ThreadsPeak, OpenFilesPeak int
	// Heap is the live heap of a Go program that exposes it, else nil. See
	// [Recorder.Heap]; the Sampler leaves it nil.
	Heap *Heap
}

// WorkingSet is memory as a control group counts it, in bytes: what the kernel charges
// to the component, sockets included, without file pages that were not used lately.
type WorkingSet struct {
	Mean float64 // weighted by time, over the time in which the component ran
	Peak float64 // the greatest of the readings, and of both ends of the window
	End  float64 // at the window's end, 0 where the component was not running then
}

// ErrNotWatched reports that a component has had no process that was watched.
var ErrNotWatched = errors.New("no process was watched")

// life holds the readings of a process of a component. It has at least one reading; they are in the order of time,
// and all after started.
type life struct {
	id       string // of its source
	started  time.Time
	readings []Reading
	dropped  int              // readings before these, which only the store has
	ended    time.Time        // zero while it runs
	limits   *ProcessorLimits // of the processors of this machine that it may use; nil = none
}

func (l *life) last() Reading { return l.readings[len(l.readings)-1] }

// end returns the time until which the life's counters are known.
func (l *life) end() time.Time {
	if !l.ended.IsZero() {
		return l.ended
	}
	return l.last().At
}

// points returns the readings with one before them for the process's start, when
// all counters were zero, and one after them for its end, when they stood
// still.
func (l *life) points() []Reading {
	points := make([]Reading, 0, len(l.readings)+2)
	first := l.readings[0]
	points = append(points, Reading{At: l.started, Resident: first.Resident, WorkingSet: first.WorkingSet, Waited: min(0, first.Waited), Late: min(0, first.Late)})
	points = append(points, l.readings...)
	if last := l.last(); l.end().After(last.At) {
		last.At = l.end()
		points = append(points, last)
	}
	return points
}

// usage computes the figures of [from, to) from the processes that were one
// component after another. Between two readings counters grow evenly and
// memory changes evenly. The peak of cores is over a length, and time may be slowed down.
func usage(lives []life, from, to time.Time, peak time.Duration, slowed bool) (Usage, error) {
	if err := covered(lives, from, to); err != nil {
		return Usage{}, err
	}
	length := to.Sub(from).Seconds()
	var u Usage
	var memory, alive, waiting, waited float64
	var working WorkingSet
	counted := true
	var edges []time.Time // where the slope of the processor time may change
	series := make([][]Reading, len(lives))
	delays := true
	for i := range lives {
		points := lives[i].points()
		series[i] = points
		if i > 0 && !lives[i].started.Before(from) && lives[i].started.Before(to) {
			u.Restarts++
		}
		for j, p := range points {
			edges = append(edges, p.At)
			delays = delays && p.Waited >= 0 && (!slowed || p.Late >= 0)
			if !p.At.Before(from) && !p.At.After(to) {
				u.see(p)
			}
			if j == 0 {
				continue
			}
			start, end := timeseries.Later(from, points[j-1].At), timeseries.Earlier(to, p.At)
			if overlap := end.Sub(start).Seconds(); overlap > 0 {
				s := stretch{points[j-1], p}
				memory += overlap * (s.memory(start, residentOf) + s.memory(end, residentOf)) / 2
				alive += overlap
				counted = counted && s.b.WorkingSet > 0
				working.Mean += overlap * (s.memory(start, workingSetOf) + s.memory(end, workingSetOf)) / 2
				working.Peak = max(working.Peak, s.memory(start, workingSetOf), s.memory(end, workingSetOf))
				waiting += overlap * s.saturation(slowed, lives[i].limits.binding(points[j-1].At, p.At))
				waited += overlap * s.waiting()
				u.MemoryPeak = max(u.MemoryPeak, s.memory(start, residentOf), s.memory(end, residentOf), s.highWater(from, to))
			}
		}
		u.CPUSeconds += cpuAt(points, to) - cpuAt(points, from)
		if l := lives[i]; !to.Before(points[0].At) && (l.ended.IsZero() || to.Before(l.ended)) {
			u.MemoryEnd = memoryAt(points, to, residentOf)
			working.End = memoryAt(points, to, workingSetOf)
		}
	}
	u.CoresMean, u.Ran = u.CPUSeconds/length, alive
	u.CoresPeak = max(u.CoresMean, peakCores(series, edges, from, to, peak))
	if alive > 0 {
		u.MemoryMean = memory / alive
		if counted {
			working.Mean /= alive
			u.WorkingSet = &working
		}
	}
	if delays {
		u.Saturation, u.Waited = new(min(1, waiting/length)), new(waited)
	}
	return u, nil
}

// covered reports whether the readings reach over the whole window.
func covered(lives []life, from, to time.Time) error {
	if !from.Before(to) {
		return fmt.Errorf("window ends at %s, not after its start %s", clock(to), clock(from))
	}
	if len(lives) == 0 {
		return ErrNotWatched
	}
	first, last := lives[0], lives[len(lives)-1]
	if at := first.readings[0].At; first.started.Before(from) && at.After(from) {
		return fmt.Errorf("window starts at %s, and watching only at %s", clock(from), clock(at))
	}
	if last.ended.IsZero() && last.last().At.Before(to) {
		return fmt.Errorf("window ends at %s, and the last reading is of %s: an edge is missing", clock(to), clock(last.last().At))
	}
	return nil
}

func clock(t time.Time) string { return t.Format("15:04:05.000") }

// see adds the values that cannot be interpolated between readings.
func (u *Usage) see(p Reading) {
	u.ThreadsPeak = max(u.ThreadsPeak, p.Threads)
	u.OpenFilesPeak = max(u.OpenFilesPeak, p.Files)
}

// stretch is the time between two readings that follow each other.
type stretch struct{ a, b Reading }

// part returns the position of t in the stretch, from 0 to 1.
func (s stretch) part(t time.Time) float64 {
	return t.Sub(s.a.At).Seconds() / s.b.At.Sub(s.a.At).Seconds()
}

func (s stretch) cpu(t time.Time) float64 {
	return s.a.CPU.Seconds() + (s.b.CPU-s.a.CPU).Seconds()*s.part(t)
}

// memory returns one of the two amounts of memory at t.
func (s stretch) memory(t time.Time, of func(Reading) int64) float64 {
	return float64(of(s.a)) + float64(of(s.b)-of(s.a))*s.part(t)
}

// residentOf and workingSetOf are the two amounts of memory of a reading; a working set that is not known is 0.
func residentOf(r Reading) int64   { return r.Resident }
func workingSetOf(r Reading) int64 { return r.WorkingSet }

// highWater returns the kernel's mark if it rose inside the window, else 0: an
// older mark may be of a time before it.
func (s stretch) highWater(from, to time.Time) float64 {
	if s.b.Peak > s.a.Peak && !s.a.At.Before(from) && !s.b.At.After(to) {
		return float64(s.b.Peak)
	}
	return 0
}

// waiting returns the mean number of threads that waited.
func (s stretch) waiting() float64 {
	return (s.b.Waited - s.a.Waited).Seconds() / s.b.At.Sub(s.a.At).Seconds()
}

// saturation returns an upper bound of the share of the stretch in which a thread waited; where time is
// slowed down, without waits that are no delay. A program that uses all of its limit waits for itself: it would on any machine.
func (s stretch) saturation(slowed bool, limit float64) float64 {
	if limit > 0 && (s.b.CPU-s.a.CPU).Seconds() >= record.Limited*limit*s.b.At.Sub(s.a.At).Seconds() {
		return 0
	}
	share := s.waiting()
	if slowed {
		share = (s.b.Late - s.a.Late).Seconds() / s.b.At.Sub(s.a.At).Seconds()
	}
	if share < SaturationNoise {
		return 0
	}
	return min(1, share)
}

// around returns the stretch that holds t, which lies strictly between the first
// and the last of points.
func around(points []Reading, t time.Time) stretch {
	i := sort.Search(len(points), func(i int) bool { return points[i].At.After(t) })
	return stretch{points[i-1], points[i]}
}

// cpuAt returns the processor time used until t, in seconds.
func cpuAt(points []Reading, t time.Time) float64 {
	last := points[len(points)-1]
	switch {
	case !t.After(points[0].At):
		return 0
	case !t.Before(last.At):
		return last.CPU.Seconds()
	}
	return around(points, t).cpu(t)
}

// memoryAt returns one of the two amounts of memory held at t, in bytes; t is not before the first of
// points.
func memoryAt(points []Reading, t time.Time, of func(Reading) int64) float64 {
	last := points[len(points)-1]
	if !t.Before(last.At) {
		return float64(of(last))
	}
	return around(points, t).memory(t, of)
}

// peakCores returns the greatest mean over any window of a length inside [from, to). The
// processor time is made of straight lines between edges, so a window that has
// the greatest mean starts or ends at an edge.
func peakCores(series [][]Reading, edges []time.Time, from, to time.Time, window time.Duration) float64 {
	window = min(window, to.Sub(from))
	used := func(t time.Time) (seconds float64) {
		for _, points := range series {
			seconds += cpuAt(points, t)
		}
		return seconds
	}
	var peak float64
	try := func(start time.Time) {
		if end := start.Add(window); !start.Before(from) && !end.After(to) {
			peak = max(peak, (used(end)-used(start))/window.Seconds())
		}
	}
	try(from)
	try(to.Add(-window))
	for _, edge := range edges {
		try(edge)
		try(edge.Add(-window))
	}
	return peak
}
