package kubelet

import (
	"fmt"
	"time"

	"scaler.mesh/scaler/internal/timeseries"
)

// Usage holds the figures of a container over a window of time.
type Usage struct {
	// CPUSeconds is processor time. Between two readings it is taken as even. What it was in truth lies from
	// CPUSecondsLow, which is between the readings that lie inside the window, to CPUSecondsHigh, which is between
	// those that enclose it.
	CPUSeconds, CPUSecondsLow, CPUSecondsHigh float64
	Resident, WorkingSet                      Memory
	MemoryKnown                               bool // there are readings of memory in the window, or around it; else both are zero
	Readings                                  int  // that lie inside the window
	Restarts                                  int  // starts inside the window that follow an earlier life
}

// Memory holds amounts in bytes.
type Memory struct {
	Mean float64 // weighted by time, changing evenly between two readings, over the time in which there are readings
	Peak float64 // the greatest of the readings inside the window, and of both ends
	End  float64 // at the window's end; 0 where the container had ended
}

// Figures returns the usage of a container in [from, to). The error says which readings are missing: the window must
// begin after the first, or before the start of the container, and end before the last, or after the container's end.
func (w *Watcher) Figures(c Container, from, to time.Time) (Usage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	u, err := figures(w.containers[c], from, to)
	if err != nil && w.failed[c.Node] != nil {
		err = fmt.Errorf("%w; the last request failed: %w", err, w.failed[c.Node])
	}
	if err != nil {
		return Usage{}, fmt.Errorf("computing the usage of container %s: %w", c, err)
	}
	return u, nil
}

// newborn is the longest time from the start of a container to the first reading of cAdvisor: one minute until cAdvisor finds a container
// whose start it missed, and 20 s until it reads it. From the start to that reading the processor time is taken as even.
const newborn = 80 * time.Second

// figures computes the figures of a container's lives.
func figures(lives []*life, from, to time.Time) (u Usage, err error) {
	if len(lives) == 0 {
		return u, fmt.Errorf("cAdvisor has not shown it")
	}
	first := lives[0]
	if at := first.readings[0].At; first.started.Before(from) && at.After(from) && at.Sub(first.started) > newborn {
		return u, fmt.Errorf("its first reading is of %s, after the window's start %s", clock(at), clock(from))
	}
	if last := lives[len(lives)-1]; !last.ended && last.last().At.Before(to) {
		return u, fmt.Errorf("its last reading is of %s, before the window's end %s", clock(last.last().At), clock(to))
	}
	var weighed float64
	for i, l := range lives {
		if i > 0 && !l.started.Before(from) && l.started.Before(to) {
			u.Restarts++
		}
		cpu := []timeseries.Sample{{At: l.started}}
		for _, r := range l.readings {
			cpu = append(cpu, timeseries.Sample{At: r.At, Value: r.CPUSeconds})
		}
		u.CPUSeconds += timeseries.At(cpu, to) - timeseries.At(cpu, from)
		low, high := timeseries.Bounds(cpu, from, to)
		u.CPUSecondsLow, u.CPUSecondsHigh = u.CPUSecondsLow+low, u.CPUSecondsHigh+high
		for _, r := range l.readings {
			if !r.At.Before(from) && r.At.Before(to) {
				u.Readings++
			}
		}
		weighed += u.takeMemory(l, from, to)
	}
	if u.MemoryKnown = weighed > 0; u.MemoryKnown {
		u.Resident.Mean /= weighed
		u.WorkingSet.Mean /= weighed
	}
	return u, nil
}

// takeMemory adds the memory of a life, the means weighted by the seconds that it returns.
func (u *Usage) takeMemory(l *life, from, to time.Time) (seconds float64) {
	take := func(m *Memory, of func(Reading) float64) {
		seconds = 0
		for i, b := range l.readings {
			a := l.readings[max(0, i-1)]
			begin, end := timeseries.Later(a.At, from), timeseries.Earlier(b.At, to)
			if !b.At.Before(from) && !b.At.After(to) {
				m.Peak = max(m.Peak, of(b))
			}
			if !end.After(begin) {
				continue
			}
			at := func(t time.Time) float64 {
				return of(a) + (of(b)-of(a))*t.Sub(a.At).Seconds()/b.At.Sub(a.At).Seconds()
			}
			m.Peak = max(m.Peak, at(begin), at(end))
			m.Mean += (at(begin) + at(end)) / 2 * end.Sub(begin).Seconds()
			seconds += end.Sub(begin).Seconds()
			if end.Equal(to) {
				m.End = at(end)
			}
		}
	}
	take(&u.Resident, func(r Reading) float64 { return float64(r.Resident) })
	take(&u.WorkingSet, func(r Reading) float64 { return float64(r.WorkingSet) })
	return seconds
}

// Add adds what another container used in the same window. A sum of peaks, which need not come together, is a bound. The
// memory of a sum is known where that of each is.
func (u *Usage) Add(other Usage) {
	u.CPUSeconds += other.CPUSeconds
	u.CPUSecondsLow += other.CPUSecondsLow
	u.CPUSecondsHigh += other.CPUSecondsHigh
	u.MemoryKnown = u.MemoryKnown && other.MemoryKnown
	u.Resident.add(other.Resident)
	u.WorkingSet.add(other.WorkingSet)
	u.Readings += other.Readings
	u.Restarts += other.Restarts
}

func (m *Memory) add(other Memory) {
	m.Mean += other.Mean
	m.Peak += other.Peak
	m.End += other.End
}

func clock(t time.Time) string { return t.Format("15:04:05.000") }
