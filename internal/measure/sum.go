package measure

import (
	"errors"
	"slices"
	"time"
)

// Sum reads several lives as one, which begins with the first of them and ends when
// that one does: a program and the children that it has work for it. A child that has
// ended keeps its processor time.
func Sum(first Source, others ...Source) Source {
	if len(others) == 0 {
		return first
	}
	return &sum{first, others, make([]Reading, len(others))}
}

type sum struct {
	first  Source
	others []Source
	last   []Reading // of the others
}

// ID implements Source.
func (s *sum) ID() string { return s.first.ID() }

// Started implements Source.
func (s *sum) Started() (time.Time, error) { return s.first.Started() }

// ExitCPU implements Source. It is not known for the whole.
func (s *sum) ExitCPU() (time.Duration, bool) { return 0, false }

// Remote implements Remote.
func (s *sum) Remote() bool {
	return isRemote(s.first) || slices.ContainsFunc(s.others, isRemote)
}

// slowDown implements slowable.
func (s *sum) slowDown(k float64) {
	for _, one := range append([]Source{s.first}, s.others...) {
		if one, ok := one.(slowable); ok {
			one.slowDown(k)
		}
	}
}

// Read implements Source. The readings are made one after another: of processes of this machine within
// well under a millisecond. Peak is what is resident now: when the parts were at their high-water
// marks, together or not, is not known.
func (s *sum) Read() (Reading, error) {
	total, err := s.first.Read()
	if err != nil {
		return Reading{}, err
	}
	for i, o := range s.others {
		r, err := o.Read()
		switch {
		case errors.Is(err, ErrEnded):
			r = Reading{CPU: s.last[i].CPU, Waited: s.last[i].Waited, Late: s.last[i].Late}
		case err != nil:
			return Reading{}, err
		}
		s.last[i] = r
		total.CPU += r.CPU
		total.Resident += r.Resident
		total.Threads += r.Threads
		total.Files += r.Files
		if total.Waited >= 0 && r.Waited >= 0 {
			total.Waited += r.Waited
			total.Late += r.Late
		} else {
			total.Waited, total.Late = -1, -1
		}
	}
	total.Peak = total.Resident
	return total, nil
}
