package fleet

import (
	"time"

	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
)

// observer takes what the simulated sidecars of a fleet report.
type observer struct{ *Fleet }

var _ proxy.Observer = observer{}

// TokenFetched is part of proxy.Observer.
func (f observer) TokenFetched(id string, e proxy.TokenFetched) {
	if e.Err != nil {
		f.Event(record.TokenFailed{Pod: id, Error: e.Err.Error()})
		return
	}
	p, _ := f.Pods.update(id, func(p *pod) { first(&p.times.Token, e.Received) })
	p.latencies.ClientWait.Record(e.Waited)
	f.observe(p.latencies.Token, measure.TokenRequest, e.Received.Sub(e.Asked)-e.Waited)
}

// StreamOpened is part of proxy.Observer.
func (f observer) StreamOpened(id string, e proxy.StreamOpened) {
	var in *Latencies
	var again bool
	p, _ := f.Pods.update(id, func(p *pod) {
		p.connection.streams++
		p.connection.server = e.Server
		t := &p.times
		again = !t.Answered.IsZero()
		in = p.latencies
		if !t.Connected.IsZero() && !p.connection.missed {
			in = f.Pods.later()
		}
		first(&t.Dialed, e.Dialed)
		first(&t.Connected, e.Connected)
		first(&t.Requested, e.Requested)
		if t.Answered.IsZero() {
			t.served = e.Connected
		}
	})
	p.track(func(t *convergence.Tracker) { t.FirstRequest(id, e.Requested) })
	if again {
		f.Metrics.Reconnect()
	}
	f.observe(in.Connect, measure.Connect, e.Connected.Sub(e.Dialed))
}

// Updated is part of proxy.Observer.
func (f observer) Updated(id string, e proxy.Update) {
	kind := e.Type.String()
	f.Metrics.Response(kind, e.Bytes, e.Wasted, e.Rejected != nil)
	if e.Rejected != nil {
		f.Event(record.Rejected{Pod: id, Type: kind, Error: e.Rejected.Error()})
	}
	var isFirst bool
	p, t := f.Pods.update(id, func(p *pod) {
		if e.ReceivedAt.After(f.Pods.answered) {
			f.Pods.answered = e.ReceivedAt
		}
		isFirst = first(&p.times.Answered, e.ReceivedAt)
		p.connection.answered, p.connection.whole, p.connection.heard = true, e.Complete, e.ReceivedAt
		if e.Complete {
			f.Pods.back(p, e.AckedAt)
		}
	})
	if isFirst {
		p.latencies.ConnectTotal.Record(t.served.Sub(t.Dialed))
		f.observe(p.latencies.FirstConfiguration, measure.FirstConfiguration, e.ReceivedAt.Sub(t.Requested))
	}
	if e.Complete {
		e.Set = append(e.Set, convergence.Resource{Key: convergence.AskedFor()})
	}
	if p.revision == nil {
		return
	}
	if received := p.revision.received.Load(); received != nil {
		received.Responses.Add(1)
	}
	p.revision.tracker.Update(id, e.Update)
	if p.extra() && e.Complete { // what makes it ready; the mesh may not even be there
		f.Pods.update(id, func(p *pod) {
			first(&p.times.Usable, e.AckedAt)
			first(&p.times.Complete, e.AckedAt)
		})
		f.Readiness.check(id)
	}
	f.nodes.updated(id, e.Node, e.ReceivedAt)
}

// usable takes from a tracker that a sidecar has what its pod needs to serve.
func (f observer) usable(id string, at time.Time) {
	f.Pods.update(id, func(p *pod) {
		if p.extra() {
			return // see Updated
		}
		first(&p.times.Usable, at)
		if at.After(f.Pods.progressed) {
			f.Pods.progressed = at
		}
	})
	f.Readiness.check(id)
}

// complete takes from a tracker that a sidecar has its complete set.
func (f observer) complete(id string, at time.Time) {
	p, t := f.Pods.update(id, func(p *pod) {
		if !p.extra() {
			first(&p.times.Complete, at)
		}
	})
	if p.extra() {
		return // see Updated
	}
	if took, in := at.Sub(t.Requested), p.starts().CompleteConfiguration; p.real != nil {
		in.Record(took) // scaler's own metrics are of simulated ones
	} else {
		f.observe(in, measure.CompleteConfiguration, took)
	}
}

// StreamEnded is part of proxy.Observer.
func (f observer) StreamEnded(id string, e proxy.StreamEnded) {
	f.Metrics.Attempt()
	f.Pods.update(id, func(p *pod) {
		first(&p.times.Dialed, e.Dialed)
		if p.connection.answered && e.Class != proxy.Stopped {
			f.Pods.lost(p, e.Ended)
		}
	})
	switch e.Class {
	case proxy.Stopped:
		return
	case proxy.Refused:
		f.Metrics.Refusal()
		return // thousands of them; they are counted
	}
	ended := record.StreamEnded{Pod: id, Class: string(e.Class), Attempt: e.Attempt, Responses: e.Responses}
	if e.Err != nil {
		ended.Error = e.Err.Error()
	}
	f.Event(ended)
}

// Certified is part of proxy.Observer.
func (f observer) Certified(id string, e proxy.Certificate) {
	f.Metrics.Certificate(e.Err == nil)
	storm := f.storm.Load()
	unasked := e.Err == nil && e.Sent.IsZero() // the control plane renewed it; there is no request to measure from
	if storm != nil && !unasked {
		storm.take(certificateOf(id, e.Identity), e.Sent, e.Verified, e.Err)
	}
	if e.Identity != "" && e.Err == nil {
		f.nodes.certified(id, e, storm != nil)
		return
	}
	var renewed, missed bool // it had one before; its worker was lost since
	p, _ := f.Pods.update(id, func(p *pod) {
		csr := &f.Pods.csr
		if !e.Sent.IsZero() {
			first(&csr.first, e.Sent)
		}
		if e.Err != nil {
			return
		}
		missed, p.missed = p.missed, false
		renewed = !first(&p.times.Certified, e.Verified)
		if !renewed && p.rollout {
			csr.issued++
			if e.Verified.After(csr.last) {
				csr.last = e.Verified
			}
		}
	})
	if e.Err != nil {
		f.Event(record.CertificateFailed{Pod: id, Attempt: e.Attempt, Error: e.Err.Error()})
		return
	}
	if !unasked && !missed {
		f.certificateTook(p, e, renewed && storm == nil, !renewed)
	}
	p.track(func(t *convergence.Tracker) { t.Certified(id, e.Verified) })
	f.Readiness.check(id)
}

// certificateTook records the latency of a certificate, which is a renewal of one that
// grew old, the pod's first, or neither.
func (f observer) certificateTook(p *pod, e proxy.Certificate, renewal, first bool) {
	took := e.Verified.Sub(e.Sent)
	f.Metrics.Observe(measure.CertificateIssuance, took)
	switch {
	case renewal:
		f.Renewals.Record(took)
	case first:
		p.latencies.Certificate.Record(took)
		if e.Key > 0 {
			p.latencies.Key.Record(e.Key)
		}
	}
}

// track reports to the tracker of a simulated sidecar that was started.
func (p *pod) track(report func(*convergence.Tracker)) {
	if p.revision != nil {
		report(p.revision.tracker)
	}
}
