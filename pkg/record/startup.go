package record

import (
	"bytes"
	"encoding/json"
	"time"
)

// PodReadyEvent is the kind of the events that hold a PodStartup.
const PodReadyEvent = "podReady"

// PodStartup is how one pod started, an event of each that became Ready.
type PodStartup struct {
	Pod   string  `json:"pod"` // namespace/name
	Times Startup `json:"times"`
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
	Reported  time.Time `json:"reported,omitzero"`  // the pod was told
	Ready     time.Time `json:"ready,omitzero"`     // seen Ready
}

// Startups reads the starts of a run's pods from its events, in the order in
// which they became Ready.
func (r *Run) Startups() ([]PodStartup, error) {
	var all []PodStartup
	mark := []byte(`"` + PodReadyEvent + `"`)
	err := r.readLines(eventsFile, func(line []byte) error {
		if !bytes.Contains(line, mark) {
			return nil
		}
		var event struct {
			Kind   string          `json:"kind"`
			Fields json.RawMessage `json:"fields"`
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return err
		}
		if event.Kind != PodReadyEvent {
			return nil
		}
		var s PodStartup
		if err := json.Unmarshal(event.Fields, &s); err != nil {
			return err
		}
		all = append(all, s)
		return nil
	})
	return all, err
}
