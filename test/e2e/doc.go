// Package e2e drives the scaler binary as a user does, on the real programs:
// whole runs and their records, figures computed a second time from a run's time
// series, and what must hold however scaler is used and ended: interrupts, programs
// and scaler itself killed, disks that are full. What is not scaler's is left alone,
// nothing is left running, nothing is lost, nothing is exposed.
//
// It also has the specs of packages that start real programs and need no unexported
// names, so that one test binary is built for all of them, and their specs run side by side.
//
// Its tests need the build tag e2e. What needs no programs is tested next to
// cmd/scaler, and each package tests its own part.
package e2e
