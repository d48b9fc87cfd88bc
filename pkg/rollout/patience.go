package rollout

import (
	"context"
	"time"

	"scaler.mesh/scaler/pkg/record"
)

// patience is how long a sidecar that has all it asked for is held back because
// it should have more, when the control plane sends it nothing. A real proxy
// does not know what it was not sent, and turns ready. It must not be held for
// ever: a control plane may learn of an endpoint that it missed only when its pod
// turns ready, as istiod does of one that it saw before the pod (PodCache.onEvent
// in its pilot/pkg/serviceregistry/kube/controller/pod.go). The length is Envoy's
// initial_fetch_timeout.
//
// While it still sends to others it may only be slow, and what is missing on its
// way: a rollout waits for that as long as it gets on, which is while sidecars become
// complete. Where none has for longerPatience, because all lack the same, the bursts
// still to come would only make more of them wait. What lasts for as long as it is
// asked to, as churn does, waits for longerPatience.
const (
	patience       = 15 * time.Second
	longerPatience = 4 * patience
)

// reportImpatient reports sidecars to their pods that were held back too long,
// until ctx is done.
func (f *fleet) reportImpatient(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			for _, p := range f.heldTooLong(now) {
				f.event(record.ReportedIncomplete{Pod: p.id})
				f.ready.push(p)
			}
		}
	}
}

// heldTooLong are the pods to be reported though their sidecars lack something,
// each once.
func (f *fleet) heldTooLong(now time.Time) []*pod {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.waits() {
		f.progressed = now
	}
	limit := patience
	busy, bursting := now.Sub(f.answered) < quietTime, f.bursting.Load()
	switch {
	case busy && bursting && now.Sub(f.progressed) < longerPatience:
		return nil
	case busy && !bursting:
		limit = longerPatience
	}
	var pods []*pod
	for _, p := range f.pods {
		if f.held || p.gone || p.reported || p.times.Certified.IsZero() || !p.line.whole {
			continue
		}
		since := p.line.heard
		if busy && bursting { // it is sent to all the time, and never what it lacks
			since = p.times.Certified
		}
		if now.Sub(since) < limit {
			continue
		}
		p.reported, p.impatient = true, true
		f.impatient++
		pods = append(pods, p)
	}
	return pods
}

// waits says whether a sidecar has its certificate and was not reported yet. The
// caller holds mu.
func (f *fleet) waits() bool {
	for _, p := range f.pods {
		if !p.gone && !p.reported && !p.times.Certified.IsZero() {
			return true
		}
	}
	return false
}
