package run

import (
	"context"
	"fmt"
	"sync"
	"time"

	"scaler.mesh/scaler/internal/series"
	"scaler.mesh/scaler/pkg/record"
)

// Status is a run at one moment, for showing progress. Outside phases it has the times alone.
type Status struct {
	Phase       string        // as in the record, or what is done before the first and after the last one
	Elapsed     time.Duration // since it began, in real time
	Length      time.Duration // of a phase of fixed length, in real time, else 0
	Slowdown    float64       // the factor by which time is slowed down in it; 1 = it is not
	Left        time.Duration // about, of the run, in real time; 0 = not known
	Pods        int           // wanted; 0 = no phase goes on
	Created     int           // pods seen
	Ready       int           // pods Ready
	Connected   int           // pods whose proxy, a sidecar or that of their node, was ever connected
	Complete    int           // pods whose proxy holds what was expected at its first request
	Converged   int           // pods whose proxy holds all that is expected now
	NodeProxy   string        // what the proxy of a node is called, as in ztunnel; "" = nodes have none
	Nodes       int           // proxies of nodes that were ever connected
	Cores       float64       // the control plane's, over the last second, as on the modelled machine
	MemoryBytes float64       // the control plane's resident memory; 0 = it is not read
}

// String describes how far the run is.
func (s Status) String() string {
	return fmt.Sprintf("in %s, with %d of %d pods created, %d connected and %d complete", s.Phase, s.Created, s.Pods, s.Connected, s.Complete)
}

// Progress receives how an experiment gets on. The zero value shows nothing.
type Progress struct {
	Say    func(msg string) // one line, about a step or an event
	Status func(Status)     // about once a second
	// Begun is called when a run of several begins.
	Begun func(series.Position)
	// Ended is called when a run of a ladder of several has ended, or had before the ladder was resumed, and left a record.
	Ended func(name string, run *record.Run)
}

func (p Progress) say(msg string) {
	if p.Say != nil {
		p.Say(msg)
	}
}

// showProgress shows the status of a run each second until it is stopped. ctx is the one of the run, whose end shows that it
// is taken down.
func (r *run) showProgress(ctx context.Context) (stop func()) {
	if r.progress.Status == nil {
		return func() {}
	}
	var shows sync.WaitGroup
	stopped := make(chan struct{})
	shows.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		var stopping time.Time
		for {
			select {
			case <-stopped:
				return
			case now := <-tick.C:
				if ctx.Err() != nil && stopping.IsZero() {
					stopping = now
				}
				if s := r.status(now, stopping); s.Phase != "" {
					r.progress.Status(s)
				}
			}
		}
	})
	return func() {
		close(stopped)
		shows.Wait()
	}
}

// status returns the state of the run; stopping is when it began to be taken down, or zero.
func (r *run) status(now, stopping time.Time) (s Status) {
	stage, since := r.countdown.stage()
	switch {
	case !stopping.IsZero():
		return Status{Phase: stageStopping, Elapsed: now.Sub(stopping), Slowdown: 1}
	case stage == stageStarting || stage == stageFinishing:
		s = Status{Phase: stage, Elapsed: now.Sub(since), Slowdown: 1}
	default: // a phase, before which its parts were made
		s = r.phaseStatus()
	}
	if left, known := r.countdown.left(now); known {
		s.Left = left
	}
	return s
}

// showPhase tells scaler's metrics and the countdown which phase goes on; "" = none.
func (r *run) showPhase(phase string) {
	r.metrics.Phase(phase)
	r.countdown.enter(phase, time.Now())
}

// slowdownIn returns the factor by which time is slowed down in a phase.
func (r *run) slowdownIn(phase record.PhaseName) float64 {
	return new(r.journal.Run()).SlowdownIn(phase)
}
