package worker

import (
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/pkg/proxy"
)

// counted passes events on and counts them in a worker's own metrics.
type counted struct {
	proxy.Observer
	metrics *measure.Metrics
}

// TokenFetched is part of proxy.Observer.
func (c counted) TokenFetched(id string, e proxy.TokenFetched) {
	if e.Err == nil {
		c.metrics.Observe(measure.TokenRequest, e.Received.Sub(e.Asked)-e.Waited)
	}
	c.Observer.TokenFetched(id, e)
}

// StreamOpened is part of proxy.Observer.
func (c counted) StreamOpened(id string, e proxy.StreamOpened) {
	c.metrics.Observe(measure.Connect, e.Connected.Sub(e.Dialed))
	c.Observer.StreamOpened(id, e)
}

// Updated is part of proxy.Observer.
func (c counted) Updated(id string, e proxy.Update) {
	c.metrics.Response(e.Type.String(), e.Bytes, e.Wasted, e.Rejected != nil)
	c.Observer.Updated(id, e)
}

// StreamEnded is part of proxy.Observer.
func (c counted) StreamEnded(id string, e proxy.StreamEnded) {
	c.metrics.Attempt()
	if e.Class == proxy.Refused {
		c.metrics.Refusal()
	}
	c.Observer.StreamEnded(id, e)
}

// Certified is part of proxy.Observer.
func (c counted) Certified(id string, e proxy.Certificate) {
	c.metrics.Certificate(e.Err == nil)
	if e.Err == nil && !e.Sent.IsZero() {
		c.metrics.Observe(measure.CertificateIssuance, e.Verified.Sub(e.Sent))
	}
	c.Observer.Certified(id, e)
}
