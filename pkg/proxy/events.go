package proxy

import (
	"time"

	"scaler.mesh/scaler/pkg/convergence"
)

// Observer receives the events of proxies, each identified by its id. The methods are
// called by the proxies' goroutines, sequentially and in order for the stream of one
// proxy; they must not block. Times have a monotonic reading.
type Observer interface {
	// TokenFetched is called after each call of the proxy's TokenSource.
	TokenFetched(id string, e TokenFetched)
	// StreamOpened is called when a connection is up and the first request of
	// its stream was handed to it.
	StreamOpened(id string, e StreamOpened)
	// Updated is called after a response was acknowledged or rejected.
	Updated(id string, e Update)
	// StreamEnded is called at the end of every attempt, including those that
	// never got a connection.
	StreamEnded(id string, e StreamEnded)
	// Certified is called after each certificate request, successful or not, and
	// after each certificate that came unasked.
	Certified(id string, e Certificate)
}

// TokenFetched is one call of a TokenSource.
type TokenFetched struct {
	Asked, Received time.Time
	Waited          time.Duration // of that, client-side waiting, as the source reports
	Err             error
}

// StreamOpened is a stream that the transport has accepted. Only the first response shows
// that the server has accepted it too.
type StreamOpened struct {
	Attempt   int       // counts dials since the sidecar was started; 1 is the first
	Server    string    // address that was dialled: of a Service, the endpoint that was chosen
	Dialed    time.Time // the dial was begun
	Connected time.Time // TCP, TLS and HTTP/2 settings done
	Requested time.Time // the first request was handed to the transport
}

// Update is one response of the server, or the updates of a lost stream that the next
// stream acknowledges.
type Update struct {
	Type   convergence.Type
	Bytes  int  // length of the response message
	Wasted bool // it held resources, and the sidecar held every one of them already
	// Complete means that everything that the proxy subscribed to on its stream has now
	// been answered and acknowledged, as far as its subscription graph names it. It does
	// not say whether that is what the proxy should hold; see pkg/convergence.
	Complete bool
	// Rejected is the reason why the response was rejected; nil means that it was
	// acknowledged. After a rejection the sidecar keeps what it held.
	Rejected error
	// Node is the change in what a node's proxy holds about the pods of its own node; nil
	// means no change, or that the proxy is not a node's.
	Node *NodeUpdate
	// Update holds the changed resources; unchanged ones are left out. It is empty after
	// a rejection. A resource that was dropped because no other names it any more is
	// among Removed.
	convergence.Update
}

// NodeUpdate is a change in what a node's proxy holds about the pods of that node.
type NodeUpdate struct {
	Held    []NodePod // added or changed
	Removed []string  // ids of pods, "namespace/name", that it does not hold any more
	Dropped []string  // identities whose certificates it has dropped with their last pod
}

// NodePod is a pod of a node, as the node's proxy holds it.
type NodePod struct {
	ID       string // "namespace/name"
	Identity string // that the proxy gets a certificate for; "" = none
}

// Class says how an attempt ended.
type Class string

// The ends of an attempt.
const (
	Stopped       Class = "stopped"       // by the sidecar's own context
	Unreachable   Class = "unreachable"   // no connection: TCP, TLS, HTTP/2 or time-out
	Refused       Class = "refused"       // ResourceExhausted or Unavailable from the server before any response
	Unauthorized  Class = "unauthorized"  // Unauthenticated or PermissionDenied from the server
	Lost          Class = "lost"          // the stream broke or was closed by the server
	Misunderstood Class = "misunderstood" // a response that is no valid message
)

// StreamEnded is the end of an attempt.
type StreamEnded struct {
	Attempt   int
	Dialed    time.Time
	Connected time.Time // zero if there never was a connection
	Ended     time.Time
	Class     Class
	Err       error // nil only if the server closed the stream without one
	Responses int
	Backoff   time.Duration // wait before the next attempt; 0 if there is none
}

// Certificate is one certificate request, or a certificate that the control plane
// sent unasked.
type Certificate struct {
	Identity string        // that it is for, of a proxy with several; "" = the proxy's own
	Attempt  int           // counts requests since the last certificate; 1 is the first
	Key      time.Duration // getting the private key and signing the request; 0 if a retry reuses them
	Sent     time.Time     // zero if nothing was sent: the request failed before, or the certificate was sent unasked
	Verified time.Time     // the chain was received and verified; zero if Err is not nil
	Expires  time.Time     // of the leaf
	Backoff  time.Duration // wait before the next attempt; 0 after a success
	Err      error
}
