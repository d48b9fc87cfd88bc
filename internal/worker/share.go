package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/task"
)

const (
	// replaceTimeout limits the wait for another worker in place of one that was lost.
	replaceTimeout = 5 * time.Minute
	// retryInterval is the time between two attempts to connect to it.
	retryInterval = 500 * time.Millisecond
)

// Share is a worker that is replaced by another one when it is lost with all its proxies. These start
// again. Events of the time between are missed.
type Share struct {
	// fixed after NewShare
	options ShareOptions
	life    context.Context
	end     context.CancelFunc

	replacing sync.WaitGroup

	mu      sync.Mutex
	proxies map[string]Proxy
	routes  map[string][]string
	current Worker        // nil while there is none
	there   chan struct{} // closed when there is one again; nil while there is
	before  State         // of all that were lost
	failure error         // why there is none any more
	closed  bool
}

// ShareOptions configures a Share. All fields are needed.
type ShareOptions struct {
	Options
	// Connect connects to the worker, or to the one that has taken its place. It is called again when
	// it fails.
	Connect func(ctx context.Context, o Options) (Worker, error)
	// Lost is called when the worker is lost and all its events were delivered, before any event of
	// the one that takes its place.
	Lost func(w Worker, err error)
	// Replaced is called when another one has taken its place, with the time since the loss.
	Replaced func(w Worker, after time.Duration)
}

var _ Worker = (*Share)(nil)

// NewShare connects to the first worker.
func NewShare(ctx context.Context, o ShareOptions) (*Share, error) {
	s := &Share{options: o, proxies: map[string]Proxy{}, routes: map[string][]string{}}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx)) // until Close
	s.there = make(chan struct{})
	w, err := o.Connect(ctx, s.watched())
	if err != nil {
		return nil, err
	}
	s.take(w)
	return s, nil
}

// watched returns the options of a worker that is replaced when it is lost.
func (s *Share) watched() Options {
	o := s.options.Options
	o.Lost = func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.closed {
			s.replacing.Go(func() { s.replace(err) }) // the caller is what Close of the lost one waits for
		}
	}
	return o
}

// take starts all proxies of the share in a worker.
func (s *Share) take(w Worker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for service, endpoints := range s.routes {
		w.Route(service, endpoints)
	}
	for _, p := range s.proxies {
		p.Delay = 0
		if err := w.Start(p); err != nil {
			s.options.Failed(err)
		}
	}
	s.current = w
	close(s.there)
	s.there = nil
}

// replace connects to another worker in place of the one that was lost.
func (s *Share) replace(cause error) {
	at := time.Now()
	s.mu.Lock()
	for s.current == nil && s.failure == nil { // it was lost before the share had taken it
		there := s.there
		s.mu.Unlock()
		<-there
		s.mu.Lock()
	}
	old := s.current
	if old == nil {
		s.mu.Unlock()
		return
	}
	s.current, s.there = nil, make(chan struct{})
	state := old.State()
	s.before.Started += state.Started
	state.Counts.Connected = 0 // its streams ended with it
	s.before.Counts = s.before.Counts.Plus(state.Counts)
	s.before.Clock.Uncertainty = max(s.before.Clock.Uncertainty, state.Clock.Uncertainty)
	s.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(s.life, replaceTimeout, fmt.Errorf("none took its place within %v", replaceTimeout))
	defer cancel()
	_ = old.Close(ctx) // it is lost: this only waits for its goroutines
	s.options.Lost(s, cause)
	w, err := s.options.Connect(ctx, s.watched())
	for err != nil && task.Sleep(ctx, retryInterval) {
		w, err = s.options.Connect(ctx, s.watched())
	}
	if err != nil {
		s.mu.Lock()
		s.failure = errors.Join(cause, err)
		close(s.there)
		closed := s.closed
		s.mu.Unlock()
		if !closed {
			s.options.Failed(s.failure)
		}
		return
	}
	s.take(w)
	s.options.Replaced(s, time.Since(at))
}

// Start is part of Worker.
func (s *Share) Start(p Proxy) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proxies[p.ID] = p
	if s.current == nil {
		return nil // it is started with the others
	}
	return s.current.Start(p)
}

// Do is part of Worker. Of proxies that start again, it only drops those to be stopped.
func (s *Share) Do(action Action, ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if action == Stop {
		for _, id := range ids {
			delete(s.proxies, id)
		}
	}
	if s.current != nil {
		s.current.Do(action, ids...)
	}
}

// Route is part of Worker.
func (s *Share) Route(service string, endpoints []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.routes[service] = endpoints
	if s.current != nil {
		s.current.Route(service, endpoints)
	}
}

// Holdings is part of Worker. It waits while there is no worker.
func (s *Share) Holdings(ctx context.Context, names bool) ([]Holding, error) {
	for {
		s.mu.Lock()
		w, there, failure := s.current, s.there, s.failure
		s.mu.Unlock()
		switch {
		case failure != nil:
			return nil, failure
		case w != nil:
			return w.Holdings(ctx, names)
		}
		select {
		case <-there:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// State is part of Worker: it sums up all workers that the share had. The uncertainty is the largest of any.
func (s *Share) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := State{Name: s.options.Name}
	if s.current != nil {
		state = s.current.State()
	}
	state.Started += s.before.Started
	state.Counts = s.before.Counts.Plus(state.Counts)
	state.Clock.Uncertainty = max(state.Clock.Uncertainty, s.before.Clock.Uncertainty)
	return state
}

// Close is part of Worker.
func (s *Share) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.replacing.Wait()
	if s.current == nil {
		return nil // that it was lost was reported
	}
	return s.current.Close(ctx)
}
