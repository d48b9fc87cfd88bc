// Package record is the record of a run: its types, its writer and its reader.
// A record is all that passes from measuring to analysing, so every figure has
// its definition in the catalogue, of which docs/reference/figures.md is made.
//
// Base units everywhere: seconds, bytes, cores. A figure that was not measured
// is absent (a nil pointer, a nil map), never zero. A zero
// was measured as zero.
//
// The package does not compute figures, which is the task of those who measure, and does
// not scale them for reading, which is the task of package report.
package record

import (
	"fmt"
	"time"

	"scaler.mesh/scaler/pkg/scenario"
)

// APIVersion, Kind and ListKind state what a document is. Schema is the minor
// version within APIVersion: it rises when a field is added or a definition
// is put right. A reader takes its own alone.
const (
	APIVersion = "scaler.mesh/v1"
	Kind       = "Run"
	ListKind   = "RunList"
	Schema     = 4
)

// Status states how a run ended.
type Status string

// A run's status is interrupted from its first byte until its end is known:
// a program that was killed leaves a truthful record without having had to
// write one last time.
const (
	StatusCompleted   Status = "completed"   // all phases done, each that waited for it with a mesh that had converged or was quiescent
	StatusUnconverged Status = "unconverged" // the time limit of the rollout, or of a fault, passed first
	StatusInterrupted Status = "interrupted" // by a signal, or killed without a word
	StatusFailed      Status = "failed"      // by environment, program or control plane; Reason says which
)

// RunList is the list of runs that commands print with -o json and -o yaml.
type RunList struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []Run  `json:"items"`
}

// Run is the record of one run: one size, one mode and one control plane, with a
// cluster and control plane started for it. It is the content of run.json.
type Run struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Schema     int        `json:"schema"`
	Name       string     `json:"name"` // unique within its output folder; the run's folder is called so
	Status     Status     `json:"status"`
	Reason     string     `json:"reason,omitempty"`   // why it failed or was interrupted; "" otherwise
	Started    time.Time  `json:"started"`            // cluster start included
	Finished   *time.Time `json:"finished,omitempty"` // teardown included; nil while it runs and when it was killed

	// Scenario is the scenario of this run alone, with all defaults and with what scaler chose, such as the dilation. It
	// can be read back as a scenario. Values of the environment that look like secrets are masked.
	Scenario    scenario.Scenario `json:"scenario,omitzero"`
	Repeat      int               `json:"repeat,omitempty"` // which of several like runs, from 1; 0 = there is one
	Environment Environment       `json:"environment"`
	Phases      []Phase           `json:"phases,omitempty"` // in order of time

	Parts        scenario.Parts   `json:"parts,omitzero"` // of a synthetic mesh at this size, those that its profile has included
	Mesh         *Mesh            `json:"mesh,omitempty"` // nil where the mesh was synthetic
	Arrival      *Arrival         `json:"arrival,omitempty"`
	Pods         *Pods            `json:"pods,omitempty"`
	ControlPlane *ByPhase[*Usage] `json:"controlPlane,omitempty"`
	Replicas     *Replicas        `json:"replicas,omitempty"` // nil where the control plane was one program

	Cluster      map[string]ByPhase[*Usage] `json:"cluster,omitempty"` // by program, as in "kube-apiserver"
	Sidecars     *Sidecars                  `json:"sidecars,omitempty"`
	Proxies      *Proxies                   `json:"proxies,omitempty"` // nil where each pod had its own
	Latencies    Latencies                  `json:"latencies,omitzero"`
	XDS          *XDS                       `json:"xds,omitempty"`
	Certificates *Certificates              `json:"certificates,omitempty"`
	Own          *Own                       `json:"own,omitempty"`
	Change       *Change                    `json:"change,omitempty"`
	Cycle        *Cycle                     `json:"cycle,omitempty"`
	Churn        *Churn                     `json:"churn,omitempty"`
	Faults       []Fault                    `json:"faults,omitempty"` // in order of time
	Upgrade      *Upgrade                   `json:"upgrade,omitempty"`
	Instrument   *Instrument                `json:"instrument,omitempty"`
	Warnings     []Warning                  `json:"warnings,omitempty"`

	// Dir is the folder that the run was read from; "" for one that was not
	// read. latencies/, prometheus/, logs/ and events.jsonl are below it.
	Dir string `json:"-"`
}

// Phase names a window of a run.
type Phase struct {
	Name PhaseName `json:"name"`
	// Start and End are wall-clock times, for comparing the run with other
	// data; the window is [Start, End).
	Start time.Time  `json:"start,omitzero"`
	End   *time.Time `json:"end,omitempty"` // nil while it lasts
	// Seconds is its length on the monotonic clock: not End less Start when
	// the wall clock was set meanwhile.
	Seconds *float64 `json:"seconds,omitempty"`
	EndedBy EndedBy  `json:"endedBy,omitempty"`
	// Differences are the resources by which sidecars differed from what is expected of them when the
	// phase ended by quiescence, sorted by type and name: DifferencesKept at most.
	Differences []HoldingDifference `json:"differences,omitempty"`
	// MoreDifferences is the number of differences that are not listed.
	MoreDifferences int `json:"moreDifferences,omitempty"`
}

