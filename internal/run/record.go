package run

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/interrupt"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// newRecord is the record as far as it is known before anything runs.
func newRecord(spec Spec) record.Run {
	t := spec.topology().Defaults()
	knobs := spec.Knobs()
	var processor *record.Processor // of a cluster that is there already it is not known
	if spec.Place.Context == "" {
		processor = &record.Processor{Model: experiment.Machine().CPUModel}
	}
	return record.Run{
		Mesh:       spec.Captured.record(),
		APIVersion: record.APIVersion, Kind: record.Kind, Schema: record.Schema,
		Name:     spec.Name(),
		Started:  time.Now().UTC(),
		Scenario: spec.recorded(),
		Spec: record.Spec{
			Pods: t.Pods, Services: t.Services, Namespaces: t.Namespaces,
			Topology: t.Shape, FanOut: t.FanOut, Seed: t.Seed, Profile: t.Resolved().Map(), ProfileName: t.ProfileName(), ProfileSet: t.Own.Map(),
			Burst: spec.burstText(), Arrival: spec.arrivalText(), Mode: spec.preset(), XDS: spec.Mesh.Sidecars.XDS,
			Dataplane: spec.dataplaneName(), PodsPerNode: spec.recordedPodsPerNode(), Waypoints: spec.waypointsName(),
			BaselineSeconds:        time.Duration(spec.Phases.Baseline).Seconds(),
			SettleSeconds:          time.Duration(spec.Phases.Settle).Seconds(),
			SteadySeconds:          time.Duration(spec.Phases.Steady).Seconds(),
			ConvergeTimeoutSeconds: time.Duration(spec.Phases.ConvergeTimeout).Seconds(),
			Repeat:                 spec.Repeat,
			StartDelay:             spec.Mesh.Sidecars.StartDelay.String(),
			CertificateLifetime:    lifetimeText(time.Duration(spec.Mesh.Sidecars.CertificateLifetime)),
			Churn:                  spec.Load.Churn.String(),
			Change:                 spec.Load.Changes.String(),
			ChangeSeconds:          spec.changeSeconds(),
			CycleSeconds:           time.Duration(spec.Phases.Cycle).Seconds(),
			Faults:                 texts(spec.Load.Faults),
			RealSidecars:           spec.Mesh.Sidecars.Real,
			CertificateStorm:       spec.Load.CertificateStorm,
			Upgrade:                spec.upgrade().String(),
			Probes:                 spec.Load.Probes,
			Dilation:               spec.recordedDilation(),
		},
		Environment: record.Environment{
			CPUs:        runtime.NumCPU(),
			MemoryBytes: experiment.MemoryBytes(),
			Kernel:      experiment.Kernel(),
			Scaler:      experiment.Version(),
			Knobs:       record.Knobs(knobs),
			Processor:   processor,
		},
		Pods: &record.Pods{Requested: t.Pods},
	}
}

// recorded is the scenario as a record has it: secrets are masked, and the number of processors is stated.
func (s Spec) recorded() scenario.Scenario {
	asked := s.Scenario
	asked.ControlPlane.Processors = s.processors()
	asked.ControlPlane.Env, asked.ControlPlane.Upgrade.Env = controlplane.MaskEnv(asked.ControlPlane.Env), controlplane.MaskEnv(asked.ControlPlane.Upgrade.Env)
	return asked
}

// askVersions asks the programs that the run has for their versions. It returns KWOK's, which is "" where that runs in
// the cluster, and keeps Envoy's where there are real sidecars.
func (p *programs) askVersions(ctx context.Context, realSidecars int) (kwok string, err error) {
	var nodes component.Report
	if path := p.paths[component.Kwok]; path != "" {
		nodes, err = p.versions.Of(ctx, component.Kwok, path)
	}
	if err != nil || realSidecars == 0 {
		return nodes.Version, err
	}
	envoy, err := p.versions.Of(ctx, component.Envoy, p.paths[component.Envoy])
	p.envoy.Version = envoy.Version
	return nodes.Version, err
}

