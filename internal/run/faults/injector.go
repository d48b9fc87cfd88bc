package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/run/journal"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// Options configures an injector. All fields are needed.
type Options struct {
	Faults   []scenario.Fault // in all phases, in their order; nil = none
	Pods     int              // of the mesh
	Timeout  time.Duration    // for the mesh to converge again
	Journal  *journal.Journal // takes what they cost; needed
	Fleet    *fleet.Fleet     // whose convergence is awaited; needed
	Timeline *phases.Timeline // measures the phases of faults in steady state; needed
	Say      func(msg string) // shows progress

	// Make makes a fault. It returns when what the fault broke is ready again, or at once where nothing is to be
	// awaited. since is when the fault was requested.
	Make func(ctx context.Context, fault scenario.Fault, since time.Time) error

	// Recovered is called after a fault in steady state that is not the last: it
	// returns when the cluster is ready for the next one. about is the fault's path
	// in the record.
	Recovered func(ctx context.Context, fault scenario.Fault, about string, since time.Time) error

	// Streams returns the open streams by replica of the control plane; nil = it has none.
	// Of each, After and Serves are set.
	Streams func() map[string]*record.FaultReplica
}

// Injector makes the faults of a run.
type Injector struct {
	Options // fixed after NewInjector

	mu   sync.Mutex
	made []*made
}

// made is a fault that was injected.
type made struct {
	fault      scenario.Fault
	index      int // in the record
	begin      time.Time
	end        time.Time // converged again, or no longer waited for; zero before
	background *fleet.Background
	count      xdsprobe.Counts // at its begin
	streams    map[string]*record.FaultReplica
}

// NewInjector returns the injector of a run.
func NewInjector(o Options) *Injector { return &Injector{Options: o} }

