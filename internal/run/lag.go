package run

import (
	"sync"
	"time"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/pkg/record"
)

// lags holds the scheduling lag of scaler itself in the phases that latencies are measured in: other phases
// would only dilute it.
type lags struct {
	rollout *stats.Histogram
	probe   *stats.Histogram // while changes were followed, one at a time
	change  *stats.Histogram // while they were made at a rate

	mu        sync.Mutex
	processes map[string]*stats.Histogram // in the rollout, by the worker's name
}

func newLags() *lags {
	return &lags{rollout: stats.NewHistogram(), probe: stats.NewHistogram(), change: stats.NewHistogram(), processes: map[string]*stats.Histogram{}}
}

// of returns the scheduling lag of a worker in the rollout.
func (l *lags) of(name string) *stats.Histogram {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.processes[name] == nil {
		l.processes[name] = stats.NewHistogram()
	}
	return l.processes[name]
}

// in returns the histograms that a delay of a worker in a phase is recorded in.
func (l *lags) in(phase record.PhaseName, name string) []*stats.Histogram {
	switch phase {
	case record.PhaseRollout:
		return []*stats.Histogram{l.rollout, l.of(name)}
	case record.PhaseProbe:
		return []*stats.Histogram{l.probe}
	case record.PhaseChange:
		return []*stats.Histogram{l.change}
	}
	return nil
}

// record takes one delay of a worker.
func (l *lags) record(phase record.PhaseName, name string, d time.Duration) {
	for _, h := range l.in(phase, name) {
		h.Record(d)
	}
}

// merge takes delays of a worker.
func (l *lags) merge(phase record.PhaseName, name string, late *stats.Histogram) {
	for _, h := range l.in(phase, name) {
		h.Merge(late)
	}
}
