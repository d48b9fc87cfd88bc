package run

import (
	"context"
	"errors"
	"runtime"
	"time"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/interrupt"
	"scaler.mesh/scaler/internal/linux"
	"scaler.mesh/scaler/internal/mask"
	"scaler.mesh/scaler/internal/place"
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/run/journal"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// newRecord returns the record as far as it is known before anything runs.
func newRecord(spec Spec) record.Run {
	t := spec.topology().Defaults()
	knobs := spec.Knobs()
	var processor *record.Processor // of an existing cluster it is not known
	if spec.Place.Context == "" {
		processor = &record.Processor{Model: place.Machine().CPUModel}
	}
	return record.Run{
		Mesh:       spec.recordedMesh(),
		APIVersion: record.APIVersion, Kind: record.Kind, Schema: record.Schema,
		Name:     spec.Name(),
		Started:  time.Now().UTC(),
		Scenario: spec.recorded(),
		Repeat:   spec.Repeat,
		Parts:    spec.recordedParts(),
		Environment: record.Environment{
			CPUs:        runtime.NumCPU(),
			MemoryBytes: linux.MemoryBytes(),
			Kernel:      place.Kernel(),
			PodStatus:   record.StatusOfEachStep,
			Scaler:      component.ScalerVersion(),
			Knobs:       knobs,
			Processor:   processor,
		},
		Pods: &record.Pods{Requested: t.Pods},
	}
}

// recorded returns the scenario of a single run as a record has it: what follows from the size, the number of processors and
// what scaler chose are stated, what the run does not have is not, and secrets are masked.
func (s Spec) recorded() scenario.Scenario {
	asked := s.Scenario
	t := s.topology().Defaults()
	asked.Repeats, asked.Mesh.Services, asked.Mesh.Namespaces = 1, t.Services, t.Namespaces
	asked.ControlPlane.Processors, asked.Instrument.Dilation = s.processors(), scenario.Dilation{Factor: s.dilation()}
	asked = asked.Applicable()
	asked.ControlPlane.Env, asked.ControlPlane.Upgrade.Env = mask.Env(asked.ControlPlane.Env), mask.Env(asked.ControlPlane.Upgrade.Env)
	asked.ControlPlane.Set = mask.Settings(asked.ControlPlane.Set)
	return asked
}

// recordedParts returns the parts of a synthetic mesh, those that its profile has included.
func (s Spec) recordedParts() scenario.Parts {
	if s.Captured != nil {
		return scenario.Parts{}
	}
	return s.Profile()
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
func describeCluster(env place.Environment, journal *journal.Journal) {
	programs := map[string]record.ClusterProgram{}
	for _, c := range env.Components() {
		if len(c.Settings) > 0 || c.Note != "" {
			programs[c.Name] = record.ClusterProgram{Settings: c.Settings, Note: c.Note}
		}
	}
	journal.Update(func(run *record.Run) { run.Environment.Cluster = programs })
}

// priorityRecord returns the priorities of programs as the record has them; nil if all
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
	if warning := controlplane.VersionWarning(d); warning != nil {
		r.journal.Warn(*warning)
	}
	for _, warning := range r.spec.unknowns(r.driver) {
		r.journal.Warn(warning)
	}
	source := record.ControlPlaneSource{
		Name: d.Name, Version: d.Version, ProxyVersion: d.ProxyVersion, Replicas: d.Replicas, GOMAXPROCS: d.MaxProcs, Processors: r.spec.usable(r.resources.Quota),
		ReferenceProcessors: r.spec.inRealTime(r.driver) == nil && d.MaxProcs > 0, Settings: d.Settings, Limits: d.Limits,
		MemoryLimitBytes: r.resources.MemoryBytes, MemoryLimitEnforced: r.resources.Enforced,
		Program: programDigest(r.programs.paths, r.driver),
	}
	r.describeDilation(&source)
	r.journal.Update(func(run *record.Run) { run.Environment.ControlPlane, run.Environment.Dilation = source, r.dilation })
}

// programDigest returns the digest of a control plane's own program; "" if it has no
// program but scaler, or the program cannot be read.
func programDigest(programs map[string]string, d controlplane.Driver) string {
	if len(d.Programs.Own) == 0 {
		return ""
	}
	digest, _ := component.Digest(programs[d.Programs.Own[0]])
	return digest
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
		case errors.Is(err, phases.ErrUnconverged):
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
	err = errors.Join(err, r.journal.Save(), writer.Close())
	document := r.journal.Run()
	scaled, scaleErr := document.Undilated()
	if scaleErr != nil {
		return document, errors.Join(err, scaleErr)
	}
	return *scaled, err
}

// waypointsName returns what has a waypoint each, as the record has it; "" if nothing does.
func (s Spec) waypointsName() string {
	if s.Mesh.Waypoints == controlplane.NoWaypoints {
		return ""
	}
	return s.Mesh.Waypoints
}
