package run

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/controlplane/authority"
	"scaler.mesh/scaler/internal/experiment"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/internal/workerjob"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
)

// maxWorkers is more processes than any machine has use for.
const maxWorkers = 64

// workers are the processes that run the simulated sidecars: this one and children, or the pods of a
// Job.
type workers struct {
	job     *workerjob.Job // nil where there is none
	names   []string       // of the workers; nil where there is only this process
	usage   []func() measure.Source
	sampler *measure.Sampler // of each by its name; nil where there is only this process
	phases  atomic.Bool      // the run has its timeline: late may ask for the phase

	mu  sync.Mutex
	lag map[string]*stats.Histogram // of each during the rollout, by its name
}

// workerName is the name of the n-th worker; 0 is this process.
func workerName(n int) string {
	if n == 0 {
		return experiment.InstrumentName
	}
	return fmt.Sprintf("worker-%d", n)
}

// start starts the workers that run the simulated sidecars.
func (w *workers) start(ctx context.Context, r *run, observer proxy.Observer) ([]worker.Worker, error) {
	name := workerName
	if w.job != nil {
		name = func(n int) string { return fmt.Sprintf("worker-%d", n) } // all are workers
	}
	options := func(n int) worker.Options {
		return worker.Options{
			Name: name(n), Observer: observer, Failed: func(err error) { r.fail(err) },
			Late: func(h *stats.Histogram) { w.late(name(n), r, h) },
		}
	}
	setup := worker.Setup{
		Build: experiment.Version(), Driver: r.driver.Name, Dataplane: r.spec.Dataplane, Waypoints: r.spec.Waypoints, Kubeconfig: r.env.API().Kubeconfig,
	}
	if w.job != nil {
		setup.Kubeconfig = worker.OwnCluster
		return w.connect(ctx, r, setup, options)
	}
	local, err := worker.NewLocal(ctx, options(0), r.driver, controlplane.ProxyServices{
		Keys: r.programs.keys.Key, Tokens: authority.Tokens(r.api.Client),
	})
	if err != nil {
		return nil, err
	}
	all := []worker.Worker{local}
	for n := 1; n < r.spec.Workers; n++ {
		r.progress.say("starting " + workerName(n))
		child, err := worker.StartChild(ctx, r.group, r.journal.Writer().LogDir(), setup, options(n))
		if err != nil {
			return nil, err // what it started is in the run's group
		}
		all = append(all, child)
		if n == 1 {
			w.add(workerName(0), measure.Self)
		}
		w.add(workerName(n), child.Usage)
	}
	return all, w.watch()
}

// startJob has workers started in the cluster, if the sidecars are to run there. Taking it back ends
// the connections to them; the objects are the run's.
func (w *workers) startJob(ctx context.Context, r *run) (_ experiment.Undo, err error) {
	if e := r.spec.Existing; e != nil && e.WorkerImage != "" {
		r.progress.say(fmt.Sprintf("starting %d workers in the cluster", r.spec.Workers))
		if w.job, err = workerjob.Start(ctx, e.found.Cluster, r.api.Client, e.workers(r.spec, r.runLabel())); err != nil {
			return nil, err
		}
		return func(context.Context) error { w.job.Close(); return nil }, nil
	}
	return nil, nil
}

// connect connects to the workers of the Job, to all at once.
func (w *workers) connect(ctx context.Context, r *run, setup worker.Setup, options func(int) worker.Options) ([]worker.Worker, error) {
	all, places := make([]worker.Worker, r.spec.Workers), make([]workerjob.Place, r.spec.Workers)
	group, ctx := errgroup.WithContext(ctx)
	for n := range all {
		group.Go(func() error {
			share, err := worker.NewShare(ctx, worker.ShareOptions{
				Options: options(n),
				Connect: func(ctx context.Context, o worker.Options) (worker.Worker, error) {
					return w.job.Connect(ctx, n, setup, o)
				},
				Lost: func(lost worker.Worker, err error) { missWorker(r, lost, err) },
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
		w.add(options(n).Name, func() measure.Source { return w.job.Usage(context.WithoutCancel(ctx), n) })
	}
	r.journal.Update(func(run *record.Run) {
		for n, p := range places {
			run.Environment.Existing.Workers = append(run.Environment.Existing.Workers, record.WorkerPod{Name: options(n).Name, Pod: p.Pod, Node: p.Node})
		}
	})
	return all, w.watch()
}

// missWorker takes that a worker in the cluster was lost, with its sidecars.
func missWorker(r *run, lost worker.Worker, err error) {
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

// add adds one of several workers.
func (w *workers) add(name string, usage func() measure.Source) {
	w.names, w.usage = append(w.names, name), append(w.usage, usage)
}

// watch has each worker sampled by itself, if there are several.
func (w *workers) watch() error {
	if w.names == nil {
		return nil
	}
	w.sampler = measure.NewSampler(experiment.SampleInterval)
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
		if name != experiment.InstrumentName {
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

// late takes how late a worker in another process ran.
func (w *workers) late(name string, r *run, late *stats.Histogram) {
	if !w.phases.Load() {
		return
	}
	switch r.currentPhase() {
	case record.PhaseRollout:
		r.observed.lag.Merge(late)
		w.lagOf(name).Merge(late)
	case record.PhaseProbe:
		r.observed.probeLag.Merge(late)
	case record.PhaseChange:
		r.observed.changeLag.Merge(late)
	}
}

// lagOf is how late a worker ran during the rollout.
func (w *workers) lagOf(name string) *stats.Histogram {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.lag == nil {
		w.lag = map[string]*stats.Histogram{}
	}
	if w.lag[name] == nil {
		w.lag[name] = stats.NewHistogram()
	}
	return w.lag[name]
}

// measureWorkers records what each worker needed over the rollout, if there are
// several, and warns of clocks that are not known well enough.
func (m measurement) measureWorkers(rollout phases.Window) error {
	if m.workers.sampler == nil {
		return nil
	}
	for _, state := range m.fleet.Workers.States() {
		usage, err := m.workers.sampler.Figures(state.Name, rollout.Begin, rollout.End)
		if err != nil {
			return err
		}
		one := record.InstrumentWorker{
			Name: state.Name, Sidecars: state.Started,
			Cores: &usage.CoresMean, MemoryBytes: &usage.MemoryPeak, OpenFiles: &usage.OpenFilesPeak,
			Clock: record.WorkerClock{
				Name: state.Clock.Name, OffsetSeconds: state.Clock.Offset.Seconds(), UncertaintySeconds: state.Clock.Uncertainty.Seconds(),
			},
		}
		if lag := m.workers.lagOf(state.Name).Summary(); lag.Count > 0 {
			one.Lag = new(record.Latency(lag))
		}
		m.document.Instrument.Workers = append(m.document.Instrument.Workers, one)
		doubted := m.document.Latencies.BelowClock(state.Clock.Uncertainty.Seconds())
		if state.Clock.Uncertainty > experiment.LateInstrument {
			doubted = []string{"latencies"}
		}
		for _, about := range doubted {
			m.journal.Warn(record.Warning{
				About: about, Reason: record.ReasonUncertainClock, Component: state.Name,
				Values: map[string]float64{"uncertaintySeconds": state.Clock.Uncertainty.Seconds()},
			})
		}
	}
	return nil
}
