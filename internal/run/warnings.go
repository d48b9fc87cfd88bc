package run

import (
	"scaler.mesh/scaler/internal/analyse/stats"
	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/fleet"
	"scaler.mesh/scaler/internal/worker"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/xdsprobe"
)

// symptoms holds the observations from which warnings about the figures of a whole run are derived.
type symptoms struct {
	lags      *lags
	counts    xdsprobe.Counts
	xds       *record.XDS
	slowdown  float64 // factor by which time is slowed down, and what is timed is divided; 0 = 1
	limiter   float64 // seconds that a new stream waits for the control plane's limiter however time is slowed down; 0 = none
	starts    *fleet.Latencies
	latencies *record.Latencies // of those
}

// warnings returns the warnings about the figures of a whole run, in a fixed order.
func (s symptoms) warnings() []record.Warning {
	var all []record.Warning
	k := max(1, s.slowdown)
	for _, each := range []struct {
		about string
		lag   *stats.Histogram
	}{{"latencies", s.lags.rollout}, {"latencies.push", s.lags.probe}, {"change", s.lags.change}} {
		if late := each.lag.Summary().P99; late != nil && *late/k > worker.LateInstrument.Seconds() {
			all = append(all, record.Warning{About: each.about, Reason: record.ReasonLateInstrument, Values: map[string]float64{"p99Seconds": *late / k}})
		}
	}
	if late := worker.LateReceipt(s.counts, k); late != nil {
		all = append(all, *late)
	}
	if n := *s.xds.Refusals; n > 0 && s.starts.Starts.Sidecars { // proxies of nodes start before anything is measured
		all = append(all, record.Warning{About: "latencies.completeConfiguration", Reason: record.ReasonRefused, Values: map[string]float64{
			"refused": float64(n), "attempts": float64(*s.xds.Attempts),
		}})
		if k > 1 && s.limiter > 0 {
			all = append(all, record.Warning{About: "xds.refusals", Reason: record.ReasonEarlyRefusals, Phase: record.PhaseRollout, Values: map[string]float64{
				"refused": float64(n), "attempts": float64(*s.xds.Attempts), "factor": k, "stockSeconds": s.limiter, "waitSeconds": s.limiter / k,
			}})
		}
	}
	s.starts.Each(s.latencies, func(name string, latency *record.Latency) {
		if latency != nil && latency.Lost > 0 {
			all = append(all, record.Warning{About: "latencies." + name, Reason: record.ReasonLost, Values: map[string]float64{
				"lost": float64(latency.Lost), "all": float64(latency.Count + latency.Lost),
			}})
		}
	})
	return all
}

// unknowns returns warnings about what is not known with a control plane that is external, or
// whose sidecars request no certificate, or do not speak xDS.
func (s Spec) unknowns(d controlplane.Driver) []record.Warning {
	var warnings []record.Warning
	absent := func(about, why string) {
		warnings = append(warnings, record.Warning{About: about, Reason: record.ReasonNotSupported, Component: d.Name, Detail: why})
	}
	if d.Proxy.Certificates == nil {
		absent("certificates", "its sidecars ask for no certificate")
	}
	if d.Proxy.XDS == nil {
		absent("scenario.mesh.sidecars.xds", "its proxies do not speak xDS")
		absent("xds.acks", "its proxies acknowledge and reject nothing; the other figures of xds count the messages of the streams that they open instead")
	}
	if d.External == nil {
		return warnings
	}
	absent("controlPlane", "scaler did not start it, and samples nothing of it")
	absent("own", "its own metrics are not known")
	absent("latencies.push", "there is no probe phase, because it is not known what the server makes of a change; latencies.rolloutPush has the changes of endpoints while rolling out where controlPlane.connection.expect states endpoints")
	if s.ControlPlane.Connection.Expect == "" {
		warnings = append(warnings, record.Warning{About: "latencies.completeConfiguration", Reason: record.ReasonNotStated, Component: d.Name})
	}
	return warnings
}
