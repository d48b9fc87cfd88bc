package run

import (
	"context"
	"fmt"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/observe"
	"scaler.mesh/scaler/internal/run/faults"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/run/supervision"
	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/internal/workload"
	"scaler.mesh/scaler/kwok"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// makeNodes creates the fake nodes, which exist before the baseline.
func (r *run) makeNodes(ctx context.Context) (experiment.Undo, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i, zone := range r.spec.nodeLabels() {
		group.Go(func() error {
			node := poolOf(r).Node(i, r.runLabel())
			maps.Copy(node.Labels, zone)
			if _, err := r.api.Client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("creating node %s: %w", node.Name, err)
			}
			return nil
		})
	}
	return nil, group.Wait()
}

// startWatching starts what runs in the background from baseline to the end
// of the run: watching pods and endpoints, supervising the control plane and the
// cluster, and showing progress. Taking it back ends every sidecar.
func (r *run) startWatching(ctx context.Context) (experiment.Undo, error) {
	b := newBackground(ctx, r.fail)
	r.watching = b
	b.run("reporting sidecars to their pods", r.fleet.Readiness.Run)
	b.run("reporting sidecars that lack something", r.fleet.Readiness.RunTimeouts)
	b.run("watching pods and endpoints", func(ctx context.Context) error {
		return observe.Run(ctx, observe.Options{
			Client:      r.api.Client,
			Run:         r.runLabel(),
			OnPod:       takePods(ctx, r),
			OnEndpoints: takeEndpoints(r),
			OnLost:      func(err error) { r.journal.Event(record.WatchLost{Error: err.Error()}) },
		})
	})
	switch {
	case r.adapter.Program != nil:
		b.run("supervising the control plane", r.supervisor.Run)
	case r.replicas != nil:
		r.replicas.Begin(r.recorder, func(name string, run func(context.Context) error) { b.run("supervising "+name, run) })
	}
	for name, helper := range r.helpers {
		b.run("supervising "+name, helper.Run)
	}
	b.run("supervising the cluster", func(ctx context.Context) error { return awaitEnd(ctx, r.env, r.recorder) })
	if e := r.spec.Existing; e != nil && len(e.AbortIf) > 0 {
		b.run("watching the cluster", e.guard(r).Run)
	}
	b.run("counting", r.monitor.count)
	b.run("comparing clocks", experiment.ClockWatch{Phase: r.currentPhase, Journal: r.journal, Say: r.progress.say}.Run)
	if r.progress.Status != nil {
		b.run("showing progress", r.monitor.showProgress)
	}
	return func(ctx context.Context) error {
		b.stop()
		return r.fleet.Close(ctx)
	}, nil
}

// assemble makes what the phases work with: the fleet, the timeline, the supervisor,
// the injector of faults and the applier of the mesh's objects.
func (r *run) assemble(ctx context.Context) (err error) {
	r.fleet, err = fleet.New(fleet.Options{
		Driver: r.driver, StartWorkers: func(o proxy.Observer) ([]worker.Worker, error) { return r.workers.start(ctx, r, o) },
		Adapter: r.adapter, Client: r.api.Client, Mesh: r.mesh, Knobs: r.spec.Knobs(),
		Variant:   xdsprobe.Variant(r.spec.XDS),
		Latencies: r.observed.latencies, Metrics: r.metrics,
		Event: r.journal.Event, Fail: func(err error) { r.fail(err) },
		Seed: r.spec.Topology.Seed, Delay: r.spec.StartDelay, Lifetime: r.spec.CertificateLifetime, Real: r.realOptions(),
		Slowdown: proxy.Slowdown(r.spec.dilation()), Nodes: nodeProxies(r),
	})
	if err != nil {
		return err
	}
	r.timeline = phases.NewTimeline(phases.Options{
		Journal: r.journal, Edge: func() (time.Time, error) { return edge(r) }, Fleet: r.fleet, Show: r.metrics.Phase, Say: r.progress.say,
	})
	r.workers.phases.Store(true)
	streams := func() map[string]int { return r.fleet.Pods.StreamsTo() }
	r.supervisor = supervision.New(r.controlPlaneName(), r.adapter.Program, supervisionOptions(r))
	r.helpers = map[string]*supervision.Supervisor{}
	for _, h := range r.adapter.Helpers {
		r.helpers[h.Name] = supervision.NewHelper(h, supervisionOptions(r))
	}
	r.replicas = supervision.NewReplicas(r.adapter.Replicas, r.controlPlaneName(), r.fleet.Workers.Route, streams, supervisionOptions(r))
	r.monitor = &monitor{
		pods: r.spec.Topology.Pods, name: r.controlPlaneName(), replicas: r.replicas.Names(), programs: func() []string { return programNames(r) },
		sampler: r.sampler, metrics: r.metrics, fleet: r.fleet, timeline: r.timeline, writer: r.journal.Writer(), show: r.progress.Status,
	}
	if r.adapter.Nodes != nil {
		r.monitor.proxy = r.driver.ProxyName
	}
	r.injector = faults.NewInjector(faults.Options{
		Faults: r.spec.Faults, Actions: r.faultActions(), Pods: r.spec.Topology.Pods, Timeout: r.spec.ConvergeTimeout,
		Journal: r.journal, Fleet: r.fleet, Timeline: r.timeline, Say: r.progress.say, Recovered: r.recovered,
	})
	if r.replicas != nil {
		r.injector.Streams = r.replicas.Now
	}
	workers, err := r.spec.Existing.workerObjects(r.spec, r.runLabel(), r.mesh)
	if err != nil {
		return err
	}
	r.applier = &workload.Applier{
		Client: r.api.Client, Run: r.runLabel(), Mesh: r.mesh, Nodes: poolOf(r),
		PodLabels:       podLabels(r.adapter),
		NamespaceLabels: func(namespace string) map[string]string { return r.adapter.NamespaceLabels(r.mesh, namespace) },
		PodAnnotations:  func(namespace string) map[string]string { return r.adapter.PodAnnotationsIn(r.mesh, namespace) },
		Objects:         append(workers, r.adapter.Mesh.Objects(r.mesh, r.spec.Knobs())...), Dynamic: r.api.Dynamic,
		RealImage: r.spec.EchoImage,
		Scaling:   r.fleet.Pods.Scaled, GracePeriod: gracePeriod(r),
	}
	if r.adapter.Waypoints != nil {
		r.applier.Labels = r.adapter.Waypoints.Labels
	}
	if r.adapter.Gateways != nil {
		r.applier.Gateway = r.adapter.Gateways.MakeGateway
	}
	if r.spec.Mesh != nil {
		r.applier.Templates, r.applier.Around = r.spec.Mesh.templates(), r.spec.Mesh.Mesh.Surroundings(r.adapter.Mesh.NamespaceLabels())
	}
	return nil
}

// poolOf are the nodes of a run's pods.
func poolOf(r *run) kwok.Pool { return r.spec.place().pool(r.runLabel()) }

// podLabels make pods those of a control plane.
func podLabels(of *controlplane.ControlPlane) map[string]string {
	if of.Revision == nil {
		return of.PodLabels
	}
	return of.Revision.PodLabels()
}

func (r *run) controlPlaneName() string { return r.adapter.Server.Describe().Name }
