package rollout

import (
	"context"
	"fmt"
	"sync/atomic"

	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/environment"
	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/phases"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/recorder"
)

// supervisor starts the control plane again when it ends, as its Deployment would.
type supervisor struct {
	// fixed at the start
	name        string // of the program
	replica     string // the same, if it is one of several; else ""
	program     controlplane.Program
	memoryBytes int64 // limit of the control plane; 0 = none
	sampler     *recorder.Sampler
	journal     *experiment.Journal
	timeline    *phases.Timeline
	say         func(string)
	standing    func() string // how far the run is, for an error

	// left and joined are called when it has ended, and when it serves again; nil = nobody
	// needs to know.
	left, joined func()

	restarted atomic.Bool   // it was, at least once, or has ended for good
	final     atomic.Bool   // its next end is a fault's doing, and for good
	expected  atomic.Bool   // its next end is a fault's doing
	retired   atomic.Bool   // its next end is for good
	back      chan struct{} // takes a notice when it serves again after a fault
}

// run supervises until ctx ends. It starts the control plane again whenever a fault
// ended it, and otherwise once, when it does not run out of memory. An end beyond
// that is the run's.
func (s *supervisor) run(ctx context.Context) error {
	died := false
	for {
		life := s.program.Life()
		select {
		case <-ctx.Done():
			return nil
		case <-life.Done():
		}
		if s.left != nil {
			s.left()
		}
		s.sampler.Ended(s.name, life.Usage())
		if s.retired.Load() {
			return nil
		}
		expected := s.expected.Swap(false)
		switch {
		case controlplane.IsOutOfMemory(life.Err()):
			s.journal.Event(record.OutOfMemory{LimitBytes: s.memoryBytes})
			return fmt.Errorf("%w; %s", life.Err(), s.standing())
		case died && !expected:
			return fmt.Errorf("it ended a second time: %w", life.Err())
		case !expected:
			died = true
			s.say(s.name + " ended and is started again; its log is in " + s.journal.Writer().LogDir())
			s.journal.Warn(record.Warning{
				About:  "controlPlane." + string(s.timeline.Current().Phase),
				Reason: record.ReasonCrashed, Component: s.name, Detail: experiment.FirstLine(life.Err()),
			})
		}
		s.journal.Event(record.ControlPlaneEnded{Name: s.replica, Asked: expected, Error: fmt.Sprint(life.Err())})
		s.restarted.Store(true)
		if s.final.Load() && expected {
			s.back <- struct{}{}
			return nil
		}
		if err := s.program.Restart(ctx); err != nil {
			return err
		}
		if err := s.sampler.Watch(s.name, s.program.Life().Usage()); err != nil {
			return err
		}
		if s.joined != nil {
			s.joined()
		}
		if expected {
			s.back <- struct{}{} // there is room: a fault waits for one before it ends the next
		}
	}
}

// end ends the control plane, gracefully or not, and returns when it was started
// again and serves, or has ended for good.
func (s *supervisor) end(ctx context.Context, graceful bool) error {
	s.expected.Store(true)
	if life := s.program.Life(); !graceful {
		life.Kill()
	} else if err := life.Stop(ctx); err != nil {
		return err
	}
	select {
	case <-s.back:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// awaitEnd returns when a program of the cluster, or the recorder, has ended.
func awaitEnd(ctx context.Context, env environment.Environment, rec *recorder.Recorder) error {
	select {
	case err := <-env.Died():
		return err
	case <-rec.Done():
		return rec.Err()
	case <-ctx.Done():
		return nil
	}
}

// newSupervisor supervises a program of the control plane.
func newSupervisor(r *run, name string, program controlplane.Program) *supervisor {
	return &supervisor{
		name: name, program: program, memoryBytes: r.resources.MemoryBytes,
		sampler: r.sampler, journal: r.journal, timeline: r.timeline, say: r.progress.say, standing: func() string { return r.monitor.status().String() },
		back: make(chan struct{}, 1),
	}
}
