package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/faults"
	"scaler.mesh/scaler/pkg/phases"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/recorder"
)

// maxReplicas is more istiods than a mesh has use for.
const maxReplicas = 16

// replicas are the programs of a control plane that runs as several: each is supervised,
// and connections are sent to those that serve.
type replicas struct {
	// fixed before the first phase
	of        controlplane.Replicas
	group     string // name of the control plane, and of the job that scrapes them
	all       []*replica
	sampler   *recorder.Sampler
	recorder  *recorder.Recorder
	route     func(service string, endpoints []string) // for simulated sidecars
	streams   func() map[string]int                    // of simulated sidecars, by address
	supervise func(*replica)                           // has one supervised

	mu    sync.Mutex
	edges map[time.Time]map[string]*record.FaultReplica // streams at the edges of phases
}

// replica is one of them.
type replica struct {
	controlplane.Replica
	supervisor *supervisor

	// guarded by replicas.mu
	serves  bool
	started bool
	from    time.Time // when it was started; zero = with the control plane
	to      time.Time // when it ended for good; zero = it did not
}

// newReplicas are those of a control plane; nil if it is one program. supervised makes what
// supervises one of them.
func newReplicas(of controlplane.Replicas, group string, supervised func(controlplane.Replica) *supervisor) *replicas {
	if of == nil {
		return nil
	}
	s := &replicas{of: of, group: group, edges: map[time.Time]map[string]*record.FaultReplica{}}
	all := of.All()
	for i, one := range all {
		r := &replica{Replica: one, supervisor: supervised(one)}
		r.serves = i < len(all)-of.Spare()
		r.started = r.serves
		r.supervisor.left = func() { s.serve(r, false) }
		r.supervisor.joined = func() { s.serve(r, true) }
		s.all = append(s.all, r)
	}
	return s
}

// names are those of all, in their order; nil of a control plane that is one program.
func (s *replicas) names() []string {
	var names []string
	if s != nil {
		for _, r := range s.all {
			names = append(names, r.Name())
		}
	}
	return names
}

// serving are those that serve now.
func (s *replicas) serving() []*replica {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready()
}

// ready is serving. The caller holds mu.
func (s *replicas) ready() (some []*replica) {
	for _, r := range s.all {
		if r.serves {
			some = append(some, r)
		}
	}
	return some
}

// serve states whether connections are sent to one of them from now on.
func (s *replicas) serve(r *replica, serves bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.serves = serves
	s.publish()
}

// publish has connections sent to the replicas that serve now: those that go through the
// control plane's forwarders, and those of simulated sidecars. The caller holds mu.
func (s *replicas) publish() {
	var some []controlplane.Replica
	var addresses []string
	for _, r := range s.ready() {
		some, addresses = append(some, r.Replica), append(addresses, r.Address())
	}
	s.of.Serve(some)
	s.route(s.of.Service(), addresses)
}

