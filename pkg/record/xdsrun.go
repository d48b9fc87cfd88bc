package record

import "time"

// XDSKind is the kind of an XDSRun.
const XDSKind = "XDSRun"

// XDSRun is the result of `scaler xds`: simulated sidecars alone with an existing ADS
// server. It is printed, not kept in a folder, because
// nothing is known of the server but its answers.
type XDSRun struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Schema     int       `json:"schema"`
	Status     Status    `json:"status"` // unconverged: not all sidecars were complete at the end
	Started    time.Time `json:"started"`
	Finished   time.Time `json:"finished"`

	Spec        XDSRunSpec  `json:"spec"`
	Environment Environment `json:"environment"`
	Sidecars    XDSSidecars `json:"sidecars"`
	Windows     []XDSWindow `json:"windows,omitempty"` // in order of time
	Latencies   Latencies   `json:"latencies,omitzero"`
	XDS         *XDS        `json:"xds,omitempty"`
	Instrument  *Instrument `json:"instrument,omitempty"` // over the whole run
	Warnings    []Warning   `json:"warnings,omitempty"`
}

// XDSRunSpec is the specification of an XDSRun.
type XDSRunSpec struct {
	Address         string  `json:"address"`
	Clients         int     `json:"clients"`
	XDS             string  `json:"xds"` // delta or sotw
	TLS             bool    `json:"tls"`
	RatePerSecond   float64 `json:"ratePerSecond,omitempty"`   // sidecars started a second; 0 = all at once
	DurationSeconds float64 `json:"durationSeconds,omitempty"` // 0 = until it was stopped
}

// XDSSidecars are counts of sidecars; each stays counted when its stream is
// lost.
type XDSSidecars struct {
	Requested int `json:"requested"`
	Connected int `json:"connected"` // had a connection
	Answered  int `json:"answered"`  // had a response
	Complete  int `json:"complete"`  // had everything that their own subscription graph named, acknowledged
}

// XDSWindow is a part of an XDSRun: arrival, from the first sidecar's start
// until all were complete, or the end; and hold, from there to the end.
type XDSWindow struct {
	Name      string  `json:"name"` // arrival or hold
	Seconds   float64 `json:"seconds"`
	Usage     *Usage  `json:"usage,omitempty"` // scaler's own
	Responses int64   `json:"responses"`
	Bytes     int64   `json:"bytes"` // of responses
	// CPUSecondsPerResponse is scaler's own processor time for each response,
	// with all else that it did meanwhile.
	CPUSecondsPerResponse *float64 `json:"cpuSecondsPerResponse,omitempty"`
}
