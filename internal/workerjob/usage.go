package workerjob

import (
	"context"
	"time"

	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/worker"
)

// Usage reads what the worker of an index uses, from its own metrics: of the pods that had the index
// one after another as of one. Between two of them it uses nothing. A pod that does not answer in time
// counts with what it had last. A source ends with ctx.
func (j *Job) Usage(ctx context.Context, index int) measure.Source {
	return &usage{job: j, index: index, of: func(p Place) measure.Source { return measure.OfMetrics(ctx, p.Pod, p.metrics) }}
}

// replacedTime is the time for which the metrics of an index may be out of reach: until its loss is noticed
// and another pod is connected.
const replacedTime = worker.SilenceTimeout + readyTimeout

type usage struct {
	job   *Job
	index int
	of    func(Place) measure.Source

	place   Place
	source  measure.Source // of the place
	started time.Time      // of the first
	spent   time.Duration  // processor time of pods before this one, as far as it was read
	last    time.Duration  // of this one
	read    time.Time      // when, last

	resident int64 // then
}

// ID is part of measure.Source.
func (u *usage) ID() string { return u.now().ID() }

// now returns the source of the present pod.
func (u *usage) now() measure.Source {
	if p := u.job.Place(u.index); u.source == nil || p != u.place {
		if p.Pod != u.place.Pod { // and not only another connection to it
			u.spent, u.last = u.spent+u.last, 0
		}
		u.place, u.source = p, u.of(p)
	}
	return u.source
}

// Started is part of measure.Source.
func (u *usage) Started() (time.Time, error) {
	if !u.started.IsZero() {
		return u.started, nil
	}
	var err error
	u.started, err = u.now().Started()
	return u.started, err
}

// Read is part of measure.Source.
func (u *usage) Read() (measure.Reading, error) {
	r, err := u.now().Read()
	switch {
	case err == nil:
		u.last, u.read, u.resident = r.CPU, r.At, r.Resident
		r.CPU += u.spent
		return r, nil
	case time.Since(u.read) > replacedTime:
		return measure.Reading{}, err
	}
	reading := measure.Reading{At: time.Now(), CPU: u.spent + u.last, Waited: -1}
	select {
	case <-u.place.forward.Done(): // there is no pod
	default: // it did not answer in time
		reading.Resident, reading.Peak = u.resident, u.resident
	}
	return reading, nil
}

// Remote is part of measure.Remote.
func (u *usage) Remote() bool { return true }

// ExitCPU is part of measure.Source.
func (u *usage) ExitCPU() (time.Duration, bool) { return 0, false }
