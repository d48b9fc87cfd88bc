package xdsload

import (
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// fleet manages sidecars without pods. The id of each is its index.
type fleet struct {
	// fixed after newFleet
	store    *xdsprobe.Store
	metrics  *measure.Metrics
	log      *output.OnceLog
	sidecars []standaloneSidecar

	connect, connectTotal                     *stats.Histogram
	firstConfiguration, completeConfiguration *stats.Histogram

	connected, answered, complete atomic.Int64  // sidecars that ever were
	allComplete                   chan struct{} // closed when all are complete
}

// standaloneSidecar is one sidecar. Except for the pointer, only the events of its own
// stream touch it, and these are never concurrent.
type standaloneSidecar struct {
	sidecar *xdsprobe.Client // fixed before it runs

	dialed    time.Time // its first attempt began
	served    time.Time // the connection was up of its last attempt before it was answered
	requested time.Time // its first request was sent
	answered  bool
	complete  bool
}

var _ proxy.Observer = (*fleet)(nil)

func newFleet(n int, metrics *measure.Metrics, log func(string)) *fleet {
	return &fleet{
		store: xdsprobe.NewStore(), metrics: metrics, log: &output.OnceLog{Log: log},
		sidecars:              make([]standaloneSidecar, n),
		connect:               stats.NewHistogram(),
		connectTotal:          stats.NewHistogram(),
		firstConfiguration:    stats.NewHistogram(),
		completeConfiguration: stats.NewHistogram(),
		allComplete:           make(chan struct{}),
	}
}

// of returns the sidecar with an id.
func (f *fleet) of(id string) *standaloneSidecar {
	index, _ := strconv.Atoi(id) // it was made by Itoa
	return &f.sidecars[index]
}

// TokenFetched implements proxy.Observer.
func (f *fleet) TokenFetched(_ string, e proxy.TokenFetched) {
	if e.Err != nil {
		f.log.Once("token", fmt.Sprintf("%s; trying again, as a proxy would", output.FirstLine(e.Err)))
	}
}

// StreamOpened implements proxy.Observer.
func (f *fleet) StreamOpened(id string, e proxy.StreamOpened) {
	s := f.of(id)
	if s.dialed.IsZero() {
		s.dialed = e.Dialed
	}
	if s.requested.IsZero() {
		s.requested = e.Requested
		f.connected.Add(1)
	}
	if s.answered {
		f.metrics.Reconnect()
	} else {
		s.served = e.Connected
	}
	took := e.Connected.Sub(e.Dialed)
	f.connect.Record(took)
	f.metrics.Observe(measure.Connect, took)
}

// Updated implements proxy.Observer.
func (f *fleet) Updated(id string, e proxy.Update) {
	kind := e.Type.String()
	f.metrics.Response(kind, e.Bytes, e.Wasted, e.Rejected != nil)
	if e.Rejected != nil {
		f.log.Once("rejected", fmt.Sprintf("a sidecar rejected %s: %s", kind, output.FirstLine(e.Rejected)))
	}
	s := f.of(id)
	if !s.answered {
		s.answered = true
		f.answered.Add(1)
		f.connectTotal.Record(s.served.Sub(s.dialed))
		took := e.ReceivedAt.Sub(s.requested)
		f.firstConfiguration.Record(took)
		f.metrics.Observe(measure.FirstConfiguration, took)
	}
	if e.Complete && !s.complete {
		s.complete = true
		took := e.AckedAt.Sub(s.requested)
		f.completeConfiguration.Record(took)
		f.metrics.Observe(measure.CompleteConfiguration, took)
		if f.complete.Add(1) == int64(len(f.sidecars)) {
			close(f.allComplete)
		}
	}
}

// StreamEnded implements proxy.Observer.
func (f *fleet) StreamEnded(id string, e proxy.StreamEnded) {
	f.metrics.Attempt()
	if s := f.of(id); s.dialed.IsZero() {
		s.dialed = e.Dialed
	}
	switch e.Class {
	case proxy.Stopped:
		return
	case proxy.Refused:
		f.metrics.Refusal()
	}
	reason := "closed by the server"
	if e.Err != nil {
		reason = output.FirstLine(e.Err)
	}
	f.log.Once(string(e.Class), fmt.Sprintf("%s: %s; sidecars try again, as a proxy would", e.Class, reason))
}

// Certified implements proxy.Observer. These sidecars request no certificates.
func (f *fleet) Certified(string, proxy.Certificate) {}
