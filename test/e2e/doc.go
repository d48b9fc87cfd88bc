// Package e2e drives the scaler binary as a user does, on the real programs:
// whole runs and their records, figures computed a second time from a run's time
// series, and what goes wrong meanwhile: interrupts, programs and scaler itself
// killed, disks that are full.
//
// Its tests need the build tag e2e. What needs no programs is tested next to
// cmd/scaler, and each package tests its own part.
package e2e
