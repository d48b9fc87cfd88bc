package controlplane

import (
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/component"
)

// Times that dilation does not scale in the Go programs of any control plane, in words.
const (
	UnscaledCollection = "garbage collection after two minutes without one, and the background scavenger of Go"
	UnscaledThread     = "a thread's processor time: it is K times as fast as one of the modelled machine, so the part of a latency that is one thread's work is recorded as 1/K of it"
	// UnscaledClient describes the waits that are constants of the programs' client library.
	UnscaledClient = "waits of the client library: the length of a watch, 5 to 10 minutes, and tries after one that failed"
)

// Slow returns an environment (NAME=VALUE) in which programs need k times as long for these times, and what
// those are, in words.
func Slow(env []string, times []component.Time, k float64) (slowed, scaled []string) {
	slowed = slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return of(times, kv) })
	for _, t := range times {
		slowed = append(slowed, t.Slowed(env, k))
		scaled = append(scaled, t.What+" ("+t.Variable+")")
	}
	return slowed, scaled
}

// TimesIn returns the settings of an environment (NAME=VALUE) that set these times.
func TimesIn(env []string, times []component.Time) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool { return !of(times, kv) })
}

// of reports whether a setting is one of these times.
func of(times []component.Time, kv string) bool {
	name, _, _ := strings.Cut(kv, "=")
	return slices.ContainsFunc(times, func(t component.Time) bool { return t.Variable == name })
}
