package run

import (
	"context"
	"sync/atomic"
	"time"

	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/run/faults"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/run/supervision"
	"scaler.mesh/scaler/internal/run/upgrade"
	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/internal/workload"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// parts holds what the phases of a run have in common.
type parts struct {
	fleet      *fleet.Fleet
	timeline   *phases.Timeline
	supervisor *supervision.Supervisor
	helpers    map[string]*supervision.Supervisor // of the programs that help the control plane, by name
	replicas   *supervision.Replicas              // nil where the control plane is one program
	injector   *faults.Injector
	applier    *workload.Applier
	watching   *background             // what runs from baseline to the end
	upgrading  *upgrade.Upgrade        // nil where there is none
	next       *supervision.Supervisor // of the control plane that an upgrade leads to, once it is started
	nextName   atomic.Pointer[string]  // of that control plane; nil before
	servers    servers                 // the programs that serve the mesh now
}

// assemble makes what the phases work with: the fleet, the timeline, the supervisor,
// the injector of faults and the applier of the mesh's objects.
func (r *run) assemble(ctx context.Context) (err error) {
	r.fleet, err = fleet.New(fleet.Options{
		Driver: r.driver, StartWorkers: func(o proxy.Observer) ([]worker.Worker, error) { return r.startWorkers(ctx, o) },
		Adapter: r.adapter, Client: r.api.Client, Mesh: r.mesh, Knobs: r.spec.Knobs(),
		Variant:   xdsprobe.Variant(r.spec.Mesh.Sidecars.XDS),
		Latencies: r.observed.latencies, Metrics: r.metrics,
		Event: r.journal.Event, Fail: r.fail,
		Seed: r.spec.Mesh.Seed, Delay: r.spec.startDelay(), Lifetime: time.Duration(r.spec.Mesh.Sidecars.CertificateLifetime), Real: r.realOptions(),
		Slowdown: proxy.Slowdown(r.spec.dilation()), Anew: r.spec.delayAnew().Slowed(r.spec.dilation()), Nodes: r.dataplane().nodeProxies(), Machines: r.machines, Rest: r.rest(),
	})
	if err != nil {
		return err
	}
	r.timeline = phases.NewTimeline(phases.Options{
		Journal: r.journal, Edge: r.edge, Fleet: r.fleet, Show: r.showPhase, Say: r.progress.say,
		Explains: r.explains(),
	})
	r.workers.timed.Store(true)
	r.supervisor = supervision.New(r.controlPlaneName(), r.adapter.Program, r.supervisionOptions())
	r.helpers = map[string]*supervision.Supervisor{}
	for _, h := range r.adapter.Helpers {
		r.helpers[h.Name] = supervision.NewHelper(h, r.supervisionOptions())
	}
	r.replicas = supervision.NewReplicas(r.adapter.Replicas, r.controlPlaneName(), r.fleet.Workers.Route, r.fleet.Pods.StreamsTo, r.supervisionOptions())
	r.injector = faults.NewInjector(faults.Options{
		Faults: r.spec.Load.Faults, Make: r.makeFault, Pods: r.spec.Pods(), Timeout: time.Duration(r.spec.Phases.ConvergeTimeout),
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
		Client: r.api.Client, Run: r.runLabel(), Mesh: r.mesh, Nodes: r.pool(),
		PodLabels:       r.adapter.Sidecars.PodLabels,
		NamespaceLabels: func(namespace string) map[string]string { return r.adapter.NamespaceLabels(r.mesh, namespace) },
		PodAnnotations:  func(namespace string) map[string]string { return r.adapter.PodAnnotations(r.mesh, namespace) },
		Objects:         append(workers, r.adapter.Mesh.Objects(r.mesh, r.spec.Knobs())...), Dynamic: r.api.Dynamic,
		RealImage: r.spec.Mesh.Sidecars.Image, Gateway: r.adapter.MakeGateway,
		Scaling: r.fleet.Pods.Scaled, GracePeriod: r.gracePeriod(),
	}
	if waypoints := r.adapter.Waypoints(); waypoints != nil {
		r.applier.Labels = waypoints.Labels
	}
	if r.spec.Captured != nil {
		r.spec.Captured.replay(r.applier, r.templates, r.adapter.Sidecars.NamespaceLabels)
	}
	return nil
}
