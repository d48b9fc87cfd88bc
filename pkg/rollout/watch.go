package rollout

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/component"
	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/observe"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/recorder"
)

// background is a set of goroutines of a run that end together.
type background struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	fail   context.CancelCauseFunc
}

func (r *rolloutRun) newBackground(ctx context.Context) *background {
	b := &background{fail: r.fail}
	b.ctx, b.cancel = context.WithCancel(ctx)
	return b
}

// run starts one of them. An error before they are stopped ends the run.
func (b *background) run(what string, do func(context.Context) error) {
	b.wg.Go(func() {
		if err := do(b.ctx); err != nil && b.ctx.Err() == nil {
			b.fail(fmt.Errorf("%s: %w", what, err))
		}
	})
}

// stop ends them and returns when all have ended.
func (b *background) stop() {
	b.cancel()
	b.wg.Wait()
}

// makeNodes creates the fake nodes, which exist before the baseline.
func (r *rolloutRun) makeNodes(ctx context.Context) (experiment.Undo, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range kwok.Nodes(r.spec.Topology.Pods) {
		group.Go(func() error {
			node := kwok.Node(i, r.runLabel())
			if _, err := r.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("creating node %s: %w", node.Name, err)
			}
			return nil
		})
	}
	return nil, group.Wait()
}

// startRecorder starts what reads processes and metrics. Whatever way the run
// ends, its figures are read when the recorder is taken down.
func (r *rolloutRun) startRecorder(ctx context.Context) (experiment.Undo, error) {
	r.sampler = recorder.NewSampler(experiment.SampleInterval)
	r.metrics = recorder.NewMetrics(recorder.Build{Version: experiment.Version()}, r.sampler)
	r.metrics.Run(r.runInfo())
	server, err := r.metrics.Listen()
	if err != nil {
		return nil, err
	}
	var targets []recorder.Target
	if url := r.adapter.Server.Metrics().URL; url != "" {
		targets = append(targets, recorder.Target{Job: r.controlPlaneName(), URL: url})
	}
	targets = append(targets, recorder.Target{Job: experiment.InstrumentName, URL: server.URL()})
	sources := map[string]recorder.Source{experiment.InstrumentName: recorder.Self()}
	if r.adapter.Program != nil {
		sources[r.controlPlaneName()] = recorder.OfProcess(r.adapter.Program.Process().Handle())
	}
	for _, c := range r.cluster.Components() {
		sources[c.Name] = recorder.OfProcess(c.Process)
		targets = append(targets, recorder.Target{Job: c.Name, URL: c.MetricsURL, CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile})
	}
	for i := range targets {
		r.jobs = append(r.jobs, targets[i].Job)
		targets[i].Labels = map[string]string{"run": r.spec.Name(), "mode": r.spec.modeOrKnobs()}
	}
	for name, source := range sources {
		if err := r.sampler.Watch(name, source); err != nil {
			return nil, errors.Join(err, server.Close())
		}
	}
	b := r.newBackground(context.WithoutCancel(ctx)) // an interrupted phase has an end to be read too
	b.run("serving scaler's metrics", server.Run)
	b.run("reading processes", r.sampler.Run)
	b.run("measuring scaler's own lag", recorder.NewLag(0, func(d time.Duration) {
		switch r.currentPhase() { // of what is measured then, the rest would only dilute it
		case record.PhaseRollout:
			r.lag.Record(d)
		case record.PhaseProbe:
			r.probeLag.Record(d)
		}
		r.metrics.Observe(recorder.SchedulingLag, d)
	}).Run)
	r.recorder, err = recorder.Start(ctx, recorder.Options{
		Prometheus: r.programs[component.Prometheus],
		Dir:        r.writer.PrometheusDir(),
		Group:      r.group,
		Log:        filepath.Join(r.writer.LogDir(), "prometheus.log"),
		Targets:    targets,
		Interval:   experiment.SampleInterval,
		Progress:   r.progress.Say,
	})
	if err != nil {
		b.stop()
		return nil, err
	}
	return func(ctx context.Context) error {
		defer b.stop()
		return errors.Join(r.measure(ctx), r.recorder.Stop(ctx))
	}, nil
}

// runInfo is what the run's time series say about it.
func (r *rolloutRun) runInfo() recorder.RunInfo {
	spec, environment := r.record.Spec, r.record.Environment
	var limits recorder.Limits
	if known := environment.ControlPlane.Limits; known != nil {
		limits = recorder.Limits{TokenReviewsPerSecond: known.TokenReviewsPerSecond, DebounceSeconds: known.DebounceMaxSeconds}
		if processors := environment.ControlPlane.GOMAXPROCS; processors > 0 {
			limits.StreamsPerSecond = known.StreamsPerSecond.At(processors)
		}
	}
	return recorder.RunInfo{
		ControlPlane: r.controlPlaneName(),
		Pods:         spec.Pods, Services: spec.Services, Namespaces: spec.Namespaces,
		MTLS: environment.Knobs.MTLS, Scope: environment.Knobs.Scope, Authz: environment.Knobs.Authz,
		XDS: spec.XDS, GOMAXPROCS: environment.ControlPlane.GOMAXPROCS, Limits: limits,
	}
}

