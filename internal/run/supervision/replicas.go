package supervision

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/pkg/record"
)

// Replicas are the programs of a control plane that runs as several: each is supervised,
// and connections are sent to those that serve.
type Replicas struct {
	// fixed before the first phase
	of        controlplane.Replicas
	group     string // name of the control plane, and of the job that scrapes them
	all       []*Replica
	sampler   *measure.Sampler
	route     func(service string, endpoints []string) // for simulated sidecars
	streams   func() map[string]int                    // of simulated sidecars, by address
	recorder  *measure.Recorder
	supervise func(name string, run func(context.Context) error)

	mu    sync.Mutex
	edges map[time.Time]map[string]*record.FaultReplica // streams at the edges of phases
}

// Replica is a replica of a control plane.
type Replica struct {
	controlplane.Replica
	supervisor *Supervisor

	// guarded by Replicas.mu
	serves  bool
	started bool
	from    time.Time // when it was started; zero = with the control plane
	to      time.Time // when it ended for good; zero = it did not
}

// NewReplicas returns the replicas of a control plane; nil if it is one program. group is its name, route sends the
// connections of simulated sidecars to addresses, and streams counts their streams by address.
func NewReplicas(of controlplane.Replicas, group string, route func(service string, endpoints []string), streams func() map[string]int, o Options) *Replicas {
	if of == nil {
		return nil
	}
	s := &Replicas{of: of, group: group, sampler: o.Sampler, route: route, streams: streams, edges: map[time.Time]map[string]*record.FaultReplica{}}
	all := of.All()
	for i, one := range all {
		r := &Replica{Replica: one, supervisor: New(one.Name(), one, o)}
		r.supervisor.replica = one.Name()
		r.serves = i < len(all)-of.Spare()
		r.started = r.serves
		r.supervisor.left = func() { s.serve(r, false) }
		r.supervisor.joined = func() { s.serve(r, true) }
		s.all = append(s.all, r)
	}
	return s
}

// Names returns the names of all replicas, in their order; nil if the control plane is one program.
func (s *Replicas) Names() []string {
	var names []string
	if s != nil {
		for _, r := range s.all {
			names = append(names, r.Name())
		}
	}
	return names
}

// All returns all replicas, in their order, the spare ones last.
func (s *Replicas) All() []*Replica { return s.all }

// Started reports whether it was started: a spare one is not from the beginning.
func (r *Replica) Started() bool { return r.started }

// Endpoints returns the endpoints of the replicas that serve now.
func (s *Replicas) Endpoints() []controlplane.Endpoints {
	var all []controlplane.Endpoints
	for _, one := range s.serving() {
		all = append(all, one.Endpoints())
	}
	return all
}

// serving returns the replicas that serve now.
func (s *Replicas) serving() []*Replica {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready()
}

// ready is serving for a caller that holds mu.
func (s *Replicas) ready() (some []*Replica) {
	for _, r := range s.all {
		if r.serves {
			some = append(some, r)
		}
	}
	return some
}

// serve states whether connections are sent to one of them from now on.
func (s *Replicas) serve(r *Replica, serves bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.serves = serves
	s.publish()
}

// publish has connections sent to the replicas that serve now: those that go through the
// control plane's forwarders, and those of simulated sidecars. The caller holds mu.
func (s *Replicas) publish() {
	var some []controlplane.Replica
	var addresses []string
	for _, r := range s.ready() {
		some, addresses = append(some, r.Replica), append(addresses, r.Address())
	}
	s.of.Serve(some)
	s.route(s.of.Service(), addresses)
}

// Begin has those that were started supervised, and connections sent to them. supervise runs in the background
// what supervises one; rec gets the number of replicas that it scrapes.
func (s *Replicas) Begin(rec *measure.Recorder, supervise func(name string, run func(context.Context) error)) {
	s.recorder, s.supervise = rec, supervise
	for _, r := range s.serving() {
		supervise(r.Name(), r.supervisor.Run)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publish()
}

// End ends all that serve at the same time, gracefully or not, and returns when they serve
// again.
func (s *Replicas) End(ctx context.Context, graceful bool) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, r := range s.serving() {
		group.Go(func() error { return r.supervisor.End(ctx, graceful) })
	}
	return group.Wait()
}

