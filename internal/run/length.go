package run

import "time"

// perProbe is what a change of each kind in the probe phase usually takes.
const perProbe = 4 * time.Second

// Length returns how long the phases of a run take on this machine, as far as their length is known before: without the
// rollout and a certificate storm.
func (s Spec) Length() time.Duration {
	return s.FixedLength() + s.slowed(time.Duration(s.Phases.Cycle)+time.Duration(s.Load.Probes)*perProbe)
}

// FixedLength returns how long the phases of a run whose length is given take on this machine:
// baseline, settle, steady, and changes or churn. Probes and the cycle are not part of it.
func (s Spec) FixedLength() time.Duration {
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
