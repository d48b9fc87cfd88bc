package record

import "time"

// Fault is one fault that was made on purpose, and its consequences.
type Fault struct {
	Name  string    `json:"name"`  // as asked, as in reset-streams:20%
	Phase PhaseName `json:"phase"` // as asked: rollout, or steady, after which it has a phase of its own
	At    time.Time `json:"at"`    // its begin, wall clock
	// LastedSeconds is the time from its begin until what was broken was available again: the
	// program served, the streams were cut, scaler ran.
	LastedSeconds *float64 `json:"lastedSeconds,omitempty"`
	// Seconds is the time from its begin until the mesh had converged again, with every
	// sidecar connected; absent when it did not within the time limit.
	Seconds     *float64 `json:"seconds,omitempty"`
	Reconnected *int     `json:"reconnected,omitempty"` // sidecars that lost their stream and had all types answered on another
	Replaced    *int     `json:"replaced,omitempty"`    // pods created in place of others
	Attempts    *int64   `json:"attempts,omitempty"`    // dials meanwhile
	Refusals    *int64   `json:"refusals,omitempty"`    // streams refused meanwhile
	// Bytes has the bytes of the responses that simulated sidecars received meanwhile, by type of resource.
	Bytes        map[string]int64 `json:"bytes,omitempty"`
	ControlPlane *Usage           `json:"controlPlane,omitempty"`
	Latencies    Latencies        `json:"latencies,omitzero"` // of sidecars that reconnected and of pods created meanwhile
	// Replicas and Balance are of a control plane that ran as several programs.
	Replicas map[string]*FaultReplica `json:"replicas,omitempty"` // by name
	Balance  *Balance                 `json:"balance,omitempty"`  // when the mesh had converged again
}

// Churn is the phase in which pods are replaced at a rate.
type Churn struct {
	OfferedPerSecond  *float64  `json:"offeredPerSecond,omitempty"`
	AchievedPerSecond *float64  `json:"achievedPerSecond,omitempty"` // deletions done, over the phase's length
	Replaced          *int      `json:"replaced,omitempty"`          // pods created in place of others
	Seconds           *float64  `json:"seconds,omitempty"`           // from the phase's end until the mesh had converged again; absent when it did not within the time limit
	Attempts          *int64    `json:"attempts,omitempty"`          // dials meanwhile
	Refusals          *int64    `json:"refusals,omitempty"`          // streams refused meanwhile
	Latencies         Latencies `json:"latencies,omitzero"`          // of the pods created meanwhile
}
