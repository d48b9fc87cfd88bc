package run

import (
	"context"
	"fmt"
	"slices"

	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/pkg/record"
)

// watchClocks compares clocks until ctx ends, and records what happens to time as warnings about the figures that depend on it.
func (r *run) watchClocks(ctx context.Context) error {
	clocks, err := measure.NewClocks()
	if err != nil {
		return err
	}
	return clocks.Watch(ctx, func(d measure.Disturbance) {
		for _, w := range clockWarnings(r.currentPhase(), d) {
			r.journal.Warn(w)
			r.progress.say(fmt.Sprintf("warning: %s: %s", w.About, record.NewWarning(w).Text))
		}
	})
}

// observing are the phases in which scaler takes the times of what it sees.
var observing = []record.PhaseName{record.PhaseRollout, record.PhaseProbe, record.PhaseCycle, record.PhaseStorm, record.PhaseChurn, record.PhaseChange}

// clockWarnings returns warnings about exactly the figures of a phase that are affected: time series
// are on the wall clock, all else is on the monotonic one, which stands still while the
// machine is suspended. Nothing is affected between phases and in settle.
func clockWarnings(phase record.PhaseName, d measure.Disturbance) []record.Warning {
	if new(record.ByPhase[bool]).At(phase) == nil {
		return nil
	}
	var all []record.Warning
	add := func(reason record.Reason, name string, seconds float64, abouts ...string) {
		for _, about := range abouts {
			all = append(all, record.Warning{About: about, Reason: reason, Phase: phase, Values: map[string]float64{name: seconds}})
		}
	}
	at := string(phase)
	if d.Moved != 0 {
		add(record.ReasonClockMoved, "movedSeconds", d.Moved.Seconds(), "own."+at, "controlPlane."+at+".heapBytes")
	}
	if d.Suspended != 0 {
		add(record.ReasonSuspended, "suspendedSeconds", d.Suspended.Seconds(), "own."+at, "controlPlane."+at+".heapBytes")
	}
	if d.Paused != 0 {
		abouts := []string{"controlPlane." + at + ".cores.peak"}
		if slices.Contains(observing, phase) {
			abouts = append(abouts, "latencies")
		}
		add(record.ReasonPaused, "pausedSeconds", d.Paused.Seconds(), abouts...)
	}
	return all
}
