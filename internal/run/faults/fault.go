// Package faults breaks things on purpose during a run, and records what that costs:
// the control plane is restarted or killed, streams are cut, the API server is gone
// for a while. How each of them is done is left to the run, as Actions.
package faults

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"scaler.mesh/scaler/pkg/record"
)

// Kind is something that can be broken on purpose.
type Kind string

// The kinds of fault; docs/reference/definitions.md describes each.
const (
	KillControlPlane    Kind = "kill-control-plane"
	RestartControlPlane Kind = "restart-control-plane"
	ResetStreams        Kind = "reset-streams"
	APIServerGone       Kind = "api-server-gone"
	PauseScaler         Kind = "pause-scaler"
	RollingRestart      Kind = "rolling-restart"
	KillReplica         Kind = "kill-replica"
	AddReplica          Kind = "add-replica"
	RestartReplicas     Kind = "restart-replicas"
)

// Bounds of how long a fault may last.
const (
	minFaultTime = 100 * time.Millisecond
	maxFaultTime = 10 * time.Minute
)

// Fault is one thing to be broken, and when.
type Fault struct {
	Kind  Kind
	Share float64          // of the sidecars, 0 to 1: ResetStreams
	Time  time.Duration    // that it lasts: APIServerGone, PauseScaler
	Phase record.PhaseName // PhaseRollout, PhaseSteady or PhaseProbe
	// Program is the one that ends, by its name: KillControlPlane, RestartControlPlane. "" = the one
	// that serves the sidecars.
	Program string
}

// Parse parses the value of --fault, NAME@PHASE, as in
// "kill-control-plane@steady" or "reset-streams:20%@rollout". Its error names the
// flag, the value and what is wanted.
func Parse(s string) (Fault, error) {
	wrong := func(want string) (Fault, error) {
		return Fault{}, fmt.Errorf("parsing --fault %q: want %s", s, want)
	}
	name, phase, _ := strings.Cut(s, "@")
	kind, value, given := strings.Cut(name, ":")
	f := Fault{Kind: Kind(kind), Phase: record.PhaseName(phase)}
	switch f.Kind {
	case KillControlPlane, RestartControlPlane:
		if given && value == "" {
			return wrong("the name of a program of the control plane after " + kind + ":, or " + kind + " without a value")
		}
		f.Program = value
	case RollingRestart, KillReplica, AddReplica, RestartReplicas:
		if given {
			return wrong(kind + " without a value")
		}
	case ResetStreams:
		number, percent := strings.CutSuffix(value, "%")
		share, err := strconv.ParseFloat(number, 64)
		if !percent || err != nil || !(share > 0 && share <= 100) {
			return wrong("a share of the sidecars above 0% and up to 100%, as in reset-streams:20%@steady")
		}
		f.Share = share / 100
	case APIServerGone, PauseScaler:
		var err error
		if f.Time, err = time.ParseDuration(value); err != nil || f.Time < minFaultTime || f.Time > maxFaultTime {
			return wrong("a duration from 100ms to 10m, as in " + kind + ":10s@steady")
		}
	default:
		return wrong("NAME@PHASE, NAME being one of restart-control-plane, kill-control-plane, reset-streams:SHARE%, api-server-gone:TIME, pause-scaler:TIME, rolling-restart, kill-replica, add-replica, restart-replicas")
	}
	switch f.Phase {
	case record.PhaseRollout, record.PhaseSteady:
	case record.PhaseProbe:
		// The changes of a probe need the API server and scaler itself.
		switch f.Kind {
		case KillControlPlane, RestartControlPlane, ResetStreams, KillReplica, AddReplica, RestartReplicas:
		default:
			return wrong(kind + "@rollout or @steady; in probe only the control plane and streams can be broken")
		}
	default:
		return wrong("NAME@rollout, NAME@steady or NAME@probe")
	}
	return f, nil
}

// Name is the fault without its phase, as Parse reads it.
func (f Fault) Name() string {
	switch f.Kind {
	case ResetStreams:
		return string(f.Kind) + ":" + strconv.FormatFloat(f.Share*100, 'g', 12, 64) + "%"
	case APIServerGone, PauseScaler:
		return string(f.Kind) + ":" + f.Time.String()
	case KillControlPlane, RestartControlPlane:
		if f.Program != "" {
			return string(f.Kind) + ":" + f.Program
		}
		return string(f.Kind)
	default:
		return string(f.Kind)
	}
}

// String is the fault as Parse reads it.
func (f Fault) String() string { return f.Name() + "@" + string(f.Phase) }

// OfReplicas reports whether the fault is one of a control plane that runs as several
// programs.
func (f Fault) OfReplicas() bool {
	return f.Kind == KillReplica || f.Kind == AddReplica || f.Kind == RestartReplicas
}

// CheckReplicas states which of the faults cannot be made of a control plane that is
// started as so many programs: one that leaves none, or that is of several where there is
// one.
func CheckReplicas(all []Fault, replicas int) error {
	for _, phase := range []record.PhaseName{record.PhaseRollout, record.PhaseProbe, record.PhaseSteady} { // as they follow each other
		for _, f := range In(all, phase) {
			switch {
			case f.Kind == AddReplica:
				replicas++
			case f.Kind == KillReplica && replicas < 2:
				return fmt.Errorf("parsing --fault %q: want --replicas larger, so that one is left when it is made", f)
			case f.Kind == KillReplica:
				replicas--
			case f.Kind == RestartReplicas && replicas < 2:
				return fmt.Errorf("parsing --fault %q: want --replicas 2 or more, or restart-control-plane", f)
			}
		}
	}
	return nil
}

// CheckPrograms returns an error for a fault that ends a program which the control plane does not have.
// programs are those of the control plane without the one that serves the sidecars.
func CheckPrograms(all []Fault, controlPlane string, programs []string) error {
	for _, f := range all {
		switch {
		case f.Program == "" || slices.Contains(programs, f.Program):
		case len(programs) == 0:
			return fmt.Errorf("parsing --fault %q: want %s without a value with --control-plane %s, which is one program", f, f.Kind, controlPlane)
		default:
			return fmt.Errorf("parsing --fault %q: want %s:%s with --control-plane %s, or %s without a value", f, f.Kind, strings.Join(programs, " or "), controlPlane, f.Kind)
		}
	}
	return nil
}

// In returns the faults of a phase, in their order.
func In(faults []Fault, phase record.PhaseName) []Fault {
	var in []Fault
	for _, f := range faults {
		if f.Phase == phase {
			in = append(in, f)
		}
	}
	return in
}

// due is how many of the pods' sidecars must be complete for the i-th of n
// faults in rollout, from 0: they are spread over it.
func due(i, n, pods int) int { return max(1, pods*(i+1)/(n+1)) }
