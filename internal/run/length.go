package run

import (
	"cmp"
	"time"

	"scaler.mesh/scaler/pkg/scenario"
)

// How long parts of a run take that no field states. A run of 200 pods with K = 3 took 255 s, of which 234 in its phases
// (docs/results/first-run.md), and one of 1600 pods with K = 5 took 347 s, of which 316
// (docs/results/ladder.md): the others are the start of the cluster and the control plane, the computing
// of figures, taking everything down, and two measurements of the processor's speed. A probe of each of five kinds took 1.5 s of the modelled time
// with 200 pods.
const (
	around         = 22 * time.Second
	aroundPerPod   = 7 * time.Millisecond
	perProbe       = 1100 * time.Millisecond
	perProbePerPod = 2 * time.Millisecond
	lastPush       = time.Second // of a rollout, after its last pod
)

// readyPerSecond is the rate at which pods that come at once become ready where nothing is known of the control plane.
const readyPerSecond = 50

// Expected returns about how long a run takes on this machine, from its start to its end, with the factor that it
// has. The measurement of scaler's own floor where that is not known yet is not part of it.
func (s Spec) Expected() time.Duration {
	pods := s.topology().Defaults().Pods
	rest := time.Duration(s.Load.Probes)*(perProbe+time.Duration(pods)*perProbePerPod) + time.Duration(s.Phases.Cycle)
	if u := s.upgrade(); u != nil {
		rest += 2*u.Pause + perSecond(pods, cmp.Or(u.Rate, s.readyPerSecond()))
	}
	rest += s.faultsLength()
	if s.Load.CertificateStorm {
		rest += perSecond(pods, s.readyPerSecond())
	}
	return around + time.Duration(pods)*aroundPerPod + s.fixedLength() + s.slowed(s.rolloutLength()+rest)
}

// rolloutLength returns about how long a rollout takes, of the modelled time.
func (s Spec) rolloutLength() time.Duration {
	pods, rate := s.topology().Defaults().Pods, s.readyPerSecond()
	if asked, _ := s.Load.Arrival.PerSecond(); asked > 0 {
		rate = min(rate, asked)
	}
	return perSecond(pods, rate) + s.startDelay().Longest(pods) + lastPush
}

// faultsLength returns about how much longer a run takes by its faults, of the modelled time: as long as what is broken is
// away, and then as pods need that come at once, for those that come back.
func (s Spec) faultsLength() (sum time.Duration) {
	pods := s.topology().Defaults().Pods
	for _, f := range s.Load.Faults {
		sum += f.Time
		if f.Phase == scenario.PhaseRollout {
			continue // its end is that of the rollout
		}
		share := cmp.Or(f.Share, 1)
		sum += perSecond(int(share*float64(pods)), s.readyPerSecond()) + lastPush
		if f.Kind == scenario.RollingRestart {
			sum += s.startDelay().Longest(pods)
		}
	}
	return sum
}

// readyPerSecond returns the rate at which pods that come at once become ready.
func (s Spec) readyPerSecond() float64 {
	driver, err := s.Driver()
	if err != nil || driver.Dilation == nil || driver.Dilation.Cost == nil {
		return readyPerSecond
	}
	return driver.Dilation.Cost.ReadyPerSecond * float64(max(1, s.ControlPlane.Replicas))
}

// perSecond returns the time that n take at a rate.
func perSecond(n int, rate float64) time.Duration {
	return time.Duration(float64(n) / rate * float64(time.Second))
}

// fixedLength returns how long the phases of a run whose length is given take on this machine:
// baseline, settle, steady, and changes or churn. Probes and the cycle are not part of it.
func (s Spec) fixedLength() time.Duration {
	sum := time.Duration(s.Phases.Settle)
	if s.Load.Changes.PerSecond > 0 {
		sum += time.Duration(s.Phases.Changes)
	} else if s.Load.Churn > 0 {
		sum += time.Duration(s.Phases.Steady)
	}
	return s.atRest() + s.slowed(sum)
}

// atRest returns how long baseline and steady take on this machine.
func (s Spec) atRest() time.Duration {
	if s.realTime() == nil {
		return s.slowed(time.Duration(s.Phases.Baseline) + time.Duration(s.Phases.Steady))
	}
	return time.Duration(s.Phases.Baseline) + time.Duration(s.Phases.Steady)
}
