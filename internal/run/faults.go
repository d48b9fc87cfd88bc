package run

import (
	"context"
	"errors"
	"time"

	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/place/embedded"
	"scaler.mesh/scaler/internal/run/faults"
	"scaler.mesh/scaler/pkg/scenario"
)

// faultActions returns the functions that inject the faults of a run.
func (r *run) faultActions() faults.Actions {
	actions := faults.Actions{
		EndControlPlane: r.endControlPlane,
		ResetStreams:    func(share float64) error { return r.fleet.ResetStreams(share, r.spec.Mesh.Seed) },
		StopAPIServer: func(ctx context.Context, length time.Duration) error {
			return r.stopAPIServer(ctx, r.spec.slowed(length))
		},
		PauseSelf: func(ctx context.Context, length time.Duration) error {
			return r.group.PauseSelf(ctx, r.spec.slowed(length))
		},
		RollingRestart: func(ctx context.Context, since time.Time) error { return r.applier.Restart(ctx, since) },
	}
	if s := r.replicas; s != nil {
		actions.KillReplica, actions.AddReplica, actions.RestartReplicas = s.Kill, s.Add, s.Restart
	}
	return actions
}

// endControlPlane ends a program of the control plane, as in scenario.Fault.
func (r *run) endControlPlane(ctx context.Context, program string, graceful bool) error {
	if program == "" && r.replicas != nil {
		return r.replicas.End(ctx, graceful)
	}
	supervisor := r.supervisor
	if program != "" {
		supervisor = r.helpers[program] // it is one of Programs.Helpers
	}
	return supervisor.End(ctx, graceful)
}

// recovered waits, after a fault, for what the next one depends on.
func (r *run) recovered(ctx context.Context, fault scenario.Fault, about string, since time.Time) error {
	if fault.Kind != scenario.APIServerGone {
		return nil
	}
	clients := apiClients{recorder: r.recorder, journal: r.journal, say: r.progress.say, recent: r.spec.slowed(10 * time.Second)}
	return clients.awaitWatches(ctx, about, since)
}

// stopAPIServer keeps the API server stopped for a while.
func (r *run) stopAPIServer(ctx context.Context, length time.Duration) error {
	own, ok := r.env.(*embedded.Environment)
	if !ok {
		return errors.New("the API server of this cluster cannot be stopped")
	}
	if err := own.Absent(ctx, place.APIServer, length); err != nil {
		return err
	}
	c, err := place.Find(r.env, place.APIServer)
	if err != nil || c.Usage == nil {
		return err
	}
	return r.sampler.Watch(c.Name, c.Usage)
}
