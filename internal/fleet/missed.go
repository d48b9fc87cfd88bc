package fleet

import (
	"time"

	"scaler.mesh/scaler/internal/worker"
)

// Missed takes that a worker was lost with all its sidecars, which begin their lives again in another
// one. What they had not reported counts as lost: what comes of a pod's start, changes that are
// followed, and those of endpoints. What comes again is in no figure. It returns how many there are.
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
		f.Pods.lost(p, at)
		p.revision.tracker.Miss(p.id)
	}
	return n
}
