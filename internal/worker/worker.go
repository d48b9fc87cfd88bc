// Package worker runs simulated proxies, in this process or in another one that is
// connected over a socket. It takes specifications, which are plain data, and returns the
// proxies' events, counters, and mergeable histograms.
//
// Which pod has which proxy, and what its events mean, is left to internal/fleet.
package worker

import (
	"context"
	"time"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// Worker runs simulated proxies. Its methods may be called by several goroutines, and
// but for Holdings and Close they do not wait for anything.
type Worker interface {
	// Start starts a proxy. One that has the same id is stopped first.
	Start(p Proxy) error
	// Do acts on the proxies of these ids. An id that the worker does not
	// run is ignored: its proxy may just have ended.
	Do(action Action, ids ...string)
	// Route sets the endpoints of a Service for connections that are made from now on;
	// see proxy.Backends.
	Route(service string, endpoints []string)
	// Holdings returns what each running proxy holds now, in no order; with names, the keys
	// of its resources too.
	Holdings(ctx context.Context, names bool) ([]Holding, error)
	// State returns the worker's present counters and clock.
	State() State
	// Close stops all proxies and returns when they have ended and all their events
	// were delivered. The worker starts no more.
	Close(ctx context.Context) error
}

// Proxy specifies a simulated proxy.
type Proxy struct {
	proxy.Spec
	Delay time.Duration // before it runs
}

// Action is an action on a proxy.
type Action string

// The actions.
const (
	Stop  Action = "stop"  // it ends
	Reset Action = "reset" // see proxy.Proxy
	Renew Action = "renew" // see proxy.Proxy
)

// Holding sums up the resources that a proxy holds.
type Holding struct {
	ID    string
	Types map[convergence.Type]proxy.Holding
	// Keys are the keys of its resources, if they were asked for, without resources that it holds only until
	// its listeners have drained.
	Keys []convergence.Key
}

// State is the state of a worker at one moment.
type State struct {
	Name    string
	Started int             // proxies, so far
	Counts  xdsprobe.Counts // what all its proxies counted so far
	Clock   Clock           // that its events are timed with
}

// Clock compares the clock of a worker with that of this process, in whose
// time its events are delivered.
type Clock struct {
	// Offset is subtracted from a time of that clock, which counts from the start of its
	// process, to get the time here, which counts from the moment at which the connection was
	// made.
	Offset time.Duration
	// Uncertainty bounds the error of the offset. 0 = it is the clock of this process.
	Uncertainty time.Duration
}

// Options states what a worker reports to. All fields but Lost and Keep are needed.
type Options struct {
	Name     string         // of the worker, in messages and of its clock
	Observer proxy.Observer // receives the events of all proxies; see there for the order
	// Failed is called with the error of a proxy that cannot be started, and of a worker that
	// is lost with all its proxies.
	Failed func(error)
	// Keep has a worker in this process keep the messages of what its proxies hold, for Contents.
	Keep bool
	// Lost is called instead of Failed with the error of another process that is lost, after the last of its
	// events; nil = Failed is.
	Lost func(error)
	// Late is called with the scheduling delays of another process since the last call;
	// not for a worker in this process, which its owner observes itself.
	Late func(*stats.Histogram)
}
