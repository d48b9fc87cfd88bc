// Package journal keeps the record of a run while it is made, so that it can be saved at any moment.
package journal

import (
	"fmt"
	"sync"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/pkg/record"
)

// Journal keeps the record of a run while it is made: the run's document, and the folder
// that it is written to. Its methods are safe for concurrent use.
type Journal struct {
	writer *record.Writer
	fail   func(error)

	mu  sync.Mutex
	run record.Run
}

// New returns the journal of a run, of which run is known at its start. fail
// ends the run: it is called when an event cannot be written.
func New(run record.Run, writer *record.Writer, fail func(error)) *Journal {
	return &Journal{writer: writer, fail: fail, run: run}
}

// Writer returns the folder of the record.
func (j *Journal) Writer() *record.Writer { return j.writer }

// Update changes the document. change must not keep it, or call the journal.
func (j *Journal) Update(change func(*record.Run)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(&j.run)
}

// Run returns the document as it is now. What its pointers, slices and maps lead to is
// shared with the journal.
func (j *Journal) Run() record.Run {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.run
}

// Warn adds a warning about figures.
func (j *Journal) Warn(w record.Warning) {
	j.Update(func(r *record.Run) { r.Warnings = append(r.Warnings, record.NewWarning(w)) })
}

// Event records what happened. Where it cannot be written, as on a disk that is full,
// the run ends.
func (j *Journal) Event(e record.Event) {
	if err := j.writer.Event(e); err != nil {
		j.fail(err)
	}
}

// SaveLatency writes one distribution and returns its summary; nil means that there is nothing in it.
func (j *Journal) SaveLatency(name string, h *stats.Histogram) (*record.Latency, error) {
	summary := h.Summary()
	if summary.Count+summary.Lost == 0 {
		return nil, nil
	}
	if err := j.writer.Histogram(name, h); err != nil {
		return nil, fmt.Errorf("writing the distribution of %s: %w", name, err)
	}
	latency := record.Latency(summary).Known()
	return &latency, nil
}

// Save writes the document as it is now, with figures of the machine that is stood
// for where time is slowed down.
func (j *Journal) Save() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	run, err := j.run.Undilated()
	if err != nil {
		return err
	}
	return j.writer.Save(run)
}
