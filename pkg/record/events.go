package record

import (
	"bytes"
	"encoding/json"
	"time"
)

// Event is one thing that happened in a run: the fields of a line of events.jsonl.
// docs/reference/events.md lists all kinds; a test writes it from the comments here.
type Event interface {
	// EventKind is the line's kind, by which readers know which fields it has.
	EventKind() EventKind
}

// EventKind names what happened.
type EventKind string

// Step is one burst of pods of the plan, when the API server has accepted it.
type Step struct {
	Step        int     `json:"step"`        // its place in the plan, from 1
	Of          int     `json:"of"`          // steps of the plan
	Services    int     `json:"services"`    // services whose Deployments it scales
	LateSeconds float64 `json:"lateSeconds"` // from the time that the plan has for it to its begin
	Seconds     float64 `json:"seconds"`     // from its begin until the API server had accepted it
}

// EventKind is part of Event.
func (Step) EventKind() EventKind { return "step" }

// StreamEnded is a stream of a simulated sidecar that ended, or an attempt that found
// no server. Refusals are not among them: there may be thousands, and they are counted.
type StreamEnded struct {
	Pod       string `json:"pod"`             // namespace/name
	Class     string `json:"class"`           // unreachable, unauthorized, lost or misunderstood
	Attempt   int    `json:"attempt"`         // number of the attempt to connect, from 1
	Responses int    `json:"responses"`       // received on the stream
	Error     string `json:"error,omitempty"` // why it ended; absent if nothing is known
}

// EventKind is part of Event.
func (StreamEnded) EventKind() EventKind { return "streamEnded" }

// Rejected is a response that a simulated sidecar rejected (NACK).
type Rejected struct {
	Pod   string `json:"pod"`   // namespace/name
	Type  string `json:"type"`  // of the resources: CDS, EDS, LDS, RDS, ...
	Error string `json:"error"` // why, as the control plane received it
}

// EventKind is part of Event.
func (Rejected) EventKind() EventKind { return "rejected" }

// TokenFailed is a token that a simulated sidecar did not get from the API server.
type TokenFailed struct {
	Pod   string `json:"pod"`   // namespace/name
	Error string `json:"error"` // of the request
}

// EventKind is part of Event.
func (TokenFailed) EventKind() EventKind { return "tokenFailed" }

// CertificateFailed is an attempt to get a certificate that failed.
type CertificateFailed struct {
	Pod     string `json:"pod"`     // namespace/name
	Attempt int    `json:"attempt"` // its number, from 1
	Error   string `json:"error"`   // of the request
}

// EventKind is part of Event.
func (CertificateFailed) EventKind() EventKind { return "certificateFailed" }

// ProbedChange is one change that was made in the probe phase and followed to all
// sidecars that it concerns.
type ProbedChange struct {
	Kind         ChangeKind `json:"kind"`         // of the change, as in latencies.push
	Since        time.Time  `json:"since"`        // when its latency began
	Reached      int        `json:"reached"`      // sidecars that received it in time
	Lost         []string   `json:"lost"`         // pods whose sidecars did not
	Strays       []string   `json:"strays"`       // pods whose sidecars received it though it does not concern them
	FirstSeconds float64    `json:"firstSeconds"` // from since until the first sidecar received it; 0 if none did
	LastSeconds  float64    `json:"lastSeconds"`  // from since until the last sidecar received it; 0 if none did
	// Pushes are pairs: a latency from since in seconds, to three digits, and how many
	// sidecars had it; ascending. What sidecars saw of one change is not independent, so
	// intervals are made by resampling changes.
	Pushes [][2]float64 `json:"pushes,omitempty"`
	// Clamped is the number of sidecars that received it before since; their latency counts as 0.
	Clamped int `json:"clamped,omitempty"`
}

// EventKind is part of Event.
func (ProbedChange) EventKind() EventKind { return "probe" }

// FaultBegun is a fault that is about to be made.
type FaultBegun struct {
	Name string `json:"name"` // as in faults[].name
}

// EventKind is part of Event.
func (FaultBegun) EventKind() EventKind { return "fault" }

// FaultOver is a fault that has been made: what was broken is there again.
type FaultOver struct {
	Name    string  `json:"name"`    // as in faults[].name
	Seconds float64 `json:"seconds"` // from its begin
}

// EventKind is part of Event.
func (FaultOver) EventKind() EventKind { return "faultOver" }

// WatchesBack is the end of the wait for the clients of the API server after it was gone.
type WatchesBack struct {
	MissingFirst *int    `json:"missingFirst"` // kinds of object with fewer watches than before, at the first look; null if not known
	Missing      *int    `json:"missing"`      // the same at the last look
	Seconds      float64 `json:"seconds"`      // that scaler waited
}

