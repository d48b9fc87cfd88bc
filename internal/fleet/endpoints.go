package fleet

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/record"
)

// Endpoints are the endpoints of a run's services as the API server lists them.
type Endpoints struct {
	room      int             // changes that may wait to be read; more wait only when nobody reads any more
	uncounted map[string]bool // service ports

	mu         sync.Mutex
	listed     map[string]convergence.Endpoints // by service port
	subscriber chan EndpointChange              // nil = nobody
	changed    []time.Time
}

// EndpointChange is a change of one endpoint in the lists of the API server.
type EndpointChange struct {
	Service string // NAMESPACE/NAME:PORT
	Addr    netip.AddrPort
	Kind    record.ChangeKind
	Health  convergence.Health // zero where it was removed
	Seen    time.Time
}

func newEndpoints(pods int, uncounted map[string]bool) *Endpoints {
	return &Endpoints{room: 4*pods + 64, uncounted: uncounted, listed: map[string]convergence.Endpoints{}}
}

// Subscribe returns every change from now on, until Unsubscribe. There is one
// subscriber at a time.
func (e *Endpoints) Subscribe() <-chan EndpointChange {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.subscriber = make(chan EndpointChange, e.room)
	return e.subscriber
}

// Unsubscribe ends what Subscribe began.
func (e *Endpoints) Unsubscribe() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.subscriber = nil
}

// change records when a change was seen in the rollout.
func (e *Endpoints) change(seen time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.changed = append(e.changed, seen)
}

// Changed returns the times at which changes of endpoints were seen in the rollout, in order. A change may leave them as they were.
func (e *Endpoints) Changed() []time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.SortedFunc(slices.Values(e.changed), time.Time.Compare)
}

// set replaces the endpoints of a service port and sends the changes to the
// subscriber.
func (e *Endpoints) set(service string, is convergence.Endpoints, seen time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := e.listed[service]
	e.listed[service] = is
	if e.subscriber == nil {
		return
	}
	for _, c := range changes(service, was, is, seen) {
		select {
		case e.subscriber <- c:
		default: // nobody has read for thousands of changes: the subscriber is gone
		}
	}
}

// changes compares two lists of a service port's endpoints.
func changes(service string, was, is convergence.Endpoints, seen time.Time) []EndpointChange {
	var all []EndpointChange
	for addr, health := range is {
		if before, listed := was[addr]; !listed {
			all = append(all, EndpointChange{service, addr, record.EndpointAdd, health, seen})
		} else if before != health {
			all = append(all, EndpointChange{service, addr, record.EndpointHealth, health, seen})
		}
	}
	for addr := range was {
		if _, listed := is[addr]; !listed {
			all = append(all, EndpointChange{service, addr, record.EndpointRemove, 0, seen})
		}
	}
	return all
}

// healthy counts the healthy endpoints of all service ports but the uncounted.
func (e *Endpoints) healthy() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for service, endpoints := range e.listed {
		if e.uncounted[service] {
			continue
		}
		for _, health := range endpoints {
			if health == convergence.Healthy {
				n++
			}
		}
	}
	return n
}
