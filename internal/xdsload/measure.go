package xdsload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/pkg/record"
)

// ErrIncomplete reports that sidecars did not get everything that they subscribed to.
var ErrIncomplete = errors.New("sidecars were never complete")

// finish computes the figures when all sidecars have ended.
func (r *run) finish(ctx context.Context) (record.XDSRun, error) {
	f := r.fleet
	r.record.Finished = time.Now().UTC()
	r.record.Sidecars = record.XDSSidecars{
		Requested: r.spec.Clients,
		Connected: int(f.connected.Load()), Answered: int(f.answered.Load()), Complete: int(f.complete.Load()),
	}
	r.record.XDS = worker.XDSCounts(f.store.Counters().Now())
	r.record.XDS.ConfigurationBytes = f.configurationBytes()
	for _, l := range []struct {
		histogram *stats.Histogram
		summary   **record.Latency
		each      bool // sidecar has one
	}{
		{f.connect, &r.record.Latencies.Connect, false},
		{f.connectTotal, &r.record.Latencies.ConnectTotal, true},
		{f.firstConfiguration, &r.record.Latencies.FirstConfiguration, true},
		{f.completeConfiguration, &r.record.Latencies.CompleteConfiguration, true},
	} {
		if l.each {
			l.histogram.Lose(int64(r.spec.Clients) - l.histogram.Summary().Count)
		}
		if summary := l.histogram.Summary(); summary.Count+summary.Lost > 0 {
			*l.summary = new(record.Latency(summary))
		}
	}
	if err := errors.Join(r.measureWindows(), r.measureInstrument()); err != nil {
		return r.record, err
	}
	r.addWarnings()
	r.record.Status = record.StatusCompleted
	switch missing := r.spec.Clients - r.record.Sidecars.Complete; {
	case ctx.Err() != nil && r.spec.Duration > 0:
		r.record.Status = record.StatusInterrupted
		return r.record, context.Cause(ctx)
	case missing > 0:
		r.record.Status = record.StatusUnconverged
		return r.record, fmt.Errorf("%d of %d %w", missing, r.spec.Clients, ErrIncomplete)
	}
	return r.record, nil
}

// measureWindows computes the usage of scaler itself between the edges: before all
// sidecars were complete, and after.
func (r *run) measureWindows() error {
	for i, name := range []string{"arrival", "hold"} {
		if i+1 >= len(r.edges) {
			return nil
		}
		from, to := r.edges[i], r.edges[i+1]
		usage, err := r.sampler.Figures(measure.InstrumentName, from.at, to.at)
		if err != nil {
			return err
		}
		w := record.XDSWindow{
			Name: name, Seconds: to.at.Sub(from.at).Seconds(), Usage: measure.UsageOf(usage),
			Responses: to.responses - from.responses, Bytes: to.bytes - from.bytes,
		}
		if w.Responses > 0 {
			w.CPUSecondsPerResponse = new(usage.CPUSeconds / float64(w.Responses))
		}
		r.record.Windows = append(r.record.Windows, w)
	}
	return nil
}

// measureInstrument records the usage of scaler itself over the whole run.
func (r *run) measureInstrument() error {
	begin, end := r.edges[0].at, r.edges[len(r.edges)-1].at
	usage, err := r.sampler.Figures(measure.InstrumentName, begin, end)
	if err != nil {
		return err
	}
	i := &record.Instrument{Cores: &usage.CoresMean, MemoryBytes: &usage.MemoryPeak, OpenFiles: &usage.OpenFilesPeak}
	if summary := r.lag.Summary(); summary.Count > 0 {
		i.Lag = new(record.Latency(summary))
	}
	if n := r.record.Sidecars.Connected; n > 0 {
		i.BytesPerSidecar = new((usage.MemoryEnd - r.idle) / float64(n))
	}
	r.record.Instrument = i
	return nil
}

// addWarnings adds warnings about the figures to the record.
func (r *run) addWarnings() {
	warn := func(w record.Warning) { r.record.Warnings = append(r.record.Warnings, record.NewWarning(w)) }
	if missing := r.spec.Clients - r.record.Sidecars.Complete; missing > 0 {
		warn(record.Warning{About: "sidecars.complete", Reason: record.ReasonNeverComplete, Values: map[string]float64{
			"missing": float64(missing), "all": float64(r.spec.Clients),
		}})
	}
	if lag := r.record.Instrument.Lag; lag != nil && lag.P99 != nil && *lag.P99 > worker.LateInstrument.Seconds() {
		warn(record.Warning{About: "latencies", Reason: record.ReasonLateInstrument, Values: map[string]float64{"p99Seconds": *lag.P99}})
	}
	c := r.fleet.store.Counters().Now()
	if late := worker.LateReceipt(c, 1); late != nil {
		warn(*late)
	}
	if n := c.Refusals; n > 0 {
		warn(record.Warning{About: "latencies.completeConfiguration", Reason: record.ReasonRefused, Values: map[string]float64{
			"refused": float64(n), "attempts": float64(c.Attempts),
		}})
	}
	if n := c.Failures; n > 0 {
		warn(record.Warning{About: "xds.attempts", Reason: record.ReasonFailedAttempts, Values: map[string]float64{
			"failed": float64(n), "attempts": float64(c.Attempts),
		}})
	}
	if n := c.Nacks; n > 0 {
		warn(record.Warning{About: "xds.nacks", Reason: record.ReasonRejected, Values: map[string]float64{"responses": float64(n)}})
	}
}

// configurationBytes returns the mean and the largest size of what the complete sidecars
// held at the end; nil if none was ever complete.
func (f *fleet) configurationBytes() *record.ConfigurationBytes {
	var sum, most float64
	n := 0
	for i := range f.sidecars {
		if s := &f.sidecars[i]; s.complete {
			held := 0.0
			for _, h := range s.sidecar.Holdings() {
				held += float64(h.Bytes)
			}
			sum, most, n = sum+held, max(most, held), n+1
		}
	}
	if n == 0 {
		return nil
	}
	return &record.ConfigurationBytes{
		Mean: new(sum / float64(n)), Max: &most,
		Note: "bytes of the resources a sidecar holds at the end",
	}
}
