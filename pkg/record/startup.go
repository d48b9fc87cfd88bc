package record

import "time"

// PodStartup is the start of one pod, with its times. It is written when the pod is Ready.
type PodStartup struct {
	Pod   string  `json:"pod"`   // namespace/name
	Times Startup `json:"times"` // see docs/reference/definitions
}

// EventKind is part of Event.
func (PodStartup) EventKind() EventKind { return "podReady" }

// Startup are the moments of one pod's start; those that did not come are zero.
type Startup struct {
	Owner       time.Time `json:"owner,omitzero"`       // its Deployment was created or scaled for it
	Seen        time.Time `json:"seen,omitzero"`        // seen in the watch
	Scheduled   time.Time `json:"scheduled,omitzero"`   // seen with a node
	IP          time.Time `json:"ip,omitzero"`          // seen with an address: the sidecar starts
	Token       time.Time `json:"token,omitzero"`       // its first token was there
	Dialed      time.Time `json:"dialed,omitzero"`      // its first attempt to connect began
	Connected   time.Time `json:"connected,omitzero"`   // the connection of its first stream was up
	Requested   time.Time `json:"requested,omitzero"`   // first request sent
	Answered    time.Time `json:"answered,omitzero"`    // first response
	Initialized time.Time `json:"initialized,omitzero"` // all that its proxy requested at its start was answered
	Complete    time.Time `json:"complete,omitzero"`    // complete configuration acknowledged
	Certified   time.Time `json:"certified,omitzero"`   // certificate verified
	Reported    time.Time `json:"reported,omitzero"`    // the pod was notified, as by a readiness probe
	Notified    time.Time `json:"notified,omitzero"`    // seen with that report
	Ready       time.Time `json:"ready,omitzero"`       // seen Ready
}

// WithoutKwok returns the time from Seen to Ready without the Stages that KWOK played for
// the pod: from its node to its address, and from the report to Ready. It returns false if
// one of the moments is not known.
func (s *Startup) WithoutKwok() (time.Duration, bool) {
	if s.Seen.IsZero() || s.Scheduled.IsZero() || s.IP.IsZero() || s.Notified.IsZero() || s.Ready.IsZero() {
		return 0, false
	}
	return s.Ready.Sub(s.Seen) - s.IP.Sub(s.Scheduled) - s.Ready.Sub(s.Notified), true
}

// Startups reads the starts of a run's pods from its events, in the order in
// which they became Ready.
func (r *Run) Startups() ([]PodStartup, error) { return eventsOf[PodStartup](r) }
