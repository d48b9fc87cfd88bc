package run

import (
	"context"

	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/pkg/record"
)

// measureInstrument records what scaler itself needed, over the rollout.
func (m measurement) measureInstrument(ctx context.Context) error {
	instrument := &record.Instrument{Floor: m.spec.floor()}
	m.document.Instrument = instrument
	if summary := m.observed.lags.rollout.Summary(); summary.Count > 0 {
		lag := record.Latency(summary)
		instrument.Lag = &lag
		if err := m.journal.Writer().Histogram("lag", m.observed.lags.rollout); err != nil {
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
	if connected := m.document.Pods.Connected; m.adapter.Nodes == nil && loaded > 0 && connected != nil && *connected > 0 {
		instrument.BytesPerSidecar = new((loaded - idle) / float64(*connected))
	}
	return nil
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
				Name: state.Name, OffsetSeconds: state.Clock.Offset.Seconds(), UncertaintySeconds: state.Clock.Uncertainty.Seconds(),
			},
		}
		if lag := m.observed.lags.of(state.Name).Summary(); lag.Count > 0 {
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
