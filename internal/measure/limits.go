package measure

import (
	"sync"
	"time"

	"scaler.mesh/scaler/internal/timeseries"
)

// ProcessorLimits are the processors of this machine that a component could use, as they changed. nil = it could use all. Methods may be called by
// several goroutines.
type ProcessorLimits struct {
	whole float64 // processors of this machine
	mu    sync.Mutex
	steps []limitFrom // in the order of time
}

// limitFrom is a limit from a moment on.
type limitFrom struct {
	at         time.Time
	processors float64
}

// NewProcessorLimits makes the limits of a component of a machine with so many processors.
func NewProcessorLimits(whole float64) *ProcessorLimits { return &ProcessorLimits{whole: whole} }

// Change states the limit from now on.
func (l *ProcessorLimits) Change(processors float64) { l.change(time.Now(), processors) }

func (l *ProcessorLimits) change(at time.Time, processors float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steps = append(l.steps, limitFrom{at, processors})
}

// Mean returns the mean limit in [from, to); 0 where there is none at from.
func (l *ProcessorLimits) Mean(from, to time.Time) float64 {
	if l == nil || !to.After(from) {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.steps) == 0 || l.steps[0].at.After(from) {
		return 0
	}
	var sum float64
	for i, step := range l.steps {
		end := to
		if i+1 < len(l.steps) {
			end = timeseries.Earlier(to, l.steps[i+1].at)
		}
		if length := end.Sub(timeseries.Later(from, step.at)); length > 0 {
			sum += step.processors * length.Seconds()
		}
	}
	return sum / to.Sub(from).Seconds()
}

// binding returns the mean limit in [from, to) where it is less than the machine has: else what waits, waits for the machine. 0 = it is not.
func (l *ProcessorLimits) binding(from, to time.Time) float64 {
	if mean := l.Mean(from, to); mean > 0 && mean < 0.999*l.whole { // a mean of several is not exact
		return mean
	}
	return 0
}
