package run

import "time"

// AroundPhases is what a run usually takes in addition to its phases of fixed length: the
// start of cluster and control plane, the rollout, and taking everything down.
const AroundPhases = 40 * time.Second

// FixedLength is how long the phases of a run whose length is given take on this machine:
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

// atRest is how long baseline and steady take on this machine.
func (s Spec) atRest() time.Duration {
	if s.realTime() == nil {
		return s.slowed(time.Duration(s.Phases.Baseline) + time.Duration(s.Phases.Steady))
	}
	return time.Duration(s.Phases.Baseline) + time.Duration(s.Phases.Steady)
}
