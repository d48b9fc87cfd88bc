package rollout

import (
	"time"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/recorder"
)

// The fleet is the observer of its sidecars.
var _ proxy.Observer = (*fleet)(nil)

// at has something done with a pod under the lock, and returns it with its times.
// One that was forgotten is made up: what comes so late is of no use.
func (f *fleet) at(id string, do func(*pod)) (*pod, startup) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.pods[id]
	if p == nil {
		p = &pod{id: id, gone: true, in: newLatencies()}
	}
	do(p)
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

// TokenFetched is part of proxy.Observer.
func (f *fleet) TokenFetched(id string, e proxy.TokenFetched) {
	if e.Err != nil {
		f.event(record.TokenFailed{Pod: id, Error: e.Err.Error()})
		return
	}
	p, _ := f.at(id, func(p *pod) { first(&p.times.Token, e.Received) })
	p.in.clientWait.Record(e.Waited)
	f.observe(p.in.token, recorder.TokenRequest, e.Received.Sub(e.Asked)-e.Waited)
}

// StreamOpened is part of proxy.Observer.
func (f *fleet) StreamOpened(id string, e proxy.StreamOpened) {
	f.tracker.FirstRequest(id, e.Requested)
	var in *latencies
	var again bool
	f.at(id, func(p *pod) {
		p.line.streams++
		t := &p.times
		again = !t.Answered.IsZero()
		in = p.in
		if !t.Connected.IsZero() {
			in = f.later()
		}
		first(&t.Dialed, e.Dialed)
		first(&t.Connected, e.Connected)
		first(&t.Requested, e.Requested)
		if t.Answered.IsZero() {
			t.served = e.Connected
		}
	})
	if again {
		f.metrics.Reconnect()
	}
	f.observe(in.connect, recorder.Connect, e.Connected.Sub(e.Dialed))
}

// Updated is part of proxy.Observer.
func (f *fleet) Updated(id string, e proxy.Update) {
	kind := e.Type.String()
	f.metrics.Response(kind, e.Bytes)
	if e.Wasted {
		f.metrics.Wasted(kind)
	}
	if e.Rejected != nil {
		f.metrics.Rejected(kind)
		f.event(record.Rejected{Pod: id, Type: kind, Error: e.Rejected.Error()})
	} else {
		f.metrics.Acknowledged(kind)
	}
	var isFirst bool
	p, t := f.at(id, func(p *pod) {
		if e.ReceivedAt.After(f.answered) {
			f.answered = e.ReceivedAt
		}
		isFirst = first(&p.times.Answered, e.ReceivedAt)
		p.line.answered, p.line.whole, p.line.heard = true, e.Complete, e.ReceivedAt
		if e.Complete {
			f.back(p, e.AckedAt)
		}
	})
	if isFirst {
		p.in.connectTotal.Record(t.served.Sub(t.Dialed))
		f.observe(p.in.firstConfiguration, recorder.FirstConfiguration, e.ReceivedAt.Sub(t.Requested))
	}
	f.tracker.Update(id, e.Update)
}

// complete is told by the tracker that a sidecar has its complete set.
func (f *fleet) complete(id string, at time.Time) {
	p, t := f.at(id, func(p *pod) {
		p.times.Complete = at
		if at.After(f.progressed) {
			f.progressed = at
		}
	})
	if took, in := at.Sub(t.Requested), f.startsIn(p).completeConfiguration; p.real != nil {
		in.Record(took) // scaler's own metrics are of simulated ones
	} else {
		f.observe(in, recorder.CompleteConfiguration, took)
	}
	f.reportWhenDone(id)
}

// StreamEnded is part of proxy.Observer.
func (f *fleet) StreamEnded(id string, e proxy.StreamEnded) {
	f.metrics.Attempt()
	f.at(id, func(p *pod) {
		first(&p.times.Dialed, e.Dialed)
		if p.line.answered && e.Class != proxy.Stopped {
			f.lost(p, e.Ended)
		}
	})
	switch e.Class {
	case proxy.Stopped:
		return
	case proxy.Refused:
		f.metrics.Refusal()
		return // thousands of them; they are counted
	}
	ended := record.StreamEnded{Pod: id, Class: string(e.Class), Attempt: e.Attempt, Responses: e.Responses}
	if e.Err != nil {
		ended.Error = e.Err.Error()
	}
	f.event(ended)
}

// Certified is part of proxy.Observer.
func (f *fleet) Certified(id string, e proxy.Certificate) {
	f.metrics.Certificate(e.Err == nil)
	f.mu.Lock()
	if !e.Sent.IsZero() {
		first(&f.csr.first, e.Sent)
	}
	stormed := f.storm != nil
	if stormed {
		f.storm.see(id, e.Sent, e.Verified, e.Err)
	}
	f.mu.Unlock()
	if e.Err != nil {
		f.event(record.CertificateFailed{Pod: id, Attempt: e.Attempt, Error: e.Err.Error()})
		return
	}
	var renewed bool // it had one before
	p, _ := f.at(id, func(p *pod) {
		renewed = !first(&p.times.Certified, e.Verified)
		if !renewed && p.in == f.latencies {
			f.csr.issued++
			if e.Verified.After(f.csr.last) {
				f.csr.last = e.Verified
			}
		}
	})
	f.metrics.Observe(recorder.CertificateIssuance, e.Verified.Sub(e.Sent))
	switch {
	case renewed && !stormed:
		f.renewals.Record(e.Verified.Sub(e.Sent))
	case !renewed:
		p.in.certificate.Record(e.Verified.Sub(e.Sent))
		if e.Key > 0 {
			p.in.key.Record(e.Key)
		}
	}
	f.tracker.Certified(id, e.Verified)
	f.reportWhenDone(id)
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
