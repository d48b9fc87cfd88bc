package worker

import (
	"time"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// The two ends exchange values of encoding/gob: commands one way, batches the other.
// Both must be the same build of scaler; the first message shows it. Times are nanoseconds on the
// clock of the worker's process since its start; 0 = no time.

// command is a message to a worker. Each field is a command of its own; those that are set
// are executed in this order.
type command struct {
	Setup    *Setup
	Shared   [][]byte // that specifications refer to from now on, numbered on from 1
	Start    []start
	Do       *do
	Route    *route
	Ping     int // number of a ping that is to be answered; 0 = none
	Holdings *holdingsQuery
	Close    bool
}

// Setup configures a worker before its first proxy.
type Setup struct {
	Name       string // of the worker
	Build      string // of scaler; both ends have the same
	Driver     string // of the control plane
	Dataplane  string // that it serves; see controlplane.Driver.Of
	Waypoints  string // likewise
	Kubeconfig string // file for the requests of tokens, or OwnCluster; "" = there are none
}

// start starts a proxy.
type start struct {
	Number       int    // of its id, in events
	Spec         []byte // proxy.Spec as JSON, without fields that many have in common:
	Build, Roots int    // numbers of Build and RootPEM among the shared bytes; 0 = nil
	Delay        time.Duration
}

type do struct {
	Action Action
	IDs    []string
}

type route struct {
	Service   string
	Endpoints []string
}

type holdingsQuery struct {
	Number int
	Names  bool
}

// batch is a message of a worker: its events since the last one.
type batch struct {
	Ready  bool // the answer to Setup
	Failed string

	// Forget reports that the keys and contents of all batches before are not referred to
	// any more: the tables begin anew.
	Forget   bool
	Keys     []convergence.Key //  that events refer to, numbered on from 1
	Contents []content         // likewise

	Events   []event
	Started  int // proxies, so far
	Counts   xdsprobe.Counts
	Late     []byte // histogram of how late the process ran, as stats.Histogram encodes it; nil = as before
	Pong     pong
	Holdings []holdingsAnswer
	Closed   bool
}

type content struct {
	Digest    convergence.Digest
	Endpoints convergence.Endpoints
	Members   []string
	Markers   []string
}

// event is an event of a proxy. Exactly one pointer is set.
type event struct {
	Proxy int // its number

	Token       *tokenFetched
	Opened      *streamOpened
	Updated     *updated
	Ended       *streamEnded
	Certificate *certificate
}

type tokenFetched struct {
	Asked, Received time.Duration
	Waited          time.Duration
	Err             string
}

type streamOpened struct {
	Attempt                      int
	Server                       string
	Dialed, Connected, Requested time.Duration
}

type updated struct {
	Type                convergence.Type
	Wasted, Complete    bool
	Bytes               int
	Rejected            string
	ReceivedAt, AckedAt time.Duration
	Set                 []resource
	Removed             []int // keys
	Node                *proxy.NodeUpdate
}

type resource struct{ Key, Content int } // Content 0 = nil

type streamEnded struct {
	Attempt                  int
	Dialed, Connected, Ended time.Duration
	Class                    proxy.Class
	Err                      string
	Responses                int
	Backoff                  time.Duration
}

type certificate struct {
	Identity       string
	Attempt        int
	Key            time.Duration
	Sent, Verified time.Duration
	Expires        time.Time // on the wall clock, as the certificate says
	Backoff        time.Duration
	Err            string
}

// pong answers a ping; Number 0 = there was none.
type pong struct {
	Number            int
	Arrived, Answered time.Duration
}

type holdingsAnswer struct {
	Number int
	All    []holding

	raw []Holding // of which All is made when it is sent
}

type holding struct {
	Proxy int
	Types map[convergence.Type]proxy.Holding
	Keys  []int
}
