package dataplane

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Load is common to open and closed loops.
type Load struct {
	Target Target
	// HTTP is the version, 1 (HTTP/1.1) or 2 (without TLS, with prior knowledge); 0 means
	// 1.
	HTTP int
	// Connections is, in an open loop, the largest number of requests in flight, each on
	// its own connection with HTTP/1.1; 0 means 1024. In a closed loop it is the constant
	// number of connections; 0 means 1. With several addresses, idle connections that
	// wait for their address's turn are not counted.
	Connections int
	// NoKeepalive opens a new connection for every request.
	NoKeepalive bool
	// Timeout limits the time from when a request was due to its answer; 0 means 10 s.
	Timeout time.Duration
	// Warmup is the time during which requests are sent that do not count; 0 means none.
	Warmup time.Duration

	// Dial connects to an address of the Target; nil = as net.Dialer does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error) `json:"-"`
}

// OpenLoad is an open loop: requests are sent on a schedule, independent of earlier ones.
type OpenLoad struct {
	Load
	Arrivals Arrivals      // "" means Constant
	Rate     float64       // requests a second, above 0
	Seed     uint64        // of Poisson arrivals
	Duration time.Duration // of the schedule, after Warmup

	clock clock // nil = the kernel's
}

// ClosedLoad is a closed loop: each of the Connections sends its next request when the
// previous one was answered. It measures the time of a server that has no queue: a stall
// shows up in only one request for each connection.
type ClosedLoad struct {
	Load
	Requests int // that count, above 0
}

const (
	defaultBound   = 1024
	defaultTimeout = 10 * time.Second
)

func (l *Load) validate(defaultConnections int) error {
	if err := l.Target.Validate(); err != nil {
		return err
	}
	if l.HTTP == 0 {
		l.HTTP = 1
	}
	if l.Connections == 0 {
		l.Connections = defaultConnections
	}
	if l.Timeout == 0 {
		l.Timeout = defaultTimeout
	}
	if l.Dial == nil {
		l.Dial = new(net.Dialer).DialContext
	}
	switch {
	case l.HTTP != 1 && l.HTTP != 2:
		return fmt.Errorf("speaking HTTP/%d: want 1 or 2", l.HTTP)
	case l.Connections < 0:
		return fmt.Errorf("sending over %d connections: want 1 or more", l.Connections)
	case l.Timeout < 0 || l.Warmup < 0:
		return fmt.Errorf("sending with a timeout of %s after a warm-up of %s: want none below zero", l.Timeout, l.Warmup)
	}
	return nil
}

// caller makes requests.
type caller interface {
	// call starts a request and returns without waiting for its end; the exact times when
	// it was sent and when it ended are reported to the sink. It returns false, and sends
	// nothing, if the limit of requests in flight is reached.
	call(due time.Duration) bool
	// abort ends every request in flight, and later ones at once.
	abort()
	// close aborts and returns when all goroutines have ended.
	close()
	// connections returns the most connections that were open at once.
	connections() int
}

func newCaller(ctx context.Context, l Load, s *sink) caller {
	if l.HTTP == 2 {
		return newHTTP2(ctx, l, s)
	}
	return newHTTP1(ctx, l, s)
}

// Open sends requests on a schedule and returns when the last is answered or has timed
// out. With an error, which wraps ctx's cause if that ended it, it returns the result so
// far.
func Open(ctx context.Context, l OpenLoad) (*Result, error) {
	if err := l.validate(defaultBound); err != nil {
		return nil, err
	}
	if l.Arrivals == "" {
		l.Arrivals = Constant
	}
	if !(l.Rate > 0) || l.Duration <= 0 {
		return nil, fmt.Errorf("sending %g requests a second for %s: want more than none", l.Rate, l.Duration)
	}
	if l.clock == nil {
		c, err := newPrecise(ctx)
		if err != nil {
			return nil, err
		}
		l.clock = c
	}
	s := newSink(l.Warmup, l.Duration)
	c := newCaller(ctx, l.Load, s)
	err := follow(ctx, l, s, c)
	if err != nil {
		c.abort()
	}
	stop := context.AfterFunc(ctx, c.abort)
	s.pending.Wait()
	stop()
	c.close()
	if closeErr := l.clock.close(); err == nil {
		err = closeErr
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return s.result(c.connections()), err
}

// follow follows the schedule: it waits for nothing else.
func follow(ctx context.Context, l OpenLoad, s *sink, c caller) error {
	schedule := NewSchedule(l.Arrivals, l.Rate, l.Seed)
	end := l.Warmup + l.Duration
	for {
		due := min(schedule.Next(), end)
		now := s.now()
		for now < due {
			if err := l.clock.wait(ctx, due-now); err != nil {
				return err
			}
			now = s.now()
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if due == end { // the window's end is waited for, too
			return nil
		}
		s.begin(due)
		if !c.call(due) {
			s.notSent(due)
		}
	}
}

// Closed keeps all connections busy until this number of requests was answered; it
// returns like Open. A request that fails counts too, and makes its connection wait a
// moment, so that an unreachable server is asked at most a thousand times a second.
func Closed(ctx context.Context, l ClosedLoad) (*Result, error) {
	if err := l.validate(1); err != nil {
		return nil, err
	}
	if l.Requests < 1 {
		return nil, fmt.Errorf("sending %d requests: want 1 or more", l.Requests)
	}
	s := newSink(l.Warmup, 0)
	s.limit = int64(l.Requests)
	c := newCaller(ctx, l.Load, s)
	next := func() {
		if now := s.now(); ctx.Err() == nil && s.take(now) {
			if !c.call(now) {
				s.notSent(now)
			}
		}
	}
	s.ended = func(failed bool) {
		if failed {
			s.pending.Add(1)
			time.AfterFunc(time.Duration(l.Connections)*time.Millisecond, func() {
				defer s.pending.Done()
				next()
			})
			return
		}
		next()
	}
	for range l.Connections {
		next()
	}
	stop := context.AfterFunc(ctx, c.abort)
	s.pending.Wait()
	stop()
	c.close()
	return s.result(c.connections()), context.Cause(ctx)
}
