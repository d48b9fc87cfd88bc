package worker

import (
	"sync"
	"time"

	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

// tableSize is the number of keys or contents after which both ends start a new table.
const tableSize = 1 << 16

// encoder is the proxy.Observer of a worker's proxies, and makes batches of their events. It never
// blocks: events that are not sent yet are kept.
type encoder struct {
	base time.Time     // that times are counted from; before any event
	more chan struct{} // holds a notice when a batch is due

	mu      sync.Mutex
	numbers map[string]int // of proxies, by id
	waiting []observed     // events to be sent

	// only used by the goroutine that makes batches
	keys     map[convergence.Key]int
	contents map[*convergence.Content]int
}

// observed is an event that waits to be sent.
type observed struct {
	event
	update *proxy.Update // of which event.Updated is made when it is sent
}

var _ proxy.Observer = (*encoder)(nil)

func newEncoder() *encoder {
	e := &encoder{
		// A nanosecond before now: no time is zero.
		base: time.Now().Add(-1), more: make(chan struct{}, 1), numbers: map[string]int{},
	}
	e.forget()
	return e
}

func (e *encoder) forget() {
	e.keys, e.contents = map[convergence.Key]int{}, map[*convergence.Content]int{}
}

// at converts a time to the clock of this process; zero becomes 0.
func (e *encoder) at(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	return t.Sub(e.base)
}

// number sets the number of a proxy's id.
func (e *encoder) number(id string, number int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.numbers[id] = number
}

// numberOf returns the number of a proxy's id.
func (e *encoder) numberOf(id string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.numbers[id]
}

func (e *encoder) add(id string, o observed) {
	e.mu.Lock()
	o.Proxy = e.numbers[id]
	e.waiting = append(e.waiting, o)
	e.mu.Unlock()
	task.Notify(e.more)
}

// TokenFetched is part of proxy.Observer.
func (e *encoder) TokenFetched(id string, t proxy.TokenFetched) {
	e.add(id, observed{event: event{Token: &tokenFetched{e.at(t.Asked), e.at(t.Received), t.Waited, text(t.Err)}}})
}

// StreamOpened is part of proxy.Observer.
func (e *encoder) StreamOpened(id string, s proxy.StreamOpened) {
	e.add(id, observed{event: event{Opened: &streamOpened{s.Attempt, s.Server, e.at(s.Dialed), e.at(s.Connected), e.at(s.Requested)}}})
}

// Updated is part of proxy.Observer.
func (e *encoder) Updated(id string, u proxy.Update) {
	e.add(id, observed{event: event{Updated: &updated{
		Type: u.Type, Wasted: u.Wasted, Complete: u.Complete, Bytes: u.Bytes, Rejected: text(u.Rejected),
		ReceivedAt: e.at(u.ReceivedAt), AckedAt: e.at(u.AckedAt), Node: u.Node,
	}}, update: &u})
}

// StreamEnded is part of proxy.Observer.
func (e *encoder) StreamEnded(id string, s proxy.StreamEnded) {
	e.add(id, observed{event: event{Ended: &streamEnded{
		s.Attempt, e.at(s.Dialed), e.at(s.Connected), e.at(s.Ended), s.Class, text(s.Err), s.Responses, s.Backoff,
	}}})
}

// Certified is part of proxy.Observer.
func (e *encoder) Certified(id string, c proxy.Certificate) {
	e.add(id, observed{event: event{Certificate: &certificate{
		c.Identity, c.Attempt, c.Key, e.at(c.Sent), e.at(c.Verified), c.Expires, c.Backoff, text(c.Err),
	}}})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// take moves the waiting events into a batch, with the keys and contents that they refer to.
func (e *encoder) take(b *batch) {
	e.mu.Lock()
	waiting := e.waiting
	e.waiting = nil
	e.mu.Unlock()
	if len(e.keys) > tableSize || len(e.contents) > tableSize {
		e.forget()
		b.Forget = true
	}
	for _, o := range waiting {
		if o.update != nil {
			for _, r := range o.update.Set {
				o.Updated.Set = append(o.Updated.Set, resource{e.key(b, r.Key), e.content(b, r.Content)})
			}
			for _, k := range o.update.Removed {
				o.Updated.Removed = append(o.Updated.Removed, e.key(b, k))
			}
		}
		b.Events = append(b.Events, o.event)
	}
}

// holdings encodes the answers of a batch.
func (e *encoder) holdings(b *batch) {
	for i := range b.Holdings {
		answer := &b.Holdings[i]
		for _, h := range answer.raw {
			w := holding{Proxy: e.numberOf(h.ID), Types: h.Types}
			for _, k := range h.Keys {
				w.Keys = append(w.Keys, e.key(b, k))
			}
			answer.All = append(answer.All, w)
		}
	}
}

// key returns the number of a key, and adds a new one to the batch.
func (e *encoder) key(b *batch, k convergence.Key) int {
	n, ok := e.keys[k]
	if !ok {
		n = len(e.keys) + 1
		e.keys[k] = n
		b.Keys = append(b.Keys, k)
	}
	return n
}

// content returns the number of a content, and adds a new one to the batch; 0 for nil.
// Contents are identified by their address: a worker's store keeps equal ones once, and
// otherwise the receiver finds by their digest that they are equal.
func (e *encoder) content(b *batch, c *convergence.Content) int {
	if c == nil {
		return 0
	}
	n, ok := e.contents[c]
	if !ok {
		n = len(e.contents) + 1
		e.contents[c] = n
		b.Contents = append(b.Contents, content{c.Digest, c.Endpoints, c.Members, c.Markers})
	}
	return n
}