// describeCluster puts into the record how the cluster's programs are set.
func describeCluster(env place.Environment, journal *experiment.Journal) {
	programs := map[string]record.ClusterProgram{}
	for _, c := range env.Components() {
		if len(c.Settings) > 0 || c.Note != "" {
			programs[c.Name] = record.ClusterProgram{Settings: c.Settings, Note: c.Note}
		}
	}
	journal.Update(func(run *record.Run) { run.Environment.Cluster = programs })
}

// priorityRecord is which programs run first, as the record has it; nil where all
// are alike.
func priorityRecord(p process.Priorities) *record.Priority {
	if p.Mechanism == "" {
		return nil
	}
	return &record.Priority{Mechanism: p.Mechanism, ControlPlane: p.First, Instrument: p.Own, Cluster: p.Last, Note: p.Detail}
}

// describeControlPlane puts into the record which one runs and how.
func (r *run) describeControlPlane() {
	d := r.adapter.Server.Describe()
	if doubt := experiment.VersionDoubt(d); doubt != nil {
		r.journal.Warn(*doubt)
	}
	for _, doubt := range r.spec.unknowns(r.driver) {
		r.journal.Warn(doubt)
	}
	source := record.ControlPlaneSource{
		Name: d.Name, Version: d.Version, ProxyVersion: d.ProxyVersion, Replicas: d.Replicas, GOMAXPROCS: d.MaxProcs, Settings: d.Settings, Limits: d.Limits,
		MemoryLimitBytes: r.resources.MemoryBytes, MemoryLimitEnforced: r.resources.Enforced,
		Program: programDigest(r.programs.paths, r.driver),
	}
	r.describeDilation(&source)
	r.journal.Update(func(run *record.Run) { run.Environment.ControlPlane, run.Environment.Dilation = source, r.dilation })
}

// programDigest is that of a control plane's own program; "" of one that has no
// program but scaler.
func programDigest(programs map[string]string, d controlplane.Driver) string {
	if len(d.Programs.Own) == 0 {
		return ""
	}
	return experiment.ProgramDigest(programs[d.Programs.Own[0]])
}

// texts are things as they print.
func texts[T fmt.Stringer](things []T) []string {
	var all []string
	for _, thing := range things {
		all = append(all, thing.String())
	}
	return all
}

// finish writes the record for the last time: how the run ended is known now,
// and everything is stopped. It returns what the command is to report.
func (r *run) finish(err error) (record.Run, error) {
	writer := r.journal.Writer()
	r.journal.Update(func(run *record.Run) {
		run.Finished = new(time.Now().UTC())
		switch {
		case err == nil:
			run.Status = record.StatusCompleted
		case errors.Is(err, experiment.ErrUnconverged):
			run.Status = record.StatusUnconverged
		case errors.Is(err, context.Canceled):
			run.Status, run.Reason = record.StatusInterrupted, "interrupted by a signal"
			if cause, ok := errors.AsType[*interrupt.Error](err); ok {
				run.Reason = cause.Error()
			}
		default:
			run.Status, run.Reason = record.StatusFailed, err.Error()
		}
		run.Dir = writer.Dir()
	})
	return undilated(r.journal.Run(), errors.Join(err, r.journal.Save(), writer.Close()))
}

// dataplaneName is what the pods have, as the record has it.
func (s Spec) dataplaneName() string {
	if s.withSidecars() {
		return controlplane.Sidecars
	}
	return s.Dataplane()
}

// recordedPodsPerNode is for how many pods there is a node; 0 where that matters to nothing.
func (s Spec) recordedPodsPerNode() int {
	if s.withSidecars() {
		return 0
	}
	return s.Mesh.PodsPerNode
}

// waypointsName is what has a waypoint each, as the record has it; "" where nothing does.
func (s Spec) waypointsName() string {
	if s.Mesh.Waypoints == controlplane.NoWaypoints {
		return ""
	}
	return s.Mesh.Waypoints
}

// recordedDilation is the factor by which time is slowed down; 0 where it is not.
func (s Spec) recordedDilation() float64 {
	if s.dilation() == 1 {
		return 0
	}
	return s.dilation()
}

// lifetimeText is a lifetime as the record has it.
func lifetimeText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// changeSeconds is the length of the change phase; 0 where there is none.
func (s Spec) changeSeconds() float64 {
	if s.Load.Changes.PerSecond == 0 {
		return 0
	}
	return time.Duration(s.Phases.Changes).Seconds()
}
