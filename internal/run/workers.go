package run

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/component"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/authority"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/internal/workerjob"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
)

// workers are the processes that run the simulated sidecars: this one and children, or the pods of a
// Job.
type workers struct {
	local   *worker.Local  // in this process; nil where there is a job
	job     *workerjob.Job // nil where there is none
	names   []string       // of the workers; nil where there is only this process
	usage   []func() measure.Source
	sampler *measure.Sampler // of each by its name; nil where there is only this process
	timed   atomic.Bool      // the run has its timeline, and so a phase
}

// workerName returns the name of the n-th worker; 0 is this process.
func workerName(n int) string {
	if n == 0 {
		return measure.InstrumentName
	}
	return fmt.Sprintf("worker-%d", n)
}

// workerSetup returns the options of a worker in another process.
func (r *run) workerSetup(kubeconfig string) worker.Setup {
	return worker.Setup{
		Build: component.ScalerVersion(), Driver: r.driver.Name, Dataplane: r.spec.Dataplane(), Waypoints: r.spec.Mesh.Waypoints, Kubeconfig: kubeconfig,
	}
}

// startJob starts the workers in the cluster, if the sidecars are to run there.
// Undoing it ends the connections to them; the objects are the run's.
func (r *run) startJob(ctx context.Context) (steps.Undo, error) {
	e := r.spec.Existing
	if e == nil || e.WorkerImage == "" {
		return nil, nil
	}
	r.progress.say(fmt.Sprintf("starting %d workers in the cluster", r.spec.Instrument.Workers))
	job, err := workerjob.Start(ctx, e.found.Cluster, r.api.Client, e.workers(r.spec, r.runLabel()))
	if err != nil {
		return nil, err
	}
	r.workers.job = job
	return func(context.Context) error { job.Close(); return nil }, nil
}

// missWorker takes that a worker in the cluster was lost, with its sidecars.
func (r *run) missWorker(lost worker.Worker, err error) {
	name, sidecars := lost.State().Name, r.fleet.Missed(lost, time.Now())
	r.progress.say(fmt.Sprintf("warning: %v: what its %d sidecars miss counts as lost", err, sidecars))
	r.journal.Event(record.WorkerLost{Worker: name, Sidecars: sidecars, Error: err.Error()})
	phase := r.currentPhase()
	for _, about := range []string{"latencies", "controlPlane." + string(phase)} {
		if phase == "" && about != "latencies" {
			continue // between phases
		}
		r.journal.Warn(record.Warning{
			About: about, Reason: record.ReasonWorkerLost, Component: name, Phase: phase, Values: map[string]float64{"sidecars": float64(sidecars)},
		})
	}
}

// startWorkers starts the workers that run the simulated sidecars.
func (r *run) startWorkers(ctx context.Context, observer proxy.Observer) ([]worker.Worker, error) {
	w := &r.workers
	if w.job != nil {
		return r.connectWorkers(ctx, observer)
	}
	services := controlplane.ProxyServices{Keys: r.programs.keys.Key, Tokens: authority.Tokens(r.api.Client)}
	local, err := worker.NewLocal(ctx, r.workerOptions(workerName(0), observer), r.driver, services)
	if err != nil {
		return nil, err
	}
	w.local = local
	all := []worker.Worker{local}
	for n := 1; n < r.spec.Instrument.Workers; n++ {
		name := workerName(n)
		r.progress.say("starting " + name)
		child, err := worker.StartChild(ctx, r.group, r.journal.Writer().LogDir(), r.workerSetup(r.env.API().Kubeconfig), r.workerOptions(name, observer))
		if err != nil {
			return nil, err // what it started is in the run's group
		}
		all = append(all, child)
		if n == 1 {
			w.add(workerName(0), measure.Self)
		}
		w.add(name, child.Usage)
	}
	return all, w.watch()
}

// workerOptions returns the options of the worker of a name.
func (r *run) workerOptions(name string, observer proxy.Observer) worker.Options {
	return worker.Options{
		Name: name, Observer: observer, Keep: r.spec.KeepConfiguration != KeepNothing, Failed: r.fail,
		Late: func(late *stats.Histogram) {
			if r.workers.timed.Load() {
				r.observed.lags.merge(r.currentPhase(), name, late)
			}
		},
	}
}

// connectWorkers connects to the workers of the Job, to all at once.
func (r *run) connectWorkers(ctx context.Context, observer proxy.Observer) ([]worker.Worker, error) {
	name := func(n int) string { return fmt.Sprintf("worker-%d", n) } // this process is none of them
	w, setup := &r.workers, r.workerSetup(worker.OwnCluster)
	all := make([]worker.Worker, r.spec.Instrument.Workers)
	places := make([]workerjob.Place, len(all))
	group, ctx := errgroup.WithContext(ctx)
	for n := range all {
		group.Go(func() error {
			share, err := worker.NewShare(ctx, worker.ShareOptions{
				Options: r.workerOptions(name(n), observer),
				Connect: func(ctx context.Context, o worker.Options) (worker.Worker, error) {
					return w.job.Connect(ctx, n, setup, o)
				},
				Lost: r.missWorker,
				Replaced: func(by worker.Worker, after time.Duration) {
					p := w.job.Place(n)
					r.journal.Event(record.WorkerReplaced{Worker: by.State().Name, Pod: p.Pod, Node: p.Node, Seconds: after.Seconds()})
				},
			})
			all[n], places[n] = share, w.job.Place(n)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err // the connections end with the Job's
	}
	for n, p := range places {
		r.progress.say(fmt.Sprintf("worker %d is pod %s on node %s", n, p.Pod, p.Node))
		w.add(name(n), func() measure.Source { return w.job.Usage(context.WithoutCancel(ctx), n) })
	}
	r.journal.Update(func(run *record.Run) {
		for n, p := range places {
			run.Environment.Existing.Workers = append(run.Environment.Existing.Workers, record.WorkerPod{Name: name(n), Pod: p.Pod, Node: p.Node})
		}
	})
	return all, w.watch()
}

// add adds one of several workers.
func (w *workers) add(name string, usage func() measure.Source) {
	w.names, w.usage = append(w.names, name), append(w.usage, usage)
}

// watch has each worker sampled by itself, if there are several.
func (w *workers) watch() error {
	if w.names == nil {
		return nil
	}
	w.sampler = measure.NewSampler(measure.SampleInterval)
	for i, name := range w.names {
		if err := w.sampler.Watch(name, w.usage[i]()); err != nil {
			return err
		}
	}
	return nil
}

// instrument reads what scaler uses, its workers included.
func (w *workers) instrument() measure.Source {
	var others []measure.Source
	for i, name := range w.names {
		if name != measure.InstrumentName {
			others = append(others, w.usage[i]())
		}
	}
	return measure.Sum(measure.Self(), others...)
}

// edge reads the counters of all processes now: the edge of a phase.
func (w *workers) edge(all *measure.Sampler) (time.Time, error) {
	at, err := all.Edge()
	if err == nil && w.sampler != nil {
		_, err = w.sampler.Edge()
	}
	return at, err
}