// startWatching starts what goes on in the background from baseline to the end
// of the run: watching pods and endpoints, keeping the control plane and the
// cluster under supervision, and showing progress. Taking it back ends every
// sidecar.
func (r *rolloutRun) startWatching(ctx context.Context) (experiment.Undo, error) {
	r.fleet = r.newFleet()
	b := r.newBackground(ctx)
	b.run("reporting sidecars to their pods", r.fleet.report)
	b.run("reporting sidecars that lack something", r.fleet.reportImpatient)
	b.run("watching pods and endpoints", func(ctx context.Context) error {
		return observe.Run(ctx, observe.Options{
			Client:      r.Client,
			Run:         r.runLabel(),
			OnPod:       func(ev observe.PodEvent) { r.fleet.onPod(ctx, ev) },
			OnEndpoints: r.fleet.onEndpoints,
			OnLost:      func(err error) { r.event(record.WatchLost{Error: err.Error()}) },
		})
	})
	if r.adapter.Program != nil {
		b.run("supervising the control plane", r.supervise)
	}
	b.run("supervising the cluster", func(ctx context.Context) error {
		select {
		case err := <-r.cluster.Died():
			return err
		case <-r.recorder.Done():
			return r.recorder.Err()
		case <-ctx.Done():
			return nil
		}
	})
	b.run("counting", r.count)
	if r.progress.Status != nil {
		b.run("showing progress", r.showProgress)
	}
	return func(context.Context) error {
		b.stop()
		r.fleet.sidecars.Wait()
		return nil
	}, nil
}

// supervise starts the control plane again when it ends, as its Deployment
// would: whenever a fault ended it, and otherwise once, when it does not run out
// of memory. An end beyond that is the run's.
func (r *rolloutRun) supervise(ctx context.Context) error {
	died := false
	for {
		p := r.adapter.Program.Process()
		select {
		case <-ctx.Done():
			return nil
		case <-p.Done():
		}
		r.sampler.Ended(r.controlPlaneName(), recorder.OfProcess(p.Handle()))
		asked := r.asked.Swap(false)
		switch {
		case p.OutOfMemory():
			r.event(record.OutOfMemory{LimitBytes: r.placing.MemoryBytes})
			return fmt.Errorf("%w; %s", p.Err(), r.standing())
		case died && !asked:
			return fmt.Errorf("it ended a second time: %w", p.Err())
		case !asked:
			died = true
			r.progress.say(r.controlPlaneName() + " ended and is started again; its log is in " + r.writer.LogDir())
			r.warn(record.Warning{
				About: "controlPlane." + string(r.currentPhase()), Reason: record.ReasonCrashed, Component: r.controlPlaneName(), Detail: experiment.FirstLine(p.Err()),
			})
		}
		r.event(record.ControlPlaneEnded{Asked: asked, Error: fmt.Sprint(p.Err())})
		r.restarted.Store(true)
		if err := r.adapter.Program.Restart(ctx); err != nil {
			return err
		}
		if err := r.sampler.Watch(r.controlPlaneName(), recorder.OfProcess(r.adapter.Program.Process().Handle())); err != nil {
			return err
		}
		if asked {
			r.again <- struct{}{} // there is room: a fault waits for one before it ends the next
		}
	}
}

// standing says in words how far the run is.
func (r *rolloutRun) standing() string {
	s := r.status()
	return fmt.Sprintf("in %s, with %d of %d pods created, %d connected and %d complete", r.currentPhase(), s.Created, s.Pods, s.Connected, s.Complete)
}

// showProgress tells the run's status each second.
func (r *rolloutRun) showProgress(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if s := r.status(); s.Phase != "" {
				r.progress.Status(s)
			}
		}
	}
}

func (r *rolloutRun) status() Status {
	r.mu.Lock()
	s := Status{Phase: string(r.phase), Length: r.length, Pods: r.spec.Topology.Pods}
	if r.phase != "" {
		s.Elapsed = time.Since(r.since)
	}
	r.mu.Unlock()
	r.fleet.count(&s)
	s.Cores, s.MemoryBytes, _ = r.sampler.Live(r.controlPlaneName())
	return s
}

// count keeps scaler's own gauges of pods and sidecars, and the time line, up to
// date.
func (r *rolloutRun) count(ctx context.Context) error {
	tick := time.NewTicker(experiment.SampleInterval)
	defer tick.Stop()
	for {
		var s Status
		r.fleet.count(&s)
		r.metrics.Pods("created", s.Created)
		r.metrics.Pods("ready", s.Ready)
		r.metrics.Sidecars("connected", s.Connected)
		r.metrics.Sidecars("complete", s.Complete)
		r.metrics.Sidecars("converged", s.Converged)
		if err := r.writer.Moment(r.moment(s)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (r *rolloutRun) currentPhase() record.PhaseName {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.phase
}

func (r *rolloutRun) controlPlaneName() string { return r.adapter.Server.Describe().Name }
