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
	"scaler.mesh/scaler/internal/process"
	"scaler.mesh/scaler/internal/run/journal"
	"scaler.mesh/scaler/internal/steps"
	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/internal/workerjob"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
)

// workers are the processes that run the simulated sidecars: this one and children, or the pods of a
// Job.
type workers struct {
	// fixed after newWorkers
	count   int
	driver  controlplane.Driver
	proxies controlplane.ProxyServices // of this process
	setup   worker.Setup               // of the others
	group   *process.Group             // of children
	logs    string                     // folder of theirs
	journal *journal.Journal
	say     func(string)
	fail    context.CancelCauseFunc
	lags    *lags
	phase   func() record.PhaseName // that goes on
	lost    func(worker.Worker, error)

	keep    bool           // what proxies hold is kept with its messages
	local   *worker.Local  // in this process; nil where there is a job
	job     *workerjob.Job // nil where there is none
	names   []string       // of the workers; nil where there is only this process
	usage   []func() measure.Source
	sampler *measure.Sampler // of each by its name; nil where there is only this process
	timed   atomic.Bool      // phase may be called: the run has its timeline
}

// workerName returns the name of the n-th worker; 0 is this process.
func workerName(n int) string {
	if n == 0 {
		return measure.InstrumentName
	}
	return fmt.Sprintf("worker-%d", n)
}

// newWorkers prepares the workers of the run.
func (r *run) newWorkers() *workers {
	return &workers{
		count: r.spec.Instrument.Workers, driver: r.driver, proxies: controlplane.ProxyServices{Keys: r.programs.keys.Key, Tokens: authority.Tokens(r.api.Client)},
		setup: worker.Setup{
			Build: component.ScalerVersion(), Driver: r.driver.Name, Dataplane: r.spec.Dataplane(), Waypoints: r.spec.Mesh.Waypoints, Kubeconfig: r.env.API().Kubeconfig,
		},
		group: r.group, logs: r.journal.Writer().LogDir(), journal: r.journal, say: r.progress.say, fail: r.fail,
		lags: r.observed.lags, phase: r.currentPhase, lost: r.missWorker, keep: r.spec.KeepConfiguration,
	}
}

// startJob starts the workers in the cluster, if the sidecars are to run there.
// Undoing it ends the connections to them; the objects are the run's.
func (r *run) startJob(ctx context.Context) (steps.Undo, error) {
	r.workers = r.newWorkers()
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

// start starts the workers that run the simulated sidecars.
func (w *workers) start(ctx context.Context, observer proxy.Observer) ([]worker.Worker, error) {
	if w.job != nil {
		return w.connect(ctx, observer)
	}
	local, err := worker.NewLocal(ctx, w.options(workerName(0), observer), w.driver, w.proxies)
	if err != nil {
		return nil, err
	}
	w.local = local
	all := []worker.Worker{local}
	for n := 1; n < w.count; n++ {
		name := workerName(n)
		w.say("starting " + name)
		child, err := worker.StartChild(ctx, w.group, w.logs, w.setup, w.options(name, observer))
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

// options returns the options of the worker of a name.
func (w *workers) options(name string, observer proxy.Observer) worker.Options {
	return worker.Options{
		Name: name, Observer: observer, Keep: w.keep, Failed: w.fail,
		Late: func(late *stats.Histogram) {
			if w.timed.Load() {
				w.lags.merge(w.phase(), name, late)
			}
		},
	}
}

// connect connects to the workers of the Job, to all at once.
func (w *workers) connect(ctx context.Context, observer proxy.Observer) ([]worker.Worker, error) {
	name := func(n int) string { return fmt.Sprintf("worker-%d", n) } // this process is none of them
	setup := w.setup
	setup.Kubeconfig = worker.OwnCluster
	all, places := make([]worker.Worker, w.count), make([]workerjob.Place, w.count)
	group, ctx := errgroup.WithContext(ctx)
	for n := range all {
		group.Go(func() error {
			share, err := worker.NewShare(ctx, worker.ShareOptions{
				Options: w.options(name(n), observer),
				Connect: func(ctx context.Context, o worker.Options) (worker.Worker, error) {
					return w.job.Connect(ctx, n, setup, o)
				},
				Lost: w.lost,
				Replaced: func(by worker.Worker, after time.Duration) {
					p := w.job.Place(n)
					w.journal.Event(record.WorkerReplaced{Worker: by.State().Name, Pod: p.Pod, Node: p.Node, Seconds: after.Seconds()})
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
		w.say(fmt.Sprintf("worker %d is pod %s on node %s", n, p.Pod, p.Node))
		w.add(name(n), func() measure.Source { return w.job.Usage(context.WithoutCancel(ctx), n) })
	}
	w.journal.Update(func(run *record.Run) {
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
