package run

import (
	"errors"
	"time"

	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/measure"
	"scaler.mesh/scaler/internal/run/phases"
	"scaler.mesh/scaler/pkg/record"
)

// measureReal puts into the record what the real sidecars needed and how they started. The
// sidecars have been stopped.
func (m measurement) measureReal() error {
	count := m.spec.Mesh.Sidecars.Real
	if count == 0 {
		return nil
	}
	options := m.fleet.Real
	sidecars, starts := m.fleet.RealSidecars()
	real := &record.RealSidecars{
		Count: count, Envoy: m.programs.envoy.Version, Source: m.programs.envoy.Source, Starts: &record.Latencies{},
	}
	if m.document.Phase(record.PhaseRollout) != nil {
		fleet.LoseIn(count, starts.FirstConfiguration, starts.CompleteConfiguration)
		if !options.Certified { // else it was there before the proxy was started, as a token
			fleet.LoseIn(count, starts.Certificate)
		}
		if m.hasAgents() {
			fleet.LoseIn(count, starts.Token)
		}
	}
	if err := starts.Save(m.journal, "real.", real.Starts); err != nil {
		return err
	}
	if options.InPods != nil {
		m.containers.Measure(sidecars, m.windows, real, m.journal.Warn)
		sidecars = nil
	}
	for _, s := range sidecars {
		real.Each = append(real.Each, m.measureRealSidecar(s, real))
	}
	if expired := options.Place.Expiry.Warning("sidecars.real", time.Now()); expired != nil {
		m.journal.Warn(*expired)
	}
	m.document.Sidecars = &record.Sidecars{Real: real}
	return nil
}

// measureRealSidecar returns the usage of a real sidecar in each phase, and adds it to the
// sum of all.
func (m measurement) measureRealSidecar(s fleet.RealSidecar, all *record.RealSidecars) record.RealSidecar {
	each := record.RealSidecar{Pod: s.Pod, Service: s.Service, Crashes: s.Crashes}
	for _, w := range m.windows {
		if each.Proxy.At(w.Name) == nil {
			continue
		}
		proxy, ok := m.usedBy(s.Envoy, w)
		if !ok {
			continue
		}
		*each.Proxy.At(w.Name) = measure.UsageOf(proxy)
		addUsage(all.At(w.Name), proxy, w)
		if agent, ok := m.usedBy(s.Agent, w); ok {
			if each.Agent == nil {
				each.Agent = &record.ByPhase[*record.Usage]{}
			}
			*each.Agent.At(w.Name) = measure.UsageOf(agent)
			addUsage(all.At(w.Name), agent, w)
		}
	}
	return each
}

// usedBy returns the usage of a component in a window; false if it did not run in
// it.
func (m measurement) usedBy(name string, w phases.Window) (measure.Usage, bool) {
	u, err := m.sampler.Figures(name, w.Begin, w.End)
	if err != nil && !errors.Is(err, measure.ErrNotWatched) {
		m.journal.Warn(record.Warning{About: "sidecars.real", Reason: record.ReasonUsageUnknown, Phase: w.Name, Component: name, Detail: err.Error()})
	}
	return u, err == nil && u.MemoryPeak > 0
}

// addUsage adds what one program needed in a window to what all did. A sum of means
// over all of the window is the mean of the sum; of peaks, which need not come
// together, it is a bound.
func addUsage(to **record.Usage, u measure.Usage, w phases.Window) {
	if *to == nil {
		*to = &record.Usage{
			Cores: &record.Level{Mean: new(float64), Peak: new(float64)}, CPUSeconds: new(float64),
			MemoryBytes: &record.Level{Mean: new(float64), Peak: new(float64), End: new(float64)}, Restarts: new(int),
		}
	}
	t := *to
	*t.Cores.Mean += u.CoresMean
	*t.Cores.Peak += u.CoresPeak
	*t.CPUSeconds += u.CPUSeconds
	*t.MemoryBytes.Mean += u.MemoryMean * u.Ran / w.End.Sub(w.Begin).Seconds() // it held none before and after
	*t.MemoryBytes.Peak += u.MemoryPeak
	*t.MemoryBytes.End += u.MemoryEnd
	*t.Restarts += u.Restarts
}
