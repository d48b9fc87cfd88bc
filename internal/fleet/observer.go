package fleet

import (
	"time"

	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
)

// observer takes the events of a fleet's simulated proxies. Events of a pod that was dropped are counted in metrics
// and otherwise ignored.
type observer struct{ *Fleet }

var _ proxy.Observer = observer{}

// TokenFetched is part of proxy.Observer.
func (f observer) TokenFetched(id string, e proxy.TokenFetched) {
	if e.Err != nil {
		f.Event(record.TokenFailed{Pod: id, Error: e.Err.Error()})
		return
	}
	p, _ := f.Pods.update(id, func(p *simulated) { setOnce(&p.times.Token, e.Received) })
	if p == nil {
		return
	}
	p.latencies.ClientWait.Record(e.Waited)
	f.observe(p.latencies.Token, measure.TokenRequest, e.Received.Sub(e.Asked)-e.Waited)
}

// StreamOpened is part of proxy.Observer.
func (f observer) StreamOpened(id string, e proxy.StreamOpened) {
	var in *Latencies
	var again bool
	p, _ := f.Pods.update(id, func(p *simulated) {
		p.connection.streams++
		p.connection.server = e.Server
		t := &p.times
		again = !t.Answered.IsZero()
		in = p.latencies
		if !t.Connected.IsZero() && !p.connection.missed {
			in = f.Pods.reconnects()
		}
		setOnce(&t.Dialed, e.Dialed)
		setOnce(&t.Connected, e.Connected)
		setOnce(&t.Requested, e.Requested)
		if t.Answered.IsZero() {
			t.answeredOn = e.Connected
		}
	})
	if p == nil {
		return
	}
	p.revision.tracker.FirstRequest(id, e.Requested)
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
	p, t := f.Pods.update(id, func(p *simulated) {
		if e.ReceivedAt.After(f.Pods.answered) {
			f.Pods.answered = e.ReceivedAt
		}
		isFirst = setOnce(&p.times.Answered, e.ReceivedAt)
		p.connection.answered, p.whole = true, e.Complete
		if e.Complete {
			f.Pods.regainStream(p, e.AckedAt)
			p.initialize(e.AckedAt)
		}
	})
	if p == nil {
		return
	}
	if isFirst {
		p.latencies.ConnectTotal.Record(t.answeredOn.Sub(t.Dialed))
		f.observe(p.latencies.FirstConfiguration, measure.FirstConfiguration, e.ReceivedAt.Sub(t.Requested))
	}
	if e.Complete {
		e.Set = append(e.Set, convergence.Resource{Key: convergence.AskedFor()})
	}
	if received := p.revision.received.Load(); received != nil {
		received.Responses.Add(1)
	}
	p.revision.tracker.Update(id, e.Update)
	p.as.answered(e)
}

// complete is called by a tracker when a proxy holds its complete set.
func (f observer) complete(id string, at time.Time) {
	if p := f.Pods.find(id); p != nil {
		p.as.complete(at)
	}
}

// StreamEnded is part of proxy.Observer.
func (f observer) StreamEnded(id string, e proxy.StreamEnded) {
	f.Metrics.Attempt()
	f.Pods.update(id, func(p *simulated) {
		setOnce(&p.times.Dialed, e.Dialed)
		if p.connection.answered && e.Class != proxy.Stopped {
			f.Pods.loseStream(p, e.Ended)
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
	if storm != nil && !unasked(e) {
		storm.take(certificateOf(id, e.Identity), e.Sent, e.Verified, e.Err)
	}
	if p := f.Pods.find(id); p != nil {
		p.as.certificate(e, storm != nil)
	}
}

// certificateTook records the latency of a certificate, which is a renewal of one that
// grew old, the first of its kind, or neither.
func (f *Fleet) certificateTook(in *Latencies, e proxy.Certificate, renewal, first bool) {
	took := e.Verified.Sub(e.Sent)
	f.Metrics.Observe(measure.CertificateIssuance, took)
	switch {
	case renewal:
		f.Renewals.Record(took)
	case first:
		in.Certificate.Record(took)
		if e.Key > 0 {
			in.Key.Record(e.Key)
		}
	}
}