// DifferencesKept is the number of differences of a phase that are listed at most; the others are counted.
const DifferencesKept = 50

// HoldingDifference is a resource that sidecars held otherwise than expected, or not at all, although the control
// plane had nothing more to send.
type HoldingDifference struct {
	Type     string `json:"type"`             // of the resource: CDS, EDS, LDS, RDS, ...
	Resource string `json:"resource"`         // its name
	Sidecars int    `json:"sidecars"`         // that held it otherwise, or not at all
	Example  string `json:"example"`          // NAMESPACE/NAME of the pod of one of them
	Detail   string `json:"detail"`           // in what that one differs
	Object   string `json:"object,omitempty"` // what explains it, as in "EnvoyFilter shop/timeout"; absent = nothing is known that does
}

// Text returns the difference in words.
func (d HoldingDifference) Text() string {
	text := fmt.Sprintf("%s %s, which %s in sidecar %s", d.Type, d.Resource, d.Detail, d.Example)
	if d.Sidecars > 1 {
		text += fmt.Sprintf(" and %d more", d.Sidecars-1)
	}
	if d.Object != "" {
		text += "; explained by " + d.Object
	}
	return text
}

// PhaseName is the name of a phase.
type PhaseName string

// The phases of a run, in order.
const (
	PhaseBaseline PhaseName = "baseline" // control plane up, no mesh
	PhaseRollout  PhaseName = "rollout"  // first object created, to converged
	PhaseSettle   PhaseName = "settle"   // fixed length, belongs to no figure
	PhaseSteady   PhaseName = "steady"   // nothing is touched
	PhaseProbe    PhaseName = "probe"    // changes are made and followed
	PhaseChange   PhaseName = "change"   // changes are made at a rate
	PhaseCycle    PhaseName = "cycle"    // every sidecar reconnects once, as at the age of its connection
	PhaseStorm    PhaseName = "storm"    // all sidecars ask for a certificate anew
	PhaseChurn    PhaseName = "churn"    // pods are replaced at a rate
	PhaseFault    PhaseName = "fault"    // something is broken on purpose; one phase for each fault
)

// EndedBy states what ended a phase.
type EndedBy string

// What ends a phase.
const (
	EndedByDuration  EndedBy = "duration"
	EndedByConverged EndedBy = "converged"
	EndedByQuiescent EndedBy = "quiescent" // the control plane had nothing more to send, and sidecars differ from what is expected
	EndedByTimeout   EndedBy = "timeout"   // neither of the two came in time
	EndedByInterrupt EndedBy = "interrupt"
	EndedByFailure   EndedBy = "failure"
)

// Phase returns the run's first phase of that name, nil when it was not reached.
func (r *Run) Phase(name PhaseName) *Phase {
	for i := range r.Phases {
		if r.Phases[i].Name == name {
			return &r.Phases[i]
		}
	}
	return nil
}

// RolloutSeconds returns the rollout time, if convergence ended the rollout: of one that
// the time limit ended only a bound is known, and it is nil.
func (r *Run) RolloutSeconds() *float64 {
	if p := r.Phase(PhaseRollout); p != nil && p.EndedBy == EndedByConverged {
		return p.Seconds
	}
	return nil
}

// ByPhase holds one T for each phase that has figures. A T that was not
// measured is its zero value and absent from JSON.
type ByPhase[T any] struct {
	Baseline T `json:"baseline,omitempty"`
	Rollout  T `json:"rollout,omitempty"`
	Steady   T `json:"steady,omitempty"`
	Probe    T `json:"probe,omitempty"`
	Change   T `json:"change,omitempty"`
	Cycle    T `json:"cycle,omitempty"`
	Storm    T `json:"storm,omitempty"`
	Churn    T `json:"churn,omitempty"`
}

// At returns where the T of a phase is kept, for reading and setting; nil for
// a phase that has no figures (settle) or has them elsewhere (fault).
func (b *ByPhase[T]) At(phase PhaseName) *T {
	switch phase {
	case PhaseBaseline:
		return &b.Baseline
	case PhaseRollout:
		return &b.Rollout
	case PhaseSteady:
		return &b.Steady
	case PhaseProbe:
		return &b.Probe
	case PhaseChange:
		return &b.Change
	case PhaseCycle:
		return &b.Cycle
	case PhaseStorm:
		return &b.Storm
	case PhaseChurn:
		return &b.Churn
	default:
		return nil
	}
}
