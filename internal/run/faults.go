package run

import (
	"context"
	"errors"
	"time"

	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/place/embedded"
	"scaler.mesh/scaler/pkg/scenario"
)

// makeFault breaks something and returns when it is there again, except for streams that are cut and pods that are
// replaced, which it does not wait for. since is when that was requested.
func (r *run) makeFault(ctx context.Context, fault scenario.Fault, since time.Time) error {
	switch fault.Kind {
	case scenario.KillControlPlane, scenario.RestartControlPlane:
		return r.endControlPlane(ctx, fault.Program, fault.Kind == scenario.RestartControlPlane)
	case scenario.ResetStreams:
		return r.fleet.ResetStreams(fault.Share, r.spec.Mesh.Seed)
	case scenario.APIServerGone:
		return r.stopAPIServer(ctx, r.spec.slowed(fault.Time))
	case scenario.PauseScaler:
		return r.group.PauseSelf(ctx, r.spec.slowed(fault.Time))
	case scenario.KillReplica:
		return r.replicas.Kill(ctx)
	case scenario.AddReplica:
		return r.replicas.Add(ctx)
	case scenario.RestartReplica:
		return r.replicas.RestartOne(ctx)
	case scenario.RestartReplicas:
		return r.replicas.Restart(ctx)
	case scenario.RollingRestart:
		r.fleet.Pods.Renew()
		return r.applier.Restart(ctx, since)
	default:
		return errors.New("no such fault")
	}
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
	if fault.Described().On != scenario.OnAPIServer {
		return nil
	}
	return r.awaitWatches(ctx, about, since)
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
