package measure

import (
	"sync"
	"time"

	"scaler.mesh/scaler/internal/timeseries"
)

// limits are the processors of this machine that a component could use, as they changed. nil = it could use all. Methods may be called by
// several goroutines.
type limits struct {
	mu    sync.Mutex
	steps []limitFrom // in the order of time
}

// limitFrom is a limit from a moment on.
type limitFrom struct {
	at         time.Time
	processors float64 // 0 = all
}

func (l *limits) change(at time.Time, processors float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steps = append(l.steps, limitFrom{at, processors})
}

// mean returns the mean limit in [from, to), 0 where there is none at its beginning.
func (l *limits) mean(from, to time.Time) float64 {
	if l == nil || !to.After(from) {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var sum float64
	for i, step := range l.steps {
		if i == 0 && step.at.After(from) || step.processors == 0 {
			return 0
		}
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
