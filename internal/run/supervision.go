package run

import (
	"context"

	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/run/supervision"
)

// ended returns when a program of the cluster has ended, or ctx.
func ended(ctx context.Context, env place.Environment) error {
	select {
	case err := <-env.Died():
		return err
	case <-ctx.Done():
		return nil
	}
}

// recorderEnded returns when the recorder has ended, or ctx.
func recorderEnded(ctx context.Context, rec *measure.Recorder) error {
	select {
	case <-rec.Done():
		return rec.Err()
	case <-ctx.Done():
		return nil
	}
}

// supervisionOptions returns the options of the supervisors of a run's control plane.
func (r *run) supervisionOptions() supervision.Options {
	return supervision.Options{
		MemoryBytes: r.resources.MemoryBytes,
		Sampler:     r.sampler, Journal: r.journal, Timeline: r.timeline, Say: r.progress.say, Standing: func() string { return r.phaseStatus().String() },
	}
}
