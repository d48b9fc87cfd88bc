package measure

import (
	"fmt"
	"math"
	"time"

	"scaler.mesh/scaler/internal/timeseries"
	"scaler.mesh/scaler/pkg/record"
)

// maxSeconds bounds times of samples, which may come from elsewhere: 30 years.
const maxSeconds = 1e9

// maxReadings bounds the readings of a record, which may come from elsewhere: those of
// eight programs in five days. Those of the present run are not bounded.
const maxReadings = 4 << 20

// History holds the readings of components from the samples of a run.
type History struct {
	base     time.Time // moment 0 of the samples
	interval time.Duration
	lives    map[string][]life
	edges    map[int64]time.Time // by wall clock (UnixNano): the same on the monotonic clock
	last     time.Time
	count    int // readings
	most     int // of them; 0 = any number
}

// ReadHistory reads the samples of a run; each hands them on in order. interval is the
// time between two readings; 0 means 1 s.
func ReadHistory(each func(take func(record.Sample) error) error, interval time.Duration) (*History, error) {
	return readHistory(each, interval, time.Time{}, maxReadings)
}

// readHistory is ReadHistory with a given moment 0 of the samples (zero = by their wall clock) and a
// bound of the readings (0 = none).
func readHistory(each func(take func(record.Sample) error) error, interval time.Duration, base time.Time, most int) (*History, error) {
	if interval == 0 {
		interval = defaultInterval
	}
	h := &History{base: base, interval: interval, lives: map[string][]life{}, edges: map[int64]time.Time{}, most: most}
	if err := each(h.add); err != nil {
		return nil, err
	}
	return h, nil
}

// add takes the next sample.
func (h *History) add(s record.Sample) error {
	if err := checkSeconds(s.At); err != nil {
		return err
	}
	if h.base.IsZero() {
		h.base = s.Time.Add(-duration(s.At))
	}
	at := h.base.Add(duration(s.At))
	h.last = at
	if s.Edge {
		h.edges[s.Time.UnixNano()] = at
	}
	for _, c := range s.Components {
		if err := h.addRead(c); err != nil {
			return fmt.Errorf("component %q: %w", c.Name, err)
		}
	}
	return nil
}

func (h *History) addRead(c record.ComponentRead) error {
	if h.count++; h.most > 0 && h.count > h.most {
		return fmt.Errorf("more than %d readings", h.most)
	}
	for _, v := range []float64{c.At, c.CPUSeconds, c.Waited, c.Late} {
		if err := checkSeconds(v); err != nil {
			return err
		}
	}
	lives := h.lives[c.Name]
	if c.Started != nil {
		if err := checkSeconds(*c.Started); err != nil {
			return err
		}
		lives = append(lives, life{started: h.base.Add(duration(*c.Started))})
		h.lives[c.Name] = lives
	}
	if c.Life < 0 || c.Life >= len(lives) {
		return fmt.Errorf("life %d of %d: its start is missing", c.Life, len(lives))
	}
	l := &lives[c.Life]
	r := Reading{
		At: h.base.Add(duration(c.At)), CPU: duration(c.CPUSeconds), Waited: duration(c.Waited), Late: duration(c.Late),
		Resident: c.MemoryBytes, Peak: c.MemoryPeak, WorkingSet: c.WorkingSet, Threads: c.Threads, Files: c.OpenFiles,
	}
	if len(l.readings) > 0 && r.At.Before(l.last().At) {
		return fmt.Errorf("a reading of %.3f s after one of a later time", c.At)
	}
	if c.Ended {
		l.ended = r.At
		return nil
	}
	l.readings = append(l.readings, r)
	return nil
}

// Window returns the window of a phase on the clock of the samples: start and end are as
// the record has them. If the phase lasted when the record was written, its end is zero, start is
// shortly before its first edge, and the window ends at
// the last sample. False means that the samples do not have these edges.
func (h *History) Window(start, end time.Time) (from, to time.Time, ok bool) {
	if end.IsZero() {
		from, ok = h.edgeAfter(start)
		return from, h.last, ok && from.Before(h.last)
	}
	from, ok = h.edges[start.UnixNano()]
	to, ended := h.edges[end.UnixNano()]
	return from, to, ok && ended && from.Before(to)
}

// edgeAfter returns the first edge at a moment of the wall clock or after it.
func (h *History) edgeAfter(moment time.Time) (time.Time, bool) {
	var first int64
	found := false
	for wall := range h.edges {
		if wall >= moment.UnixNano() && (!found || wall < first) {
			first, found = wall, true
		}
	}
	return h.edges[first], found
}

// Figures returns the usage of a component in a window on this clock, as a [Sampler] does where
// time is not slowed down.
func (h *History) Figures(name string, from, to time.Time) (Usage, error) {
	var lives []life
	for _, l := range h.lives[name] {
		if len(l.readings) > 0 {
			lives = append(lives, l)
		}
	}
	// A running component was last read shortly before the last sample's moment.
	if n := len(lives); n > 0 && lives[n-1].ended.IsZero() && to.Equal(h.last) {
		to = timeseries.Earlier(to, lives[n-1].last().At)
	}
	u, err := usage(lives, from, to, max(peakWindow, h.interval), false)
	if err != nil {
		return Usage{}, fmt.Errorf("computing the usage of %s: %w", name, err)
	}
	return u, nil
}

func checkSeconds(s float64) error {
	if !(math.Abs(s) <= maxSeconds) {
		return fmt.Errorf("a time of %g s: want %g at most", s, maxSeconds)
	}
	return nil
}

// duration converts seconds of a sample. A float64 has them to the nanosecond for the first
// hundred days.
func duration(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
