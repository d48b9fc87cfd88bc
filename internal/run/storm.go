package run

import (
	"context"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/pkg/record"
)

// stormTimeout is how long a storm may last; a sidecar without its new certificate by
// then has lost it.
const stormTimeout = 5 * time.Minute

// certificateStorm makes all sidecars request a certificate anew at once and waits
// until each has it.
func (r course) certificateStorm(ctx context.Context) (experiment.Undo, error) {
	if !r.spec.CertificateStorm {
		return nil, nil
	}
	return nil, r.timeline.Measure(ctx, record.PhaseStorm, 0, func(ctx context.Context) (record.EndedBy, error) {
		begin := time.Now()
		s := r.fleet.BeginStorm()
		timer := time.NewTimer(r.spec.slowed(stormTimeout))
		defer timer.Stop()
		endedBy := record.EndedByConverged
		select {
		case <-s.Done():
		case <-timer.C:
			endedBy = record.EndedByTimeout
		case <-ctx.Done():
		}
		result := r.fleet.EndStorm(s)
		r.observed.storm = stormRecord(result, begin, r.adapter.Server.Describe(), r.spec.dilation())
		if ctx.Err() != nil {
			return record.EndedByInterrupt, context.Cause(ctx)
		}
		return endedBy, r.journal.Writer().Histogram("certificateStorm", result.Latency)
	})
}

// stormRecord is what came of a storm that began at a moment, as the record has it, of
// a control plane as described, where time was slowed down by a factor.
func stormRecord(s fleet.StormResult, begin time.Time, of controlplane.Description, slowdown float64) *record.CertificateStorm {
	summary := s.Latency.Summary()
	latency := record.Latency(summary)
	result := &record.CertificateStorm{
		Sidecars: s.Sidecars, Issued: summary.Count, Attempts: s.Requests, Failures: s.Failures,
		Latency: &latency,
	}
	if s.Last.After(begin) {
		seconds := s.Last.Sub(begin).Seconds()
		result.Seconds = &seconds
		result.PerSecond = new(float64(summary.Count) / seconds)
		result.BoundBy = record.StormBoundBy(of.Limits, of.Replicas, summary.Count, seconds/slowdown)
	}
	return result
}
