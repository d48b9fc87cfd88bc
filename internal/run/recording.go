package run

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/linux"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/measure/containers"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/pkg/record"
)

// recording holds the readers of processes and metrics of a run.
type recording struct {
	sampler  *measure.Sampler
	metrics  *measure.Metrics
	recorder *measure.Recorder
	jobs     []string // that the recorder scrapes
	steals   steals
	speeds   speeds
	limits   *measure.ProcessorLimits // of each replica of the control plane, by its quota; nil = there is none
	// containers of real sidecars, whose usage is read from kubelets; nil = there are none.
	containers *containers.Sidecars
}

// startRecorder starts what reads processes and metrics. Whatever way the run
// ends, its figures are read before the recorder is taken down; see measure.
func (r *run) startRecorder(ctx context.Context) (steps.Undo, error) {
	r.sampler = measure.NewStoredSampler(r.spec.slowed(measure.SampleInterval), r.journal.Writer().Samples())
	r.sampler.SlowDown(r.spec.dilation())
	r.sampler.WatchBriefly(r.localPrograms()...)
	if quota := r.resources.Quota.Processors; quota > 0 {
		r.limits = measure.NewProcessorLimits(float64(len(linux.Processors())))
		r.limits.Change(quota)
	}
	if local := r.localPrograms(); len(local) == 1 { // of several replicas, one at its limit would have no warning
		r.sampler.Limit(local[0], r.limits)
	}
	r.metrics = measure.NewMetrics(measure.Build{Version: component.ScalerVersion()}, r.sampler)
	r.metrics.Run(runInfo(r.controlPlaneName(), r.journal.Run()))
	if err := r.assemble(ctx); err != nil {
		return nil, err
	}
	server, err := r.metrics.Listen()
	if err != nil {
		return nil, err
	}
	targets := append(r.targets(), measure.Target{Job: measure.InstrumentName, URL: server.URL()})
	sources := r.sources()
	for _, source := range sources {
		if err := measure.Uncounted(source); err != nil {
			r.journal.Update(func(run *record.Run) { run.Environment.ControlPlane.WorkingSetUnknown = err.Error() })
		}
	}
	sources[measure.InstrumentName] = r.workers.instrument()
	for _, c := range r.components() {
		if c.Usage != nil {
			sources[c.Name] = c.Usage
		}
		if c.Target != nil {
			targets = append(targets, *c.Target)
		}
	}
	for i := range targets {
		if !slices.Contains(r.jobs, targets[i].Job) {
			r.jobs = append(r.jobs, targets[i].Job)
		}
		targets[i].Labels = map[string]string{"run": r.spec.Name(), "mode": r.spec.modeOrKnobs()}
	}
	for name, source := range sources {
		if err := r.sampler.Watch(name, source); err != nil {
			return nil, errors.Join(err, server.Close())
		}
	}
	b := newBackground(context.WithoutCancel(ctx), r.fail) // the end of an interrupted phase is read too
	b.run("serving scaler's metrics", server.Run)
	b.run("reading processes", r.sampler.Run)
	if r.containers != nil {
		b.run("reading the kubelets", r.containers.Run)
	}
	if r.workers.sampler != nil {
		b.run("reading workers", r.workers.sampler.Run)
	}
	b.run("measuring scaler's own lag", measure.NewLag(r.late).Run)
	r.recorder, err = measure.Start(ctx, measure.Options{
		Prometheus: r.programs.paths[component.Prometheus],
		Dir:        r.journal.Writer().PrometheusDir(),
		Group:      r.group,
		Log:        filepath.Join(r.journal.Writer().LogDir(), "prometheus.log"),
		Targets:    targets,
		Interval:   r.spec.slowed(measure.SampleInterval),
		Progress:   r.progress.Say,
	})
	if err != nil {
		b.stop()
		return nil, err
	}
	return func(ctx context.Context) error {
		defer b.stop()
		return r.recorder.Stop(ctx)
	}, nil
}

// late takes one delay of scaler's own scheduling.
func (r *run) late(d time.Duration) {
	r.observed.lags.record(r.currentPhase(), workerName(0), d)
	r.metrics.Observe(measure.SchedulingLag, d)
}

// currentPhase returns the present phase; "" before the first and between two.
func (r *run) currentPhase() record.PhaseName { return r.timeline.Current().Phase }

// runInfo returns the description of the run for its time series.
func runInfo(controlPlane string, document record.Run) measure.RunInfo {
	environment := document.Environment
	var limits measure.Limits
	if known := environment.ControlPlane.Limits; known != nil {
		limits = measure.Limits{TokenReviewsPerSecond: known.TokenReviewsPerSecond, DebounceSeconds: known.DebounceMaxSeconds}
		if processors := environment.ControlPlane.GOMAXPROCS; processors > 0 {
			limits.StreamsPerSecond = known.StreamsPerSecond.At(processors)
		}
		// Each replica holds itself to its own.
		replicas := float64(max(1, environment.ControlPlane.Replicas))
		limits.TokenReviewsPerSecond *= replicas
		limits.StreamsPerSecond *= replicas
	}
	return measure.RunInfo{
		ControlPlane: controlPlane,
		Pods:         document.PodCount(), Services: document.ServiceCount(), Namespaces: document.NamespaceCount(),
		MTLS: environment.Knobs.MTLS, Scope: environment.Knobs.Scope, Authz: environment.Knobs.Authz,
		XDS: document.Scenario.Mesh.Sidecars.XDS, GOMAXPROCS: environment.ControlPlane.GOMAXPROCS, Limits: limits,
	}
}

// edge reads the counters of all processes, and counts streams: the edge of a phase.
func (r *run) edge() (time.Time, error) {
	at, err := r.workers.edge(r.sampler)
	if err == nil {
		r.steals.read(at)
	}
	if err == nil && r.replicas != nil {
		r.replicas.Edge(at)
	}
	return at, err
}
