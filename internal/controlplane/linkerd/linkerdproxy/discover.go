package linkerdproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/linkerd/linkerd2-proxy-api/go/destination"
	"google.golang.org/protobuf/proto"

	"scaler.mesh/scaler/internal/task"
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

// idleAge is the time for which an unused lookup is kept, such as one of an address that was no
// Service's: the next call of the workload looks it up again (DEFAULT_OUTBOUND_ROUTER_MAX_IDLE_AGE).
const idleAge = 5 * time.Second

// discover keeps what the workload calls looked up until ctx ends.
func (p *Proxy) discover(ctx context.Context) {
	counters := p.services.Counters
	failures, answeredBefore := 0, false
	for n := 1; ctx.Err() == nil; n++ {
		counters.Attempts.Add(1)
		a := &attempt{Proxy: p, ended: proxy.StreamEnded{Attempt: n, Dialed: time.Now()}, again: answeredBefore}
		a.run(ctx)
		e := a.ended
		e.Ended = time.Now()
		if e.Responses > 0 {
			failures, answeredBefore = 0, true
		}
		switch {
		case ctx.Err() != nil:
			e.Class = proxy.Stopped
		case e.Connected.IsZero():
			e.Class = proxy.Unreachable
		default:
			e.Class = classify(e.Err, e.Responses > 0)
		}
		switch e.Class {
		case proxy.Stopped:
		case proxy.Refused:
			counters.Refusals.Add(1)
		default:
			counters.Failures.Add(1)
		}
		if e.Class != proxy.Stopped {
			failures++
			e.Backoff = p.backoff(failures)
		}
		p.services.Observer.StreamEnded(p.spec.ID, e) // no other event is reported at the same time
		if e.Backoff > 0 && !task.Sleep(ctx, e.Backoff) {
			return
		}
	}
}

// attempt is one connection to Destination with its streams.
type attempt struct {
	*Proxy
	again   bool // an earlier one was answered
	client  destination.DestinationClient
	fail    context.CancelCauseFunc // ends it
	streams sync.WaitGroup

	// guarded by the proxy's reporting
	ended   proxy.StreamEnded
	waiting int // streams that were not answered yet, or will be opened
}

// run connects, opens the streams and returns when they have ended.
func (a *attempt) run(ctx context.Context) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	a.fail = fail
	a.setCut(fail)
	defer a.setCut(nil)
	conn, err := a.dial(ctx, a.spec.Address)
	if err != nil {
		a.ended.Err = err
		return
	}
	defer conn.Close()
	a.ended.Connected = conn.connected
	a.services.Counters.Connected.Add(1)
	defer a.services.Counters.Connected.Add(-1)
	if a.again {
		a.services.Counters.Reconnects.Add(1)
	}
	a.client = destination.NewDestinationClient(conn)
	a.waiting = 2*len(a.spec.Targets) + len(a.spec.Inbound)
	opened := proxy.StreamOpened{Attempt: a.ended.Attempt, Server: conn.server, Dialed: a.ended.Dialed, Connected: conn.connected}
	// What is reported of the streams comes after this.
	a.reporting.Lock()
	for _, target := range a.spec.Targets {
		a.streams.Go(func() { a.lookUp(ctx, target, true) })
	}
	for _, name := range a.spec.Inbound {
		a.streams.Go(func() { a.lookUp(ctx, name, false) })
	}
	opened.Requested = time.Now()
	a.services.Observer.StreamOpened(a.spec.ID, opened)
	a.reporting.Unlock()
	<-ctx.Done()
	a.streams.Wait()
	a.ended.Err = context.Cause(ctx)
}

// lookUp holds the profile of a target, and its endpoints if it resolves it.
func (a *attempt) lookUp(ctx context.Context, target string, resolve bool) {
	for {
		found, err := a.profile(ctx, target, resolve)
		if err != nil {
			a.fail(err)
			return
		}
		if found || !task.Sleep(ctx, a.spec.Slowdown.Of(idleAge)) {
			return
		}
	}
}

// profile holds the profile of a target until ctx ends. It returns false for an address of no service.
func (a *attempt) profile(ctx context.Context, target string, resolve bool) (found bool, err error) {
	own, cancel := context.WithCancel(ctx)
	defer cancel()
	_, port, err := net.SplitHostPort(target)
	if err != nil {
		return false, err
	}
	stream, err := a.client.GetProfile(own, &destination.GetDestination{Path: target, ContextToken: a.context})
	if err != nil {
		return false, err
	}
	for first := true; ; first = false {
		m, err := stream.Recv()
		if err != nil {
			return true, ended(err)
		}
		received := time.Now()
		if m.GetFullyQualifiedName() == "" {
			return false, nil
		}
		name := m.GetFullyQualifiedName() + ":" + port
		held, err := profileOf(convergence.Key{Type: Profile, Name: name}, m)
		if err != nil {
			return true, err
		}
		a.received(held, first, held.Size, received)
		if first && resolve {
			a.streams.Go(func() {
				if err := a.resolve(ctx, name); err != nil {
					a.fail(err)
				}
			})
		}
	}
}

// resolve holds the endpoints of a service port, by its name, until ctx ends.
func (a *attempt) resolve(ctx context.Context, name string) error {
	stream, err := a.client.Get(ctx, &destination.GetDestination{Path: name, ContextToken: a.context})
	if err != nil {
		return err
	}
	key, listed := convergence.Key{Type: Addresses, Name: name}, addresses{}
	for first := true; ; first = false {
		m, err := stream.Recv()
		if err != nil {
			return ended(err)
		}
		received := time.Now()
		listed.take(m)
		a.received(listed.resource(key), first, proto.Size(m), received)
	}
}

// ended returns the reason why a stream ended.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the server ended a stream")
	}
	return err
}

// received takes one message of a stream, the first of it or another, with what the proxy holds by it.
func (a *attempt) received(held *proxy.Resource, first bool, bytes int, at time.Time) {
	a.reporting.Lock()
	defer a.reporting.Unlock()
	a.services.Counters.Received(held.Type, bytes)
	if first {
		a.waiting--
	}
	e := proxy.Update{Type: held.Type, Bytes: bytes, Complete: a.waiting == 0}
	a.ended.Responses++
	e.ReceivedAt, e.AckedAt = at, at
	if e.Wasted = a.hold(held); e.Wasted {
		a.services.Counters.Wasted.Add(1)
	}
	e.Set = []convergence.Resource{{Key: held.Key, Content: held.Content}}
	a.services.Observer.Updated(a.spec.ID, e)
}