// EventKind is part of Event.
func (WatchesBack) EventKind() EventKind { return "watchesBack" }

// WatchLost is a watch of scaler's own that ended and is opened again.
type WatchLost struct {
	Error string `json:"error"` // that ended it
}

// EventKind is part of Event.
func (WatchLost) EventKind() EventKind { return "watchLost" }

// ControlPlaneEnded is an end of the control plane's process; it is started again, unless
// the fault is one that ends it for good.
type ControlPlaneEnded struct {
	Name  string `json:"name,omitempty"` // of the replica or helping program; "" of the one program that serves sidecars
	Asked bool   `json:"asked"`          // a fault ended it
	Error string `json:"error"`          // its exit status and the end of its output
}

// EventKind is part of Event.
func (ControlPlaneEnded) EventKind() EventKind { return "controlPlaneEnded" }

// OutOfMemory is the end of a control plane that exceeded its memory limit.
type OutOfMemory struct {
	LimitBytes int64 `json:"limitBytes"` // that it was given
}

// EventKind is part of Event.
func (OutOfMemory) EventKind() EventKind { return "outOfMemory" }

// RealSidecarStarted is a start of the processes of a real sidecar.
type RealSidecarStarted struct {
	Pod   string `json:"pod"`   // namespace/name
	Life  int    `json:"life"`  // number of the start, from 1
	PID   int    `json:"pid"`   // of the agent, or of Envoy where there is none
	Envoy int    `json:"envoy"` // process id of Envoy
}

// EventKind is part of Event.
func (RealSidecarStarted) EventKind() EventKind { return "realSidecarStarted" }

// RealSidecarEnded is an end of a real sidecar that nobody asked for; it is started again.
type RealSidecarEnded struct {
	Pod   string `json:"pod"`   // namespace/name
	Error string `json:"error"` // its exit status and the end of its log
}

// EventKind is part of Event.
func (RealSidecarEnded) EventKind() EventKind { return "realSidecarEnded" }

// ConfigurationRefused is configuration that the Envoy of a real sidecar refused.
type ConfigurationRefused struct {
	Pod     string            `json:"pod"`     // namespace/name
	Refused []RefusedResource `json:"refused"` // each resource with Envoy's words
}

// EventKind is part of Event.
func (ConfigurationRefused) EventKind() EventKind { return "refused" }

// RefusedResource is one resource that an Envoy refused.
type RefusedResource struct {
	Resource string // type and name, as in "LDS virtualInbound"
	Words    string // Envoy's error
}

// WorkerLost is a worker in the cluster that was lost, with all its sidecars.
type WorkerLost struct {
	Worker   string `json:"worker"`   // its name in instrument.workers
	Sidecars int    `json:"sidecars"` // that begin again in another pod
	Error    string `json:"error"`    // why
}

// EventKind is part of Event.
func (WorkerLost) EventKind() EventKind { return "workerLost" }

// WorkerReplaced is another pod that has taken the place of a worker that was lost.
type WorkerReplaced struct {
	Worker  string  `json:"worker"`  // its name in instrument.workers
	Pod     string  `json:"pod"`     // the new one
	Node    string  `json:"node"`    // that the pod is on
	Seconds float64 `json:"seconds"` // from the loss until its sidecars were started
}

// EventKind is part of Event.
func (WorkerReplaced) EventKind() EventKind { return "workerReplaced" }

// ObjectsDeleted is the deletion of the objects that carry the run's label, after all
// figures were read.
type ObjectsDeleted struct {
	Deleted int     `json:"deleted"`         // objects found, all of them gone unless error is there
	Seconds float64 `json:"seconds"`         // that it took
	Error   string  `json:"error,omitempty"` // why some were left to the end of the cluster
}

// EventKind is part of Event.
func (ObjectsDeleted) EventKind() EventKind { return "objectsDeleted" }

// eventsOf reads the events of one kind from a run's events.jsonl, in their order.
// Lines of other kinds are skipped, also of kinds that this version does not know.
func eventsOf[E Event](r *Run) ([]E, error) {
	var all []E
	var none E
	mark := []byte(`"` + none.EventKind() + `"`)
	err := r.readLines(eventsFile, func(line []byte) error {
		if !bytes.Contains(line, mark) {
			return nil // the kind is not there: spare the decoder the line
		}
		var event struct {
			Kind   EventKind       `json:"kind"`
			Fields json.RawMessage `json:"fields"`
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return err
		}
		if event.Kind != none.EventKind() {
			return nil
		}
		var e E
		if err := json.Unmarshal(event.Fields, &e); err != nil {
			return err
		}
		all = append(all, e)
		return nil
	})
	return all, err
}