// DuringRollout calls follow, which follows the plan of a rollout, while it makes the
// faults of that phase: each when so many sidecars are complete as are due for it. It
// returns when both are done; the faults end with End.
func (i *Injector) DuringRollout(ctx context.Context, follow func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return follow(ctx) })
	group.Go(func() error {
		faults := scenario.FaultsIn(i.Faults, scenario.PhaseRollout)
		for n, fault := range faults {
			if err := i.Fleet.AwaitComplete(ctx, due(n, len(faults), i.Pods)); err != nil {
				return err
			}
			if _, err := i.make(ctx, fault); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// InSteady makes the faults of steady state, each in a phase of its own that lasts
// until the mesh has converged again. One from which it does not recover is the last.
func (i *Injector) InSteady(ctx context.Context) error {
	faults := scenario.FaultsIn(i.Faults, scenario.PhaseSteady)
	for n, fault := range faults {
		if err := i.Fleet.AwaitQuiet(ctx); err != nil { // what went before is no part of it
			return err
		}
		m, err := i.measure(ctx, fault)
		if err == nil && n < len(faults)-1 {
			err = i.Recovered(ctx, fault, fmt.Sprintf("faults.%d", m.index), m.begin)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// measure makes one fault in a phase of its own.
func (i *Injector) measure(ctx context.Context, fault scenario.Fault) (m *made, err error) {
	limited, cancel := context.WithTimeoutCause(ctx, i.Timeout, phases.ErrUnconverged)
	defer cancel()
	err = i.Timeline.Measure(ctx, record.PhaseFault, 0, func(ctx context.Context) (_ record.EndedBy, err error) {
		if m, err = i.make(limited, fault); m == nil {
			return "", err
		}
		var settled record.EndedBy
		if err == nil {
			settled, err = i.Fleet.AwaitSettled(limited)
		}
		return i.Timeline.EndedBy(ctx, limited, "pods.converged", settled, errors.Join(err, i.End(settled, err)))
	})
	return m, err
}

// DuringProbe calls change, which makes changes and calls half once half of them have
// been followed: then the faults of probe are made, one after the other. It returns
// when the mesh has converged again.
func (i *Injector) DuringProbe(ctx context.Context, change func(ctx context.Context, half func()) error) error {
	faults := scenario.FaultsIn(i.Faults, scenario.PhaseProbe)
	if len(faults) == 0 {
		return change(ctx, func() {})
	}
	half := make(chan struct{})
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return change(groupCtx, func() { close(half) }) })
	group.Go(func() error {
		select {
		case <-half:
		case <-groupCtx.Done():
			return context.Cause(groupCtx)
		}
		for _, fault := range faults {
			if _, err := i.make(groupCtx, fault); err != nil {
				return err
			}
		}
		return nil
	})
	err := group.Wait()
	var settled record.EndedBy
	if err == nil {
		settled, err = i.Fleet.AwaitSettled(ctx)
	}
	return errors.Join(err, i.End(settled, err))
}

// make breaks what is to be broken and returns when it is there again. The fault is
// nil if it was not begun.
func (i *Injector) make(ctx context.Context, fault scenario.Fault) (*made, error) {
	m, err := i.begin(fault)
	if err != nil {
		return nil, err
	}
	if err := i.Make(ctx, fault, m.begin); err != nil {
		return m, fmt.Errorf("making the fault %s: %w", fault.Name(), err)
	}
	lasted := time.Since(m.begin)
	i.Journal.Update(func(r *record.Run) { r.Faults[m.index].LastedSeconds = new(lasted.Seconds()) })
	i.Journal.Event(record.FaultOver{Name: fault.Name(), Seconds: lasted.Seconds()})
	return m, nil
}

// begin opens a fault's section in the record.
func (i *Injector) begin(fault scenario.Fault) (*made, error) {
	at, err := i.Timeline.Edge()
	if err != nil {
		return nil, fmt.Errorf("reading the counters before %s: %w", fault.Name(), err)
	}
	m := &made{fault: fault, begin: at, background: i.Fleet.Pods.Begin(), count: i.Fleet.Workers.Counts()}
	if i.Streams != nil {
		m.streams = i.Streams()
	}
	i.Say("fault: " + fault.Name())
	i.Journal.Update(func(r *record.Run) {
		m.index = len(r.Faults)
		r.Faults = append(r.Faults, record.Fault{Name: fault.Name(), Phase: record.PhaseName(fault.Phase), At: at.UTC()})
	})
	i.mu.Lock()
	i.made = append(i.made, m)
	i.mu.Unlock()
	i.Journal.Event(record.FaultBegun{Name: fault.Name()})
	return m, i.Journal.Save()
}

// End closes the sections of all faults that go on: the mesh is at rest again, as settled says, or
// err is why that is no longer awaited. By when it had recovered is known of convergence alone.
func (i *Injector) End(settled record.EndedBy, err error) error {
	open := i.open()
	if len(open) == 0 {
		return nil
	}
	warning := record.Warning{Reason: record.ReasonEndedUnconverged}
	if errors.Is(err, phases.ErrUnconverged) {
		warning.Reason, warning.Values = record.ReasonNotConvergedAgain, map[string]float64{"limitSeconds": i.Timeout.Seconds()}
	}
	converged, quiescent := err == nil && settled == record.EndedByConverged, err == nil && settled == record.EndedByQuiescent
	end, err := i.Timeline.Edge()
	if err != nil {
		return fmt.Errorf("reading the counters after a fault: %w", err)
	}
	count := i.Fleet.Workers.Counts()
	for _, m := range open {
		i.close(m, end, count, converged)
		switch {
		case converged:
			i.Say(fmt.Sprintf("converged again %.1f s after %s", end.Sub(m.begin).Seconds(), m.fault.Name()))
		case quiescent:
			i.Timeline.Quiescent(fmt.Sprintf("faults.%d", m.index), settled)
		default:
			warning.About, warning.Component, warning.Phase = fmt.Sprintf("faults.%d", m.index), m.fault.Name(), record.PhaseName(m.fault.Phase)
			i.Journal.Warn(warning)
		}
	}
	return nil
}

// open returns the faults that are under way.
func (i *Injector) open() []*made {
	i.mu.Lock()
	defer i.mu.Unlock()
	var open []*made
	for _, m := range i.made {
		if m.end.IsZero() {
			open = append(open, m)
		}
	}
	return open
}

func (i *Injector) close(m *made, end time.Time, count xdsprobe.Counts, converged bool) {
	i.mu.Lock()
	m.end = end
	i.mu.Unlock()
	replaced, returned := i.Fleet.Pods.End(m.background)
	var replicas map[string]*record.FaultReplica
	var balance *record.Balance
	if i.Streams != nil {
		replicas = i.Streams()
		balance = Balance(replicas)
		for name, r := range replicas {
			if before := m.streams[name]; before != nil {
				r.Before = before.After
			}
		}
	}
	i.Journal.Update(func(r *record.Run) {
		fault := &r.Faults[m.index]
		if converged {
			fault.Seconds = new(end.Sub(m.begin).Seconds())
		}
		fault.Replaced, fault.Reconnected = &replaced, &returned
		fault.Replicas, fault.Balance = replicas, balance
		fault.Bytes = bytesBetween(m.count, count)
		fault.Attempts, fault.Refusals = new(count.Attempts-m.count.Attempts), new(count.Refusals-m.count.Refusals)
	})
}

// bytesBetween returns the bytes of the responses received from one moment to another, by type.
func bytesBetween(before, after xdsprobe.Counts) map[string]int64 {
	bytes := map[string]int64{}
	for i, of := range after.Subscribed() {
		if i < len(before.ByType) {
			of.Bytes -= before.ByType[i].Bytes
		}
		bytes[of.Type.String()] = of.Bytes
	}
	return bytes
}

// Ended calls do for every fault that was made and has ended: its index in the record,
// the fault, its window, and the latencies of what came back in it.
func (i *Injector) Ended(do func(index int, fault scenario.Fault, begin, end time.Time, l *fleet.Latencies) error) error {
	i.mu.Lock()
	all := append([]*made(nil), i.made...)
	i.mu.Unlock()
	for _, m := range all {
		if m.end.IsZero() {
			continue // the run ended in the middle of it
		}
		if err := do(m.index, m.fault, m.begin, m.end, m.background.Latencies); err != nil {
			return err
		}
	}
	return nil
}

// Balance measures how evenly streams are spread over the replicas that serve; nil of fewer than
// two.
func Balance(replicas map[string]*record.FaultReplica) *record.Balance {
	var counts []int
	sum := 0
	for _, r := range replicas {
		if r.Serves {
			counts, sum = append(counts, r.After), sum+r.After
		}
	}
	s, ok := stats.SpreadOf(counts)
	if !ok {
		return nil
	}
	return &record.Balance{Replicas: len(counts), Streams: sum, Most: s.Max, Expected: s.MaxExpected, Probability: s.P}
}
