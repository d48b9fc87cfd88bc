package measure

import (
	"fmt"
	"sort"
	"sync"
	"time"

	"scaler.mesh/scaler/pkg/record"
)

// track follows one component.
type track struct {
	lives []life
	live  Source // of the last life; nil when it has ended

	turn sync.Mutex // held while a remote source is read; taken before Sampler.mu
}

// took adds a reading of a life. The caller holds mu.
func (s *Sampler) took(name string, t *track, index int, r Reading) {
	l := &t.lives[index]
	l.readings = append(l.readings, r)
	if s.store == nil {
		return
	}
	sample := record.ComponentRead{
		Name: name, Life: index, At: s.since(r.At), CPUSeconds: r.CPU.Seconds(), Waited: r.Waited.Seconds(), Late: r.Late.Seconds(),
		MemoryBytes: r.Resident, MemoryPeak: r.Peak, WorkingSet: r.WorkingSet, Threads: r.Threads, OpenFiles: r.Files,
	}
	if r.Waited < 0 {
		sample.Waited, sample.Late = -1, -1
	}
	if l.dropped == 0 && len(l.readings) == 1 {
		started := s.since(l.started)
		sample.Started = &started
	}
	s.pending = append(s.pending, sample)
}

// since converts a moment to the time of samples.
func (s *Sampler) since(at time.Time) float64 { return at.Sub(s.base).Seconds() }

// flush writes the readings that the store does not have yet, and forgets old ones that
// it has. What it cannot write stays in memory. The caller holds mu.
func (s *Sampler) flush(at time.Time, edge bool) error {
	if s.store == nil || len(s.pending) == 0 && !edge {
		return nil
	}
	err := s.store.Append(record.Sample{Time: at.UTC(), At: s.since(at), Edge: edge, Components: s.pending})
	if err != nil {
		return err
	}
	s.pending = nil
	for _, t := range s.tracks {
		for i := range t.lives {
			t.lives[i].forget()
		}
	}
	return nil
}

// forget drops all readings but the latest.
func (l *life) forget() {
	const most = 2 * resident // so that not every reading moves all others
	if n := len(l.readings) - resident; len(l.readings) > most {
		l.readings = append(make([]Reading, 0, most+1), l.readings[n:]...)
		l.dropped += n
	}
}

// lives returns the lives of a component with all their readings. The caller holds mu.
func (s *Sampler) lives(name string) ([]life, error) {
	t := s.tracks[name]
	if t == nil {
		return nil, nil
	}
	if !s.known(name, t.lives) {
		history, err := readHistory(s.store.Each, s.interval, s.base, 0)
		if err != nil {
			return nil, fmt.Errorf("reading the samples of %s: %w", name, err)
		}
		s.history = history
		if !s.known(name, t.lives) {
			return nil, fmt.Errorf("reading the samples of %s: some are missing", name)
		}
	}
	lives := make([]life, len(t.lives))
	for i, l := range t.lives {
		if l.dropped > 0 {
			l.readings = append(append([]Reading(nil), s.history.lives[name][i].readings[:l.dropped]...), l.readings...)
		}
		lives[i] = l
	}
	return lives, nil
}

// known reports whether history has all that lives have dropped.
func (s *Sampler) known(name string, lives []life) bool {
	for i, l := range lives {
		if l.dropped == 0 {
			continue
		}
		if s.history == nil || len(s.history.lives[name]) <= i || len(s.history.lives[name][i].readings) < l.dropped {
			return false
		}
	}
	return true
}

// end closes the last life, unless it is closed. The caller holds mu.
func (s *Sampler) end(name string, t *track, at time.Time) {
	if t.live == nil {
		return
	}
	t.live = nil
	index := len(t.lives) - 1
	t.lives[index].ended = at
	if s.store != nil {
		s.pending = append(s.pending, record.ComponentRead{Name: name, Life: index, At: s.since(at), Ended: true})
	}
}

// settle replaces what the last reading of an ended life says of processor
// time by the whole that was accounted to it. The caller holds mu.
func (s *Sampler) settle(name string, t *track, index int, cpu time.Duration) {
	l := &t.lives[index]
	last := l.last()
	last.At = l.ended
	last.CPU = max(last.CPU, cpu)
	s.took(name, t, index, last)
}

// recent returns the lives without readings that figures after from do not need.
func recent(lives []life, from time.Time) []life {
	last := len(lives) - 1
	if lives[last].started.After(from) {
		return lives // seldom: the last two lives are needed
	}
	l := lives[last]
	// From the last reading before.
	if n := sort.Search(len(l.readings), func(i int) bool { return !l.readings[i].At.Before(from) }); n > 0 {
		l.readings = l.readings[n-1:]
	}
	return []life{l}
}
