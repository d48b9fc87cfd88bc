// Package changes makes changes to a mesh at a rate, in an open loop, and follows each
// to every sidecar that it concerns: the change phase of a run. Package probes makes
// them one at a time.
package changes

import (
	"time"

	"scaler.mesh/scaler/pkg/scenario"
)

// maxChanges bounds the changes of a phase.
const maxChanges = 100_000

// Check checks the length of a phase in which there are changes. There is one change at least.
func Check(c scenario.Changes, length time.Duration) error {
	if n := float64(c.PerSecond) * length.Seconds(); n > maxChanges {
		return scenario.Refuse("phases.changes", length, "%d changes at most, %s with load.changes %s", maxChanges,
			time.Duration(maxChanges/float64(c.PerSecond)*float64(time.Second)).Truncate(time.Second), c)
	}
	return nil
}
