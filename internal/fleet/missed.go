package fleet

import (
	"time"

	"scaler.mesh/scaler/internal/worker"
)

// Missed records that a worker was lost with all its sidecars, which start again in another
// one, and returns their number. What they had not reported counts as lost: the steps of a pod's start,
// changes that are followed, and changes of endpoints. Their second start is in no figure.
func (f *Fleet) Missed(w worker.Worker, at time.Time) int {
	f.Pods.mu.Lock()
	defer f.Pods.mu.Unlock()
	unseen := NewLatencies()
	n := 0
	for _, p := range f.Pods.simulated {
		if p.gone || p.worker != w {
			continue
		}
		n++
		p.missed, p.connection.missed, p.latencies = true, true, unseen
		f.Pods.loseStream(p, at)
		p.revision.tracker.Miss(p.id)
	}
	return n
}
