package experiment

import (
	"time"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/recorder"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// The fleet is the observer of its sidecars.
var _ xdsprobe.Observer = (*fleet)(nil)

// at changes a pod's start-up times under the lock, and returns it with them.
func (f *fleet) at(id string, change func(*startup)) (*pod, startup) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.pods[id]
	change(&p.times)
	return p, p.times
}

// first sets a moment that counts only once, and reports whether this was it.
func first(t *time.Time, at time.Time) bool {
	if !t.IsZero() {
		return false
	}
	*t = at
	return true
}

// TokenFetched is part of xdsprobe.Observer.
func (f *fleet) TokenFetched(id string, e xdsprobe.TokenFetched) {
	if e.Err != nil {
		f.event("tokenFailed", map[string]any{"pod": id, "error": e.Err.Error()})
		return
	}
	p, _ := f.at(id, func(t *startup) { first(&t.Token, e.Received) })
	if p.counted {
		f.latencies.clientWait.Record(e.Waited)
	}
	f.observe(p, f.latencies.token, recorder.TokenRequest, e.Received.Sub(e.Asked)-e.Waited)
}

// StreamOpened is part of xdsprobe.Observer.
func (f *fleet) StreamOpened(id string, e xdsprobe.StreamOpened) {
	f.tracker.FirstRequest(id, e.Requested)
	p, _ := f.at(id, func(t *startup) {
		first(&t.Dialed, e.Dialed)
		first(&t.Connected, e.Connected)
		first(&t.Requested, e.Requested)
		if t.Answered.IsZero() {
			t.served = e.Connected
		}
	})
	f.observe(p, f.latencies.connect, recorder.Connect, e.Connected.Sub(e.Dialed))
}

// Updated is part of xdsprobe.Observer.
func (f *fleet) Updated(id string, e xdsprobe.Update) {
	kind := e.Type.String()
	f.metrics.Response(kind, e.Bytes)
	if e.Wasted {
		f.metrics.Wasted(kind)
	}
	if e.Rejected != nil {
		f.metrics.Rejected(kind)
		f.event("rejected", map[string]any{"pod": id, "type": kind, "error": e.Rejected.Error()})
	} else {
		f.metrics.Acknowledged(kind)
	}
	f.mu.Lock()
	if e.ReceivedAt.After(f.answered) {
		f.answered = e.ReceivedAt
	}
	p := f.pods[id]
	t := &p.times
	isFirst := first(&t.Answered, e.ReceivedAt)
	dialed, served, requested := t.Dialed, t.served, t.Requested
	f.mu.Unlock()
	if isFirst {
		if p.counted {
			f.latencies.connectTotal.Record(served.Sub(dialed))
		}
		f.observe(p, f.latencies.firstConfiguration, recorder.FirstConfiguration, e.ReceivedAt.Sub(requested))
	}
	f.tracker.Update(id, e.Update)
}

// complete is told by the tracker that a sidecar has its complete set.
func (f *fleet) complete(id string, at time.Time) {
	p, t := f.at(id, func(t *startup) { t.Complete = at })
	f.observe(p, f.latencies.completeConfiguration, recorder.CompleteConfiguration, at.Sub(t.Requested))
	f.reportWhenDone(id)
}

// StreamEnded is part of xdsprobe.Observer.
func (f *fleet) StreamEnded(id string, e xdsprobe.StreamEnded) {
	f.metrics.Attempt()
	f.at(id, func(t *startup) { first(&t.Dialed, e.Dialed) })
	switch e.Class {
	case xdsprobe.Stopped:
		return
	case xdsprobe.Refused:
		f.metrics.Refusal()
		return // thousands of them; they are counted
	}
	if e.Responses > 0 {
		f.metrics.Reconnect()
	}
	fields := map[string]any{"pod": id, "class": e.Class, "attempt": e.Attempt, "responses": e.Responses}
	if e.Err != nil {
		fields["error"] = e.Err.Error()
	}
	f.event("streamEnded", fields)
}

// Certified is part of xdsprobe.Observer.
func (f *fleet) Certified(id string, e xdsprobe.Certificate) {
	f.metrics.Certificate(e.Err == nil)
	f.mu.Lock()
	if !e.Sent.IsZero() {
		first(&f.csr.first, e.Sent)
	}
	if f.storm != nil {
		f.storm.see(id, e.Sent, e.Verified, e.Err)
	}
	f.mu.Unlock()
	if e.Err != nil {
		f.event("certificateFailed", map[string]any{"pod": id, "attempt": e.Attempt, "error": e.Err.Error()})
		return
	}
	f.mu.Lock()
	p := f.pods[id]
	if first(&p.times.Certified, e.Verified) && p.counted {
		f.csr.issued++
		if e.Verified.After(f.csr.last) {
			f.csr.last = e.Verified
		}
	}
	f.mu.Unlock()
	if p.counted && e.Key > 0 {
		f.latencies.key.Record(e.Key)
	}
	f.observe(p, f.latencies.certificate, recorder.CertificateIssuance, e.Verified.Sub(e.Sent))
	f.tracker.Certified(id, e.Verified)
	f.reportWhenDone(id)
}

// reportWhenDone hands a pod to the reporters once its sidecar is complete and
// certified.
func (f *fleet) reportWhenDone(id string) {
	f.mu.Lock()
	p := f.pods[id]
	due := !f.held && !p.reported && !p.gone && !p.times.Complete.IsZero() && !p.times.Certified.IsZero()
	p.reported = p.reported || due
	f.mu.Unlock()
	if due {
		f.ready <- p // has room for every pod
	}
}

// delivered is told by the tracker of endpoint changes that reached a sidecar.
func (f *fleet) delivered(kind convergence.Kind, n int, after time.Duration) {
	if !f.bursting.Load() {
		return
	}
	for range n {
		f.latencies.rolloutPush[kind].Record(after)
	}
}
