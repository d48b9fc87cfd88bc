package run

import (
	"context"

	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/pkg/record"
)

// instrumentFigures computes the usage of scaler itself.
type instrumentFigures struct {
	measurement
	floor      map[string]float64 // nil = not known
	perSidecar bool               // its memory is that of sidecars
	lags       *lags
	recorder   *measure.Recorder
	sampler    *measure.Sampler
	workers    *measure.Sampler // of each worker; nil where there is one
	states     []worker.State   // of the workers
}

func (r *run) instrumentFigures(m measurement) instrumentFigures {
	return instrumentFigures{
		measurement: m, floor: r.spec.floor(), perSidecar: r.adapter.Nodes == nil, lags: r.observed.lags,
		recorder: r.recorder, sampler: r.sampler, workers: r.workers.sampler, states: r.fleet.Workers.States(),
	}
}

// measure records what scaler itself needed, over the rollout.
func (m instrumentFigures) measure(ctx context.Context) error {
	instrument := &record.Instrument{Floor: m.floor}
	m.document.Instrument = instrument
	if summary := m.lags.rollout.Summary(); summary.Count > 0 {
		lag := record.Latency(summary)
		instrument.Lag = &lag
		if err := m.journal.Writer().Histogram("lag", m.lags.rollout); err != nil {
			return err
		}
	}
	var idle, loaded float64 // resident bytes without and with sidecars
	for _, w := range m.windows {
		usage, err := m.recorder.Figures(ctx, m.sampler, measure.InstrumentName, w.Begin, w.End)
		if err != nil {
			return err
		}
		switch w.Name {
		case record.PhaseBaseline:
			idle = usage.MemoryEnd
		case record.PhaseRollout:
			loaded = usage.MemoryEnd
			instrument.Cores = &usage.CoresMean
			instrument.MemoryBytes = &usage.MemoryPeak
			instrument.OpenFiles = &usage.OpenFilesPeak
			instrument.Saturation, instrument.WaitedSeconds = usage.Saturation, usage.Waited
			if err := m.measureWorkers(w); err != nil {
				return err
			}
		}
	}
	if connected := m.document.Pods.Connected; m.perSidecar && loaded > 0 && connected != nil && *connected > 0 {
		instrument.BytesPerSidecar = new((loaded - idle) / float64(*connected))
	}
	return nil
}

// measureWorkers records what each worker needed over the rollout, if there are
// several, and warns of clocks that are not known well enough.
func (m instrumentFigures) measureWorkers(rollout phases.Window) error {
	if m.workers == nil {
		return nil
	}
	for _, state := range m.states {
		usage, err := m.workers.Figures(state.Name, rollout.Begin, rollout.End)
		if err != nil {
			return err
		}
		one := record.InstrumentWorker{
			Name: state.Name, Sidecars: state.Started,
			Cores: &usage.CoresMean, MemoryBytes: &usage.MemoryPeak, OpenFiles: &usage.OpenFilesPeak,
			Clock: record.WorkerClock{
				Name: state.Name, OffsetSeconds: state.Clock.Offset.Seconds(), UncertaintySeconds: state.Clock.Uncertainty.Seconds(),
			},
		}
		if lag := m.lags.of(state.Name).Summary(); lag.Count > 0 {
			one.Lag = new(record.Latency(lag))
		}
		m.document.Instrument.Workers = append(m.document.Instrument.Workers, one)
		uncertain := m.document.Latencies.BelowClock(state.Clock.Uncertainty.Seconds())
		if state.Clock.Uncertainty > worker.LateInstrument {
			uncertain = []string{"latencies"}
		}
		for _, about := range uncertain {
			m.journal.Warn(record.Warning{
				About: about, Reason: record.ReasonUncertainClock, Component: state.Name,
				Values: map[string]float64{"uncertaintySeconds": state.Clock.Uncertainty.Seconds()},
			})
		}
	}
	return nil
}
