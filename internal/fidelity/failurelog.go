package fidelity

import (
	"fmt"

	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/proxy"
)

// failureLog observes the simulated proxy and logs failures. The wiretap records what it
// sends and receives.
type failureLog struct{ log func(string) }

var _ proxy.Observer = failureLog{}

// TokenFetched implements proxy.Observer.
func (l failureLog) TokenFetched(_ string, e proxy.TokenFetched) {
	if e.Err != nil {
		l.log("the simulated proxy got no token: " + output.FirstLine(e.Err))
	}
}

// StreamOpened implements proxy.Observer.
func (failureLog) StreamOpened(string, proxy.StreamOpened) {}

// Updated implements proxy.Observer.
func (failureLog) Updated(string, proxy.Update) {}

// StreamEnded implements proxy.Observer.
func (l failureLog) StreamEnded(_ string, e proxy.StreamEnded) {
	if e.Class != proxy.Stopped && e.Class != proxy.Lost {
		l.log(fmt.Sprintf("the simulated proxy's stream ended (%s): %v", e.Class, e.Err))
	}
}

// Certified implements proxy.Observer.
func (l failureLog) Certified(_ string, e proxy.Certificate) {
	if e.Err != nil {
		l.log("the simulated proxy got no certificate: " + output.FirstLine(e.Err))
	}
}
