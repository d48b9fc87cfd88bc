package record

import "time"

// PodStartup is how one pod started, when it has become Ready.
type PodStartup struct {
	Pod   string  `json:"pod"`   // namespace/name
	Times Startup `json:"times"` // see docs/reference/definitions.md
}

// Startup are the moments of one pod's start; those that did not come are zero.
type Startup struct {
	Owner     time.Time `json:"owner,omitzero"`     // its Deployment was created or scaled for it
	Seen      time.Time `json:"seen,omitzero"`      // seen in the watch
	IP        time.Time `json:"ip,omitzero"`        // seen with an address: the sidecar starts
	Token     time.Time `json:"token,omitzero"`     // its first token was there
	Dialed    time.Time `json:"dialed,omitzero"`    // its first attempt to connect began
	Connected time.Time `json:"connected,omitzero"` // the connection of its first stream was up
	Requested time.Time `json:"requested,omitzero"` // first request sent
	Answered  time.Time `json:"answered,omitzero"`  // first response
	Complete  time.Time `json:"complete,omitzero"`  // complete configuration acknowledged
	Certified time.Time `json:"certified,omitzero"` // certificate verified
	Reported  time.Time `json:"reported,omitzero"`  // the pod was reported complete
	Ready     time.Time `json:"ready,omitzero"`     // seen Ready
}

// Startups reads the starts of a run's pods from its events, in the order in
// which they became Ready.
func (r *Run) Startups() ([]PodStartup, error) { return eventsOf[PodStartup](r) }
