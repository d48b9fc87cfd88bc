package fleet

import (
	"time"

	"scaler.mesh/scaler/internal/sidecar"
	"scaler.mesh/scaler/pkg/convergence"
)

// reading is what an Envoy was once read to hold.
type reading struct {
	sidecar.Configuration
	heard   time.Time // when it was last seen to receive something
	at      time.Time // since when it holds what it does, as near as is known
	crashes int       // of its sidecar before it was read
}

// take reports what an Envoy holds, which it has acknowledged, to the tracker; nothing
// of one that has crashed since.
func (f *realSidecars) take(p *pod, real *realPod, r reading) {
	real.reporting.Lock()
	defer real.reporting.Unlock()
	if real.crashes != r.crashes {
		return
	}
	var firstTime, certified bool
	var started time.Time
	f.fleet.Pods.update(p.id, func(p *pod) {
		started = p.times.Dialed
		first(&p.times.Connected, r.heard)
		firstTime = !r.First.IsZero() && first(&p.times.Answered, r.First)
		certificate := r.Certificate
		if f.Certified {
			certificate = started
		}
		certified = !certificate.IsZero() && first(&p.times.Certified, certificate)
		p.connection.whole, p.connection.heard = true, r.heard
	})
	f.report(real, r.Configuration, r.at)
	if firstTime {
		real.starts.FirstConfiguration.Record(r.First.Sub(started))
	}
	if certified {
		if !f.Certified {
			real.starts.Certificate.Record(r.Certificate.Sub(started))
		}
		f.tracker.Certified(p.id, r.at)
		f.fleet.Readiness.check(p.id)
	}
	f.fleet.notify()
}

// crashed reports that a sidecar ended: its Envoy holds nothing any more.
func (f *realSidecars) crashed(p *realPod, at time.Time) {
	p.reporting.Lock()
	defer p.reporting.Unlock()
	p.crashes++
	f.report(p, sidecar.Configuration{}, at)
}

// report reports to the tracker that an Envoy holds this, and nothing else any more. The
// caller holds p.reporting.
func (f *realSidecars) report(p *realPod, c sidecar.Configuration, at time.Time) {
	update := convergence.Update{ReceivedAt: at, AckedAt: at, Set: c.Held}
	held := p.keys()
	p.mu.Lock()
	p.held = c
	p.mu.Unlock()
	now := p.keys()
	for key := range held {
		if !now[key] {
			update.Removed = append(update.Removed, key)
		}
	}
	f.tracker.Update(p.id, update)
}

// crashedSoFar is how often a sidecar has crashed.
func (p *realPod) crashedSoFar() int {
	p.reporting.Lock()
	defer p.reporting.Unlock()
	return p.crashes
}

// keys are what the Envoy held when it was last read.
func (p *realPod) keys() map[convergence.Key]bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	keys := map[convergence.Key]bool{}
	for _, r := range p.held.Held {
		keys[r.Key] = true
	}
	return keys
}
