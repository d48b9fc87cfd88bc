package rollout

import (
	"time"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/sidecar"
)

// reading is what an Envoy was once read to hold.
type reading struct {
	sidecar.Configuration
	heard   time.Time // when it was last seen to receive something
	at      time.Time // since when it holds what it does, as near as is known
	crashes int       // of its sidecar before it was read
}

// takeReal tells what an Envoy holds, which it has acknowledged, to those who
// compare; nothing of one that has crashed since.
func (f *fleet) takeReal(p *pod, real *realPod, r reading) {
	real.telling.Lock()
	defer real.telling.Unlock()
	if real.crashes != r.crashes {
		return
	}
	var firstTime, certified bool
	var started time.Time
	f.at(p.id, func(p *pod) {
		started = p.times.Dialed
		first(&p.times.Connected, r.heard)
		firstTime = !r.First.IsZero() && first(&p.times.Answered, r.First)
		certificate := r.Certificate
		if f.real.certified {
			certificate = started
		}
		certified = !certificate.IsZero() && first(&p.times.Certified, certificate)
		p.line.whole, p.line.heard = true, r.heard
	})
	f.real.tell(real, r.Configuration, r.at)
	if firstTime {
		real.starts.firstConfiguration.Record(max(0, r.First.Sub(started)))
	}
	if certified {
		if !f.real.certified {
			real.starts.certificate.Record(max(0, r.Certificate.Sub(started)))
		}
		f.real.tracker.Certified(p.id, r.at)
		f.reportWhenDone(p.id)
	}
	f.notify()
}

// crashed tells that a sidecar ended, and its Envoy holds nothing with it.
func (f *realFleet) crashed(p *realPod, at time.Time) {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.crashes++
	f.tell(p, sidecar.Configuration{}, at)
}

// tell tells the tracker that an Envoy holds this, and nothing else any more. The
// caller holds p.telling.
func (f *realFleet) tell(p *realPod, c sidecar.Configuration, at time.Time) {
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
	p.telling.Lock()
	defer p.telling.Unlock()
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