// begin has those that were started supervised, and connections sent to them.
func (s *replicas) begin() {
	for _, r := range s.serving() {
		s.supervise(r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publish()
}

// end ends all that serve at the same time, gracefully or not, and returns when they serve
// again.
func (s *replicas) end(ctx context.Context, graceful bool) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, r := range s.serving() {
		group.Go(func() error { return r.supervisor.end(ctx, graceful) })
	}
	return group.Wait()
}

// kill ends the first that serves, for good.
func (s *replicas) kill(ctx context.Context) error {
	serving := s.serving()
	if len(serving) < 2 {
		return errors.New("no other replica serves")
	}
	r := serving[0]
	r.supervisor.final.Store(true)
	if err := r.supervisor.end(ctx, false); err != nil {
		return err
	}
	s.mu.Lock()
	r.to = time.Now()
	s.mu.Unlock()
	s.recorder.Expect(s.group, -1)
	return nil
}

// add starts a spare one.
func (s *replicas) add(ctx context.Context) error {
	at := slices.IndexFunc(s.all, func(r *replica) bool { return !r.started })
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
	s.supervise(r)
	s.serve(r, true)
	return nil
}

// restart restarts those that serve one after the other, as a Deployment does: one that is
// about to end gets no more connections, and the next one follows when it serves again.
func (s *replicas) restart(ctx context.Context) error {
	for _, r := range s.serving() {
		s.serve(r, false)
		if err := r.supervisor.end(ctx, true); err != nil {
			return err
		}
	}
	return nil
}

// restarted reports whether one of them has lost its counts.
func (s *replicas) restarted() bool {
	return slices.ContainsFunc(s.all, func(r *replica) bool { return r.supervisor.restarted.Load() })
}

// now are the streams of simulated sidecars to each that was started.
func (s *replicas) now() map[string]*record.FaultReplica {
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

// edge takes the streams at the edge of a phase.
func (s *replicas) edge(at time.Time) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.edges[at] = now
}

// at are the streams at the edge of a phase.
func (s *replicas) at(edge time.Time) map[string]*record.FaultReplica {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.edges[edge]
}

// throughout are the names of those that were there in all of a window.
func (s *replicas) throughout(from, to time.Time) []string {
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

// measureReplicas computes the usage and the streams of each replica over one phase.
func (m measurement) measureReplicas(ctx context.Context, w phases.Window) error {
	if m.replicas == nil {
		return nil
	}
	document := m.document.Replicas
	if document == nil {
		document = &record.Replicas{Each: map[string]*record.Replica{}}
		m.document.Replicas = document
	}
	streams := m.replicas.at(w.End)
	*document.Balance.At(w.Name) = faults.Balance(streams)
	for _, r := range m.replicas.all {
		if !r.started {
			continue
		}
		usage, err := m.recorder.InstanceFigures(ctx, m.sampler, m.controlPlaneName(), r.Name(), w.Begin, w.End)
		if err != nil {
			return err
		}
		if usage.Ran == 0 {
			continue
		}
		one := document.Each[r.Name()]
		if one == nil {
			one = &record.Replica{}
			document.Each[r.Name()] = one
		}
		*one.Usage.At(w.Name) = experiment.UsageOf(usage)
		if streams[r.Name()] == nil {
			continue // it was added later
		}
		if err := m.measureStreams(ctx, w, r.Name(), one, streams[r.Name()].After); err != nil {
			return err
		}
	}
	return nil
}

// measureStreams compares the streams to one replica with its own count. In steady state
// they must be equal.
func (m measurement) measureStreams(ctx context.Context, w phases.Window, name string, one *record.Replica, ours int) error {
	*one.Streams.At(w.Name) = &ours
	expr := m.driver.Metrics.Counters.ReplicaConnected
	if expr == "" {
		return nil
	}
	expr = strings.ReplaceAll(expr, "$instance", name)
	theirs, ok, err := m.recorder.Value(ctx, expr, w.End)
	if err != nil {
		return err
	}
	if ok {
		*one.OwnStreams.At(w.Name) = &theirs
	}
	if w.Name == record.PhaseSteady && int(theirs) != ours && m.spec.RealSidecars == 0 {
		m.journal.Warn(record.Warning{
			About: "replicas.streams", Reason: record.ReasonCountsDiffer, Component: name, Phase: w.Name, Detail: expr,
			Values: map[string]float64{"theirs": theirs, "ours": float64(ours)},
		})
	}
	return nil
}

// programsOf are the programs of a run's control plane, one or several.
type programsOf struct{ *run }

// endpoints are where the programs of a control plane are asked about themselves: each
// replica that serves, or the only one.
func (r programsOf) endpoints() []controlplane.Endpoints {
	if r.replicas == nil {
		return []controlplane.Endpoints{r.adapter.Server.Endpoints()}
	}
	var all []controlplane.Endpoints
	for _, one := range r.replicas.serving() {
		all = append(all, one.Endpoints())
	}
	return all
}

// usageKnown reports whether it is known what the programs of a control plane use: they run
// on this machine, or report it themselves.
func usageKnown(c *controlplane.ControlPlane) bool {
	return c.Program != nil || c.Replicas != nil || c.Instances != nil
}

// replicated reports whether the control plane is started as several programs.
func replicated(s Spec) bool { return s.Replicas > 1 || spareReplicas(s) > 0 }

// spareReplicas is how many are added while the run goes on.
func spareReplicas(s Spec) int {
	n := 0
	for _, f := range s.Faults {
		if f.Kind == faults.AddReplica {
			n++
		}
	}
	return n
}

// sources are what the programs of the control plane use, by name.
func (r programsOf) sources() map[string]recorder.Source {
	sources := map[string]recorder.Source{}
	switch {
	case r.adapter.Program != nil:
		sources[r.controlPlaneName()] = r.adapter.Program.Life().Usage()
	case r.replicas != nil:
		for _, one := range r.replicas.all {
			r.sampler.Join(r.controlPlaneName(), one.Name())
			if one.started {
				sources[one.Name()] = one.Life().Usage()
			}
		}
	default:
		addInstances(r.run, sources)
	}
	return sources
}

// targets are where the programs of the control plane are scraped.
func (r programsOf) targets() []recorder.Target {
	job := r.controlPlaneName()
	if len(r.adapter.Instances) > 0 {
		return instanceTargets(job, r.adapter.Instances)
	}
	if r.replicas == nil {
		if url := r.adapter.Server.Endpoints().Metrics; url != "" {
			return []recorder.Target{{Job: job, URL: url}}
		}
		return nil
	}
	var targets []recorder.Target
	for _, one := range r.replicas.all {
		targets = append(targets, recorder.Target{Job: job, Instance: one.Name(), URL: one.Endpoints().Metrics, Later: !one.started})
	}
	return targets
}

// names are those of the programs of the control plane that run on this machine.
func (r programsOf) names() []string {
	if r.adapter.Instances != nil {
		return nil
	}
	if r.adapter.Replicas == nil {
		return []string{r.controlPlaneName()}
	}
	var names []string
	for _, one := range r.adapter.Replicas.All() {
		names = append(names, one.Name())
	}
	return names
}

// checkReplicas checks how many programs the control plane is to run as, and the faults that
// end or add some.
func checkReplicas(s Spec, d controlplane.Driver) error {
	if s.Replicas < 0 || s.Replicas > maxReplicas {
		return fmt.Errorf("parsing --replicas %d: want 1 to %d", s.Replicas, maxReplicas)
	}
	if s.Upgrade != nil && replicated(s) {
		return fmt.Errorf("parsing --replicas %d: want 1 with an upgrade, which has one of each version", s.Replicas)
	}
	if !d.Replicas {
		if s.Replicas > 1 {
			return fmt.Errorf("parsing --replicas %d: want 1 with --control-plane %s, which is one program", s.Replicas, s.ControlPlane)
		}
		for _, f := range s.Faults {
			if f.OfReplicas() {
				return fmt.Errorf("parsing --fault %q: want none of replicas with --control-plane %s, which is one program", f, s.ControlPlane)
			}
		}
	}
	if total := s.Replicas + spareReplicas(s); total > maxReplicas {
		return fmt.Errorf("parsing --replicas %d: want %d at most, with those that --fault adds", s.Replicas, maxReplicas)
	}
	return faults.CheckReplicas(s.Faults, max(1, s.Replicas))
}

// edge reads the counters of all processes, and counts streams: the edge of a phase.
func edge(r *run) (time.Time, error) {
	at, err := r.workers.edge(r.sampler)
	if err == nil && r.replicas != nil {
		r.replicas.edge(at)
	}
	return at, err
}
