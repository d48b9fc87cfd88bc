package rollout

import (
	"path/filepath"
	"time"

	"scaler.mesh/scaler/pkg/record"
)

// AroundPhases is what a run usually takes in addition to its phases of fixed length: the
// start of cluster and control plane, the rollout, and taking everything down.
const AroundPhases = 40 * time.Second

// FixedLength is how long the phases of a run whose length is given take on this machine:
// baseline, settle, steady, and changes or churn. Probes and the cycle are not part of it.
func FixedLength(s Spec) time.Duration {
	sum := s.Settle
	if s.Change.PerSecond > 0 {
		sum += s.ChangeDuration
	} else if s.Churn > 0 {
		sum += s.Steady
	}
	return atRest(s) + s.slowed(sum)
}

// atRest is how long baseline and steady take on this machine.
func atRest(s Spec) time.Duration {
	if realTime(s) == nil {
		return s.slowed(s.Baseline + s.Steady)
	}
	return s.Baseline + s.Steady
}

// RecordBelow is the folder of a run's record relative to out, with slashes; "" for a run
// without a record.
func RecordBelow(out string, run *record.Run) string {
	if run.Dir == "" {
		return ""
	}
	below, err := filepath.Rel(out, run.Dir)
	if err != nil {
		return ""
	}
	return filepath.ToSlash(below)
}
