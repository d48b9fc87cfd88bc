package main

import (
	"os"
	"runtime/debug"
)

// gcPercent is how much garbage may come beside what is live, in percent. Half of
// Go's default: the heap of a fleet is small and lives long, and little garbage
// comes, so that collecting twice as often costs about 1 % of scaler's processor
// time and saves a third of its memory (docs/xds.md).
const gcPercent = 50

// collectOften sets gcPercent, unless the environment says otherwise.
func collectOften() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}
