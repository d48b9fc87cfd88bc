package rollout

import (
	"context"
	"time"

	"scaler.mesh/scaler/pkg/cluster"
	"scaler.mesh/scaler/pkg/faults"
	"scaler.mesh/scaler/pkg/recorder"
)

// faultActions are how the faults of a run are made.
func (r *run) faultActions() faults.Actions {
	return faults.Actions{
		EndControlPlane: r.supervisor.end,
		ResetStreams:    func(share float64) error { return r.fleet.ResetStreams(share, r.spec.Topology.Seed) },
		StopAPIServer:   r.stopAPIServer,
		PauseSelf:       r.group.PauseSelf,
		RollingRestart:  func(ctx context.Context, since time.Time) error { return r.applier.Restart(ctx, since) },
	}
}

// recovered waits, after a fault, for what the next one depends on.
func (r *run) recovered(ctx context.Context, fault faults.Fault, about string, since time.Time) error {
	if fault.Kind != faults.APIServerGone {
		return nil
	}
	return r.awaitWatches(ctx, about, since)
}

// stopAPIServer keeps the API server stopped for a while.
func (r *run) stopAPIServer(ctx context.Context, length time.Duration) error {
	if err := r.cluster.Absent(ctx, cluster.APIServer, length); err != nil {
		return err
	}
	for _, c := range r.cluster.Components() {
		if c.Name == cluster.APIServer {
			return r.sampler.Watch(c.Name, recorder.OfProcess(c.Process))
		}
	}
	return nil
}
