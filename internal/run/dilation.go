package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"scaler.mesh/scaler/internal/controlplane"
	"scaler.mesh/scaler/internal/dilation"
	"scaler.mesh/scaler/internal/workload"
	"scaler.mesh/scaler/pkg/proxy"
	"scaler.mesh/scaler/pkg/record"
)

// dilation is the factor by which time is slowed down, 1 where it is not.
func (s Spec) dilation() float64 { return max(1, s.Dilation) }

// slowed is a length of time, of the machine that is stood for, on this one.
func (s Spec) slowed(d time.Duration) time.Duration {
	return proxy.Slowdown(s.dilation()).Of(d)
}

// checkDilation checks the factor, and what cannot be slowed down.
func (s Spec) checkDilation() error {
	if s.Dilation == 0 || s.Dilation == 1 {
		return nil
	}
	value := fmt.Sprint(s.Dilation)
	if s.Dilation == dilation.Auto {
		value = "auto"
	} else if !(s.Dilation > 1 && s.Dilation <= dilation.Max) { // not a number is neither
		return dilation.FactorError(value)
	}
	driver, err := s.Driver()
	if err != nil {
		return err
	}
	if driver.Dilate == nil {
		return fmt.Errorf("parsing --dilate %s: want none with --control-plane %s, of which it is not known what is a matter of time", value, s.ControlPlane)
	}
	if s.Workers > 1 {
		return fmt.Errorf("parsing --dilate %s: want none with --workers %d: the figures of each worker are not scaled yet", value, s.Workers)
	}
	if s.RealSidecars > 0 {
		return fmt.Errorf("parsing --dilate %s: want none with --real-sidecars, whose time cannot be slowed down", value)
	}
	return nil
}

// onBench is the spec with all that is a matter of time as it is on this machine.
func (s Spec) onBench() (Spec, error) {
	if s.dilation() == 1 {
		return s, nil
	}
	burst, err := s.burst()
	if err != nil {
		return s, err
	}
	if s.Arrival > 0 {
		s.Arrival /= workload.Arrival(s.dilation())
	} else {
		burst.Interval = s.slowed(burst.Interval)
		s.Burst = burst.String()
	}
	if s.realTime() == nil {
		s.Baseline, s.Steady = s.slowed(s.Baseline), s.slowed(s.Steady)
	}
	for _, d := range []*time.Duration{
		&s.Settle, &s.ConvergeTimeout, &s.CertificateLifetime, &s.ChangeDuration, &s.Cycle,
		&s.StartDelay.Min, &s.StartDelay.Max, &s.StartDelay.Mean,
	} {
		*d = s.slowed(*d)
	}
	s.Churn /= workload.Churn(s.dilation())
	s.Change.PerSecond /= s.dilation()
	return s, nil
}

// realTime are the phases that are not slowed down. In these the control plane is at rest, and its own timers, which cannot be
// slowed down, decide what it uses. In a phase that is slowed down that is recorded as K times as much.
func (s Spec) realTime() []record.PhaseName {
	driver, err := s.Driver()
	if err != nil || s.dilation() == 1 || !driver.RestsInRealTime {
		return nil
	}
	if s.Topology.Resolved().OutsideChurn > 0 || s.CertificateLifetime > 0 || s.Steady >= driver.ConnectionAge && driver.ConnectionAge > 0 {
		return nil // pods come and go, certificates are renewed, or connections reach their age
	}
	return []record.PhaseName{record.PhaseBaseline, record.PhaseSteady}
}

// likeSteady is the length on this machine of a phase that is as long as steady and is slowed down.
func (s Spec) likeSteady() time.Duration {
	if s.realTime() == nil {
		return s.Steady // onBench slowed it down
	}
	return s.slowed(s.Steady)
}

// dilate slows down a control plane that is to be started with these resources, and
// returns what the record says about it; nil where time is not slowed down. Its
// GOMAXPROCS is that of the machine that is stood for: as many goroutines run at the
// same time, each slower, and garbage collection takes the same share.
func (s Spec) dilate(driver controlplane.Driver, r controlplane.Resources) (controlplane.Resources, *record.Dilation) {
	if s.dilation() == 1 {
		if s.Choice == nil {
			return r, nil
		}
		return r, &record.Dilation{Factor: 1, Auto: s.Choice}
	}
	stood := int(float64(r.Processors()) * s.dilation())
	d := driver.Dilate(r.Env, stood, s.dilation())
	r.Env, r.Args, r.MaxProcs = d.Env, d.Args, stood
	return r, &record.Dilation{
		Factor: s.Dilation,
		Scaled: slices.Concat([]string{
			"GOMAXPROCS of the control plane, and what it derives from that: as on the machine that is stood for",
			"arrival of pods, start delays, changes, churn, and the length of faults",
			"length of phases other than realTime, time limits and lifetimes of certificates that were asked for",
			"sidecars: waits before a stream or a certificate is tried again, keepalive, drain, time limits of resources",
			"KWOK: heartbeats of nodes, its only delay",
			"scrapes and readings of all programs",
		}, d.Scaled),
		Unscaled: d.Unscaled,
		RealTime: s.realTime(),
		Auto:     s.Choice,
	}
}

// describeDilation puts into the record of a control plane how it would be set on the
// machine that is stood for, and how it is on this one.
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
	for _, kv := range r.spec.ControlPlaneEnv {
		name, value, _ := strings.Cut(kv, "=")
		stood[name] = value
	}
	for i := 0; i+1 < len(r.resources.Args); i += 2 {
		ran[strings.TrimLeft(r.resources.Args[i], "-")] = r.resources.Args[i+1]
	}
	source.Settings, r.dilation.Settings = stood, ran
	if r.driver.Limits != nil && source.Limits != nil {
		source.Limits = r.driver.Limits(r.spec.ControlPlaneEnv)
	}
}

// undilated is the document as it is saved. Its error is joined with that of the run.
func undilated(document record.Run, err error) (record.Run, error) {
	scaled, scaleErr := document.Undilated()
	if scaleErr != nil {
		return document, errors.Join(err, scaleErr)
	}
	return *scaled, err
}
