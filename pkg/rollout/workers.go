package rollout

import (
	"context"
	"fmt"
	"sync"
	"time"

	"scaler.mesh/scaler/pkg/controlplane"
	"scaler.mesh/scaler/pkg/controlplane/authority"
	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/phases"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/recorder"
	"scaler.mesh/scaler/pkg/stats"
	"scaler.mesh/scaler/pkg/worker"
)

// maxWorkers is more processes than any machine has use for.
const maxWorkers = 64

// workers are the processes that run the simulated sidecars: this one, and children.
type workers struct {
	children []*worker.Child
	sampler  *recorder.Sampler // of each by its name; nil without children

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
	options := func(n int) worker.Options {
		return worker.Options{
			Name: workerName(n), Observer: observer, Failed: func(err error) { r.fail(err) },
			Late: func(h *stats.Histogram) { w.late(workerName(n), r, h) },
		}
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
		child, err := worker.StartChild(ctx, r.group, r.journal.Writer().LogDir(), worker.Setup{
			Build: experiment.Version(), Driver: r.driver.Name, Dataplane: r.spec.Dataplane, Waypoints: r.spec.Waypoints, Kubeconfig: r.env.API().Kubeconfig,
		}, options(n))
		if err != nil {
			return nil, err // what it started is in the run's group
		}
		all = append(all, child)
		w.children = append(w.children, child)
	}
	return all, w.watch()
}

// watch has each worker sampled by itself, if there are several.
func (w *workers) watch() error {
	if w.children == nil {
		return nil
	}
	w.sampler = recorder.NewSampler(experiment.SampleInterval)
	if err := w.sampler.Watch(workerName(0), recorder.Self()); err != nil {
		return err
	}
	for i, child := range w.children {
		if err := w.sampler.Watch(workerName(i+1), child.Usage()); err != nil {
			return err
		}
	}
	return nil
}

// instrument reads what scaler uses, its workers included.
func (w *workers) instrument() recorder.Source {
	var others []recorder.Source
	for _, child := range w.children {
		others = append(others, child.Usage())
	}
	return recorder.Sum(recorder.Self(), others...)
}

// edge reads the counters of all processes now: the edge of a phase.
func (w *workers) edge(all *recorder.Sampler) (time.Time, error) {
	at, err := all.Edge()
	if err == nil && w.sampler != nil {
		_, err = w.sampler.Edge()
	}
	return at, err
}

// late takes how late a worker in another process ran.
func (w *workers) late(name string, r *run, late *stats.Histogram) {
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
		if state.Clock.Uncertainty > experiment.LateInstrument {
			m.journal.Warn(record.Warning{
				About: "latencies", Reason: record.ReasonUncertainClock, Component: state.Name,
				Values: map[string]float64{"uncertaintySeconds": state.Clock.Uncertainty.Seconds()},
			})
		}
	}
	return nil
}
