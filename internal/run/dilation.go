package run

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
	"scaler.mesh/scaler/pkg/scenario"
)

// dilation returns the factor by which time is slowed down, 1 where it is not.
func (s Spec) dilation() float64 { return max(1, s.Instrument.Dilation.Factor) }

// slowed converts a length of time of the modelled machine to one of this machine.
func (s Spec) slowed(d time.Duration) time.Duration {
	return proxy.Slowdown(s.dilation()).Of(d)
}

// inRealTime states why time cannot be slowed down.
type inRealTime struct{ what, why string }

// inRealTime returns why time cannot be slowed down in a run; nil if it can.
func (s Spec) inRealTime(driver controlplane.Driver) *inRealTime {
	switch {
	case s.Existing != nil:
		return &inRealTime{"place.context", ", whose time cannot be slowed down"}
	case driver.Dilation == nil:
		return &inRealTime{"controlPlane.name " + s.ControlPlane.Name, ", of which it is not known what is a matter of time"}
	case s.Instrument.Workers > 1:
		return &inRealTime{fmt.Sprintf("instrument.workers %d", s.Instrument.Workers), ": the figures of each worker are not scaled yet"}
	case s.Mesh.Sidecars.Real > 0:
		return &inRealTime{"mesh.sidecars.real", ", whose time cannot be slowed down"}
	}
	return nil
}

// checkDilation checks what cannot be slowed down.
func (s Spec) checkDilation(driver controlplane.Driver) error {
	k := s.Instrument.Dilation
	if !k.Auto && k.Factor != 0 && !(k.Factor >= 1 && k.Factor <= scenario.MaxDilation) { // 0 = not stated
		return scenario.Refuse("instrument.dilation", k, "from 1 to %d, or auto", scenario.MaxDilation)
	}
	if why := s.inRealTime(driver); why != nil && (k.Auto || k.Factor > 1) {
		return scenario.Refuse("instrument.dilation", k, "none with %s%s", why.what, why.why)
	}
	return nil
}

// onMachine returns the specification with all that is a matter of time as it is on this machine.
func (s Spec) onMachine() Spec {
	k := s.dilation()
	if k == 1 {
		return s
	}
	s.Load.Arrival, s.Mesh.Sidecars.StartDelay = s.Load.Arrival.Slowed(k), new(s.startDelay().Slowed(k))
	slow := func(d *scenario.Duration) { *d = scenario.Duration(s.slowed(time.Duration(*d))) }
	if s.realTime() == nil {
		slow(&s.Phases.Baseline)
		slow(&s.Phases.Settle)
		slow(&s.Phases.Steady)
	}
	for _, d := range []*scenario.Duration{
		&s.Phases.ConvergeTimeout, &s.Phases.Changes, &s.Phases.Cycle, &s.Mesh.Sidecars.CertificateLifetime,
	} {
		slow(d)
	}
	s.Load.Churn /= scenario.Rate(k)
	s.Load.Changes.PerSecond /= scenario.Rate(k)
	return s
}

// realTime returns the phases that are not slowed down. In these the control plane is at rest, and its own timers, which cannot be
// slowed down, decide what it uses. In a phase that is slowed down that is recorded as K times as much.
func (s Spec) realTime() []record.PhaseName {
	driver, err := s.Driver()
	if err != nil || s.dilation() == 1 || driver.Dilation == nil || !driver.Dilation.RestsInRealTime {
		return nil
	}
	if s.Profile().OutsideChurn != nil || time.Duration(s.Mesh.Sidecars.CertificateLifetime) > 0 || time.Duration(s.Phases.Steady) >= driver.Proxy.ConnectionAge && driver.Proxy.ConnectionAge > 0 {
		return nil // pods come and go, certificates are renewed, or connections reach their age
	}
	return []record.PhaseName{record.PhaseBaseline, record.PhaseSteady}
}

// likeRest returns the length on this machine of a phase that is as long as one at rest and is slowed down.
func (s Spec) likeRest(length scenario.Duration) time.Duration {
	if s.realTime() == nil {
		return time.Duration(length) // onMachine slowed it down
	}
	return s.slowed(time.Duration(length))
}

// dilate slows down a control plane that is to be started with these resources, and
// returns what the record says about it; nil where time is not slowed down. Its
// GOMAXPROCS stays that of the modelled machine: as many goroutines run at the
// same time, each slower, and garbage collection takes the same share.
func (s Spec) dilate(driver controlplane.Driver, r controlplane.Resources) (controlplane.Resources, *record.Dilation) {
	if s.dilation() == 1 {
		if s.Choice == nil {
			return r, nil
		}
		return r, &record.Dilation{Auto: s.Choice}
	}
	d := driver.Dilation.Dilate(r.Env, r.Processors(), s.dilation())
	r.Env, r.Args = d.Env, d.Args
	return r, &record.Dilation{
		Scaled: slices.Concat([]string{
			"processor time that each replica of the control plane may use: its processors, divided by K",
			"arrival of pods, start delays, changes, churn, and the length of faults",
			"length of phases other than realTime, time limits and lifetimes of certificates that were asked for",
			"sidecars: waits before a stream or a certificate is tried again, keepalive, drain, time limits of resources",
			"KWOK: heartbeats of nodes, its only delay",
			"scrapes and readings of all programs",
		}, d.Scaled),
		Unscaled: d.Unscaled, LimiterWaitSeconds: d.LimiterWait.Seconds(),
		RealTime: s.realTime(),
		Auto:     s.Choice,
	}
}

// describeDilation puts into the record of a control plane how it would be set on the
// modelled machine, and how it is on this one.
func (r *run) describeDilation(source *record.ControlPlaneSource) {
	if r.spec.dilation() == 1 {
		return
	}
	ran := map[string]string{}
	stood := map[string]string{}
	for name, value := range source.Settings {
		ran[name], stood[name] = value, value
	}
	for _, kv := range r.resources.Env {
		name, _, _ := strings.Cut(kv, "=")
		delete(stood, name)
	}
	for _, kv := range r.spec.ControlPlane.Env {
		name, value, _ := strings.Cut(kv, "=")
		stood[name] = value
	}
	for i := 0; i+1 < len(r.resources.Args); i += 2 {
		ran[strings.TrimLeft(r.resources.Args[i], "-")] = r.resources.Args[i+1]
	}
	source.Settings, r.dilation.Settings = stood, ran
	if r.driver.Figures.Limits != nil && source.Limits != nil {
		source.Limits = r.driver.Figures.Limits(r.spec.ControlPlane.Env)
	}
}
