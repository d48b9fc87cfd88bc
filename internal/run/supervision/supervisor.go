// Package supervision restarts the programs of a control plane when they end, as their Deployment would, and sends
// the connections of proxies to those that serve. What ends a program on purpose is in package faults, and
// how the programs are started in package controlplane.
package supervision

import (
	"context"
	"fmt"
	"sync/atomic"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/internal/run/journal"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
)

// Options configures a Supervisor. All fields but MemoryBytes are required.
type Options struct {
	MemoryBytes int64            // limit of the control plane; 0 = none
	Sampler     *measure.Sampler // which samples the program's usage
	Journal     *journal.Journal // which takes events and warnings
	Timeline    *phases.Timeline // which knows the current phase
	Say         func(string)     // shows a line to the user
	Standing    func() string    // how far the run is, for an error
}

// Supervisor restarts one program of the control plane when it ends.
type Supervisor struct {
	// fixed at the start
	Options
	name    string // of the program
	replica string // the same, if it is one of several; else ""
	about   string // path of its usage in the record, without the phase
	program controlplane.Program

	// left and joined are called when it has ended, and when it serves again; nil = nobody
	// needs to know.
	left, joined func()

	restarted atomic.Bool   // it was, at least once, or has ended for good
	final     atomic.Bool   // its next end is a fault's doing, and for good
	expected  atomic.Bool   // its next end is a fault's doing
	retired   atomic.Bool   // its next end is for good
	back      chan struct{} // takes a notice when it serves again after a fault
}

// New supervises a program once it is Run.
func New(name string, program controlplane.Program, o Options) *Supervisor {
	return &Supervisor{Options: o, name: name, about: "controlPlane", program: program, back: make(chan struct{}, 1)}
}

// NewHelper supervises a program that helps the control plane once it is Run. The memory limit is not its own.
func NewHelper(h controlplane.Helper, o Options) *Supervisor {
	o.MemoryBytes = 0
	s := New(h.Name, h.Program, o)
	s.replica, s.about = h.Name, "cluster."+h.Name
	return s
}

// Run supervises until ctx ends. It starts the control plane again whenever a fault
// ended it, and otherwise once, when it does not run out of memory. An end beyond
// that is the run's.
func (s *Supervisor) Run(ctx context.Context) error {
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
		s.Sampler.Ended(s.name, life.Usage())
		if s.retired.Load() {
			return nil
		}
		expected := s.expected.Swap(false)
		switch {
		case controlplane.IsOutOfMemory(life.Err()):
			s.Journal.Event(record.OutOfMemory{LimitBytes: s.MemoryBytes})
			return fmt.Errorf("%w; %s", life.Err(), s.Standing())
		case died && !expected:
			return fmt.Errorf("it ended a second time: %w", life.Err())
		case !expected:
			died = true
			s.Say(s.name + " ended and is started again; its log is in " + s.Journal.Writer().LogDir())
			s.Journal.Warn(record.Warning{
				About:  s.about + "." + string(s.Timeline.Current().Phase),
				Reason: record.ReasonCrashed, Component: s.name, Detail: output.FirstLine(life.Err()),
			})
		}
		s.Journal.Event(record.ControlPlaneEnded{Name: s.replica, Asked: expected, Error: fmt.Sprint(life.Err())})
		s.restarted.Store(true)
		if s.final.Load() && expected {
			s.back <- struct{}{}
			return nil
		}
		if err := s.program.Restart(ctx); err != nil {
			return err
		}
		if err := s.Sampler.Watch(s.name, s.program.Life().Usage()); err != nil {
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

// End ends the control plane, gracefully or not, and returns when it was started
// again and serves, or has ended for good.
func (s *Supervisor) End(ctx context.Context, graceful bool) error {
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

// Retire ends the control plane for good, and returns when it has ended.
func (s *Supervisor) Retire(ctx context.Context) error {
	s.retired.Store(true)
	return s.program.Life().Stop(ctx)
}

// Restarted reports whether it was restarted, or has ended for good: it has lost its counts.
func (s *Supervisor) Restarted() bool { return s.restarted.Load() }
