package rollout

import "time"

// apart is what goes on beside the run's own figures: the pods that take the
// place of others, and the sidecars that come back, during churn or a fault. The
// first one, of number 0, is before any of these. It is guarded by fleet.mu.
type apart struct {
	number    int
	latencies *latencies
	pods      int // created in place of others
	real      int // of those, the ones with a real sidecar: its start is no figure
	returned  int // sidecars that came back
	renewed   int // pods of an apart before this one must have been replaced for the mesh to have converged
}

func newApart() *apart { return &apart{latencies: newLatencies()} }

// setApart begins another one.
func (f *fleet) setApart(l *latencies) *apart {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apart = &apart{number: f.apart.number + 1, latencies: l, renewed: f.apart.renewed}
	return f.apart
}

// closeApart counts as lost what has not come of what began, and returns what
// came.
func (f *fleet) closeApart(a *apart) (replaced, returned int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	away := 0
	if a == f.apart {
		away = f.away
	}
	a.latencies.reconnect.Lose(int64(away))
	if a.pods > 0 {
		loseIn(a.pods, a.latencies.podReady)
		a.latencies.loseStarts(a.pods - a.real)
	}
	return a.pods, a.returned
}

// later are where a sidecar's second connection, and its way back to one, are
// recorded: in the run's own before anything went on apart. The caller holds mu.
func (f *fleet) later() *latencies {
	if f.apart.number == 0 {
		return f.latencies
	}
	return f.apart.latencies
}

// line is a sidecar's connection to the control plane, over its life. It is
// guarded by fleet.mu.
type line struct {
	streams  int       // opened so far
	answered bool      // it had a response on the one that is open
	whole    bool      // on that one, it had all that it asked for as of its last response
	heard    time.Time // of the control plane, last
	away     bool      // it lost a stream and is not back
	since    time.Time
	after    int // streams when it was lost: only a later one brings it back
	returned int // number of the apart in which it last came back
}

// streams are those that are open and have been answered.
func (f *fleet) streams() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, p := range f.pods {
		if !p.gone && p.line.answered {
			n++
		}
	}
	return n
}

// lost takes that a sidecar has no stream any more that it was served on. The
// caller holds mu.
func (f *fleet) lost(p *pod, at time.Time) {
	p.line.after, p.line.answered, p.line.whole = p.line.streams, false, false
	if p.gone || p.line.away {
		return
	}
	p.line.away, p.line.since = true, at
	f.away++
}

// back takes that a sidecar has all that it asks for on a stream opened since.
// The caller holds mu.
func (f *fleet) back(p *pod, at time.Time) {
	if !p.line.away || p.line.streams <= p.line.after {
		return
	}
	p.line.away = false
	f.away--
	f.later().reconnect.Record(max(0, at.Sub(p.line.since)))
	if p.line.returned != f.apart.number {
		p.line.returned = f.apart.number
		f.apart.returned++
	}
	f.notify()
}

// forgo no longer waits for a sidecar whose pod is gone. The caller holds mu.
func (f *fleet) forgo(p *pod) {
	if p.line.away {
		p.line.away = false
		f.away--
	}
}
