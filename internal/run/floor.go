package run

import (
	"context"
	"fmt"
	"runtime/debug"

	"scaler.mesh/scaler/internal/calibrate"
	"scaler.mesh/scaler/internal/output"
	"scaler.mesh/scaler/pkg/record"
)

// calibrate measures the instrument's floor as far as it is not known for a run
// of this size, unless that was disabled. It belongs to no run: what it finds is
// kept for all. A failure does not end the run; it is a warning.
func (r *run) calibrate(ctx context.Context) error {
	if !r.spec.Instrument.Calibrate {
		return nil
	}
	if r.driver.Proxy.XDS == nil {
		r.journal.Warn(record.Warning{About: "instrument.floor", Reason: record.ReasonNotSupported, Component: r.driver.Name, Detail: "the floor is that of sidecars that speak xDS"})
		return nil
	}
	known, err := calibrate.Cached(r.spec.Programs)
	if missing := calibrate.MissingSizes(known, r.spec.Mesh.Sidecars.XDS, r.spec.Pods()); err == nil && len(missing) > 0 {
		r.progress.say(fmt.Sprintf("measuring scaler's own floor once, with %v sidecars; instrument.calibrate false skips that", missing))
		spec := calibrate.DefaultSpec()
		spec.Sidecars, spec.XDS, spec.Programs, spec.State = missing, r.spec.Mesh.Sidecars.XDS, r.spec.Programs, r.spec.State
		_, err = calibrate.Run(ctx, spec, r.progress.say)
		debug.FreeOSMemory() // what it left is not the run's idle program
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		r.journal.Warn(record.Warning{About: "instrument.floor", Reason: record.ReasonNotMeasured, Detail: output.FirstLine(err)})
		r.progress.say("scaler's own floor could not be measured: " + output.FirstLine(err))
	}
	return nil
}

// floor returns the instrument's floor for a run of this size; nil where it is not
// known.
func (s Spec) floor() map[string]float64 {
	known, err := calibrate.Cached(s.Programs)
	if err != nil {
		return nil
	}
	return known.Floor(s.Mesh.Sidecars.XDS, s.Pods())
}
