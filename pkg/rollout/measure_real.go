package rollout

import (
	"errors"
	"time"

	"scaler.mesh/scaler/pkg/experiment"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/recorder"
)

// measureReal puts into the record what the real sidecars needed and how they
// started. The sidecars have been stopped.
func (r *rolloutRun) measureReal() error {
	if r.spec.RealSidecars == 0 {
		return nil
	}
	real := &record.RealSidecars{Count: r.spec.RealSidecars, Envoy: r.envoy.Version, Source: r.envoy.Source, Starts: &record.Latencies{}}
	if r.record.Phase(record.PhaseRollout) != nil {
		starts := r.fleet.real.latencies
		loseIn(r.spec.RealSidecars, starts.firstConfiguration, starts.completeConfiguration)
		if !r.fleet.real.certified { // else both were there before it was started
			loseIn(r.spec.RealSidecars, starts.token, starts.certificate)
		}
	}
	if err := r.fleet.real.latencies.save(r.writer, "real.", real.Starts); err != nil {
		return err
	}
	for _, p := range r.fleet.realPods() {
		each := record.RealSidecar{Pod: p.id, Service: p.service}
		if p.sidecar != nil {
			each.Crashes = len(p.sidecar.Crashes())
		}
		for _, w := range r.windows {
			if each.Proxy.At(w.name) == nil {
				continue
			}
			proxy, ok := r.usedBy(p.envoyName(), w)
			if !ok {
				continue
			}
			*each.Proxy.At(w.name) = experiment.UsageOf(proxy)
			addUsage(real.At(w.name), proxy, w)
			if agent, ok := r.usedBy(p.agentName(), w); ok {
				if each.Agent == nil {
					each.Agent = &record.ByPhase[*record.Usage]{}
				}
				*each.Agent.At(w.name) = experiment.UsageOf(agent)
				addUsage(real.At(w.name), agent, w)
			}
		}
		real.Each = append(real.Each, each)
	}
	if expired := r.fleet.real.place.Expiry.Doubt("sidecars.real", time.Now()); expired != nil {
		r.warn(*expired)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.record.Sidecars = &record.Sidecars{Real: real}
	return nil
}

// usedBy is what a component used in a window; false for one that did not run in
// it.
func (r *rolloutRun) usedBy(name string, w window) (recorder.Usage, bool) {
	u, err := r.sampler.Figures(name, w.begin, w.end)
	if err != nil && !errors.Is(err, recorder.ErrNotWatched) {
		r.warn(record.Warning{About: "sidecars.real", Reason: record.ReasonUsageUnknown, Phase: w.name, Component: name, Detail: err.Error()})
	}
	return u, err == nil && u.MemoryPeak > 0
}

// addUsage adds what one program needed in a window to what all did. A sum of means
// over all of the window is the mean of the sum; of peaks, which need not come
// together, it is a bound.
func addUsage(to **record.Usage, u recorder.Usage, w window) {
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
	*t.MemoryBytes.Mean += u.MemoryMean * u.Ran / w.end.Sub(w.begin).Seconds() // it held none before and after
	*t.MemoryBytes.Peak += u.MemoryPeak
	*t.MemoryBytes.End += u.MemoryEnd
	*t.Restarts += u.Restarts
}
