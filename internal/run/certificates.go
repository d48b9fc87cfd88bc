package run

import (
	"cmp"
	"context"
	"time"

	"scaler.mesh/scaler/pkg/scenario"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/authority"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
)

// stormTimeout limits a storm. A certificate that has not come by then is lost.
const stormTimeout = 5 * time.Minute

// checkCertificates checks what only sidecars can be asked for that request their
// certificates.
func (s Spec) checkCertificates(d controlplane.Driver) error {
	issued := d.Proxy.Certificates
	switch {
	case issued == nil:
		return nil
	case issued.Requested && !issued.ForLifetime && s.Mesh.Sidecars.CertificateLifetime != 0:
		return scenario.Refuse("mesh.sidecars.certificateLifetime", time.Duration(s.Mesh.Sidecars.CertificateLifetime), "none with controlPlane.name %s, which itself decides for how long it issues certificates", s.ControlPlane.Name)
	case issued.Requested:
		return nil
	}
	return s.refuse([]refusal{
		{s.Load.CertificateStorm, "load.certificateStorm"},
		{s.Mesh.Sidecars.CertificateLifetime > 0, "mesh.sidecars.certificateLifetime"},
	}, "none with controlPlane.name "+s.ControlPlane.Name+", which itself decides when it issues certificates and for how long")
}

// renewal returns the time after which a sidecar renews its certificate, half of the lifetime
// that it requests; 0 = it requests none.
func (s Spec) renewal(d controlplane.Driver) time.Duration {
	if !d.Proxy.RequestsCertificates() {
		return 0
	}
	return cmp.Or(time.Duration(s.Mesh.Sidecars.CertificateLifetime), s.slowed(authority.DefaultLifetime)) / 2
}

// storm is the phase in which all sidecars request a certificate anew at once.
type storm struct {
	timeout      time.Duration // on this machine
	controlPlane controlplane.Description
	slowdown     float64
	fleet        *fleet.Fleet
	timeline     *phases.Timeline
	writer       *record.Writer
}

// certificateStorm makes all sidecars request a certificate anew, if that was asked for, and
// waits until each has it.
func (r *run) certificateStorm(ctx context.Context) (err error) {
	if !r.spec.Load.CertificateStorm {
		return nil
	}
	phase := storm{
		timeout: r.spec.slowed(stormTimeout), controlPlane: r.adapter.Server.Describe(), slowdown: r.spec.dilation(),
		fleet: r.fleet, timeline: r.timeline, writer: r.journal.Writer(),
	}
	r.observed.storm, err = phase.run(ctx)
	return err
}

// run returns what came of the storm, as far as it went.
func (s storm) run(ctx context.Context) (came *record.CertificateStorm, err error) {
	err = s.timeline.Measure(ctx, record.PhaseStorm, 0, func(ctx context.Context) (record.EndedBy, error) {
		begin := time.Now()
		all := s.fleet.BeginStorm()
		timer := time.NewTimer(s.timeout)
		defer timer.Stop()
		endedBy := record.EndedByConverged
		select {
		case <-all.Done():
		case <-timer.C:
			endedBy = record.EndedByTimeout
		case <-ctx.Done():
		}
		result := s.fleet.EndStorm(all)
		came = s.record(result, begin)
		if ctx.Err() != nil {
			return record.EndedByInterrupt, context.Cause(ctx)
		}
		return endedBy, s.writer.Histogram("certificateStorm", result.Latency)
	})
	return came, err
}

// record returns the result of a storm that began at a moment as the record has it.
func (s storm) record(came fleet.StormResult, begin time.Time) *record.CertificateStorm {
	summary := came.Latency.Summary()
	latency := record.Latency(summary)
	result := &record.CertificateStorm{
		Sidecars: came.Sidecars, Issued: summary.Count, Attempts: came.Requests, Failures: came.Failures,
		Latency: &latency,
	}
	if came.Last.After(begin) {
		seconds := came.Last.Sub(begin).Seconds()
		result.Seconds = &seconds
		result.PerSecond = new(float64(summary.Count) / seconds)
		result.BoundBy = record.StormBoundBy(s.controlPlane.Limits, s.controlPlane.Replicas, summary.Count, seconds/s.slowdown)
	}
	return result
}
