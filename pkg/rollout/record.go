package rollout

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"scaler.mesh/scaler/pkg/component"
	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/record"
)

// newRecord is the record as far as it is known before anything runs.
func (r *rolloutRun) newRecord() record.Run {
	t := r.spec.Topology.Defaults()
	knobs := r.spec.Knobs()
	return record.Run{
		APIVersion: record.APIVersion, Kind: record.Kind, Schema: record.Schema,
		Name:    r.spec.Name(),
		Started: time.Now().UTC(),
		Spec: record.Spec{
			Pods: t.Pods, Services: t.Services, Namespaces: t.Namespaces,
			Topology: t.Shape, FanOut: t.FanOut, Seed: t.Seed,
			Burst: r.spec.Burst, Mode: r.spec.preset(), XDS: r.spec.XDS,
			BaselineSeconds:        r.spec.Baseline.Seconds(),
			SettleSeconds:          r.spec.Settle.Seconds(),
			SteadySeconds:          r.spec.Steady.Seconds(),
			ConvergeTimeoutSeconds: r.spec.ConvergeTimeout.Seconds(),
			Repeat:                 r.spec.Repeat,
			StartDelay:             r.spec.StartDelay.String(),
			CertificateLifetime:    lifetimeText(r.spec.CertificateLifetime),
			Churn:                  r.spec.Churn.String(),
			Faults:                 texts(r.spec.Faults),
			RealSidecars:           r.spec.RealSidecars,
			CertificateStorm:       r.spec.CertificateStorm,
			Probes:                 r.spec.Probes,
		},
		Environment: record.Environment{
			CPUs:        runtime.NumCPU(),
			MemoryBytes: experiment.MemoryBytes(),
			Kernel:      experiment.Kernel(),
			Scaler:      experiment.Version(),
			Knobs:       record.Knobs(knobs),
		},
		Pods: &record.Pods{Requested: t.Pods},
	}
}

// askVersions puts into the record which versions of its programs the run has.
func askVersions(ctx context.Context, r *rolloutRun) (err error) {
	env := &r.record.Environment
	if env.Kubernetes, env.Kwok, err = experiment.ClusterVersions(ctx, r.versions, r.programs); err != nil || r.spec.RealSidecars == 0 {
		return err
	}
	envoy, err := r.versions.Of(ctx, component.Envoy, r.programs[component.Envoy])
	r.envoy.Version = envoy.Version
	return err
}

// describeControlPlane puts into the record which one runs and how.
func (r *rolloutRun) describeControlPlane() {
	d := r.adapter.Server.Describe()
	if doubt := experiment.VersionDoubt(d); doubt != nil {
		r.warn(*doubt)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Environment.ControlPlane = record.ControlPlaneSource{
		Name: d.Name, Version: d.Version, Replicas: d.Replicas, GOMAXPROCS: d.MaxProcs, Settings: d.Settings, Limits: d.Limits,
		CPUs: r.placing.CPUs, MemoryLimitBytes: r.placing.MemoryBytes, MemoryLimitEnforced: r.placing.Enforced,
		Program: programDigest(r.programs, r.driver),
	}
}

// programDigest is that of a control plane's own program; "" of one that is none
// but scaler.
func programDigest(programs map[string]string, d controlplane.Driver) string {
	if len(d.Programs) == 0 {
		return ""
	}
	return experiment.ProgramDigest(programs[d.Programs[0]])
}

// texts are things as they print.
func texts[T fmt.Stringer](things []T) []string {
	var all []string
	for _, thing := range things {
		all = append(all, thing.String())
	}
	return all
}

// warn puts a doubt beside the figure it touches.
func (r *rolloutRun) warn(w record.Warning) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Warnings = append(r.record.Warnings, record.NewWarning(w))
}

// event notes what happened in events.jsonl. A disk that is full ends the run.
func (r *rolloutRun) event(e record.Event) {
	if err := r.writer.Event(e); err != nil {
		r.fail(err)
	}
}

// save writes the record as far as it is known.
func (r *rolloutRun) save() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.writer.Save(&r.record)
}

// finish writes the record for the last time: how the run ended is known now,
// and everything is stopped. It returns what the command is to report.
func (r *rolloutRun) finish(ctx context.Context, err error) (record.Run, error) {
	r.mu.Lock()
	r.record.Finished = new(time.Now().UTC())
	switch {
	case err == nil:
		r.record.Status = record.StatusCompleted
	case errors.Is(err, experiment.ErrUnconverged):
		r.record.Status = record.StatusUnconverged
	case errors.Is(err, context.Canceled):
		r.record.Status, r.record.Reason = record.StatusInterrupted, "interrupted by a signal"
	default:
		r.record.Status, r.record.Reason = record.StatusFailed, err.Error()
	}
	r.record.Dir = r.writer.Dir()
	r.mu.Unlock()
	return r.record, errors.Join(err, r.save(), r.writer.Close())
}

// lifetimeText is a lifetime as the record has it.
func lifetimeText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}