// Kill ends the first that serves, for good.
func (s *Replicas) Kill(ctx context.Context) error {
	serving := s.serving()
	if len(serving) < 2 {
		return errors.New("no other replica serves")
	}
	r := serving[0]
	r.supervisor.final.Store(true)
	if err := r.supervisor.End(ctx, false); err != nil {
		return err
	}
	s.mu.Lock()
	r.to = time.Now()
	s.mu.Unlock()
	s.recorder.Expect(s.group, -1)
	return s.awaitNoticed(ctx, r)
}

// noticedEvery is the time between two counts of the streams to a replica that was killed.
const noticedEvery = 10 * time.Millisecond

// awaitNoticed returns when no simulated sidecar counts a stream to a replica that has ended. Until
// then the mesh looks as converged as it was before: the sidecars learn from their connections, a
// moment after the program's end, that they are closed.
func (s *Replicas) awaitNoticed(ctx context.Context, r *Replica) error {
	tick := time.NewTicker(noticedEvery)
	defer tick.Stop()
	for s.streams()[r.Address()] > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// Add starts a spare one.
func (s *Replicas) Add(ctx context.Context) error {
	at := slices.IndexFunc(s.all, func(r *Replica) bool { return !r.started })
	if at < 0 {
		return errors.New("there is no spare replica")
	}
	r := s.all[at]
	r.started = true // faults are made one after the other
	from := time.Now()
	if err := r.Restart(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	r.from = from
	s.mu.Unlock()
	if err := s.sampler.Watch(r.Name(), r.Life().Usage()); err != nil {
		return err
	}
	s.recorder.Expect(s.group, 1)
	s.supervise(r.Name(), r.supervisor.Run)
	s.serve(r, true)
	return nil
}

// Restart restarts those that serve one after the other, as a Deployment does: the next one
// follows when one serves again.
func (s *Replicas) Restart(ctx context.Context) error {
	for _, r := range s.serving() {
		if err := s.restart(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// RestartOne restarts the first that serves, and returns when it serves again.
func (s *Replicas) RestartOne(ctx context.Context) error {
	serving := s.serving()
	if len(serving) < 2 {
		return errors.New("no other replica serves")
	}
	return s.restart(ctx, serving[0])
}

// restart ends one gracefully, which gets no more connections from just before, and returns when it serves again.
func (s *Replicas) restart(ctx context.Context, r *Replica) error {
	s.serve(r, false)
	return r.supervisor.End(ctx, true)
}

// Restarted reports whether one of them has lost its counts.
func (s *Replicas) Restarted() bool {
	return slices.ContainsFunc(s.all, func(r *Replica) bool { return r.supervisor.Restarted() })
}

// Now returns the streams of simulated sidecars to each that was started.
func (s *Replicas) Now() map[string]*record.FaultReplica {
	to := s.streams()
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]*record.FaultReplica{}
	for _, r := range s.all {
		if r.started {
			all[r.Name()] = &record.FaultReplica{After: to[r.Address()], Serves: r.serves}
		}
	}
	return all
}

// Edge takes the streams at the edge of a phase.
func (s *Replicas) Edge(at time.Time) {
	now := s.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.edges[at] = now
}

// At returns the streams at the edge of a phase.
func (s *Replicas) At(edge time.Time) map[string]*record.FaultReplica {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.edges[edge]
}

// Throughout returns the names of those that were there in all of a window.
func (s *Replicas) Throughout(from, to time.Time) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, r := range s.all {
		if r.started && !r.from.After(from) && (r.to.IsZero() || r.to.After(to)) {
			names = append(names, r.Name())
		}
	}
	return names
}
