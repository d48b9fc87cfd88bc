package record

// Cycle is the phase in which what a steady mesh does over the age of a connection is
// done within a shorter time: every simulated sidecar reconnects once, as after the
// control plane has closed its connection for its age, and as many renew their
// certificate as would within that age.
type Cycle struct {
	Sidecars       int     `json:"sidecars"`       // simulated, connected when it began
	AgeSeconds     float64 `json:"ageSeconds"`     // at which the control plane closes a connection
	RenewalSeconds float64 `json:"renewalSeconds"` // after which a sidecar renews its certificate; 0 = never
	Renewals       int     `json:"renewals"`       // certificates that were to be renewed in it
	Returned       *int    `json:"returned,omitempty"`

	// Cores are the mean cores of the control plane in a steady state in which each
	// connection is closed at its age and each certificate renewed when that is due. See
	// SetCores.
	Cores *float64 `json:"cores,omitempty"`
	// CPUSeconds is the control plane's processor time for one cycle: that of the phase,
	// less that of the steady phase in the same time.
	CPUSeconds *float64 `json:"cpuSeconds,omitempty"`
	// Reconnect is, of each sidecar, from the loss of its stream until it has all that
	// it requests on a new one.
	Reconnect *Latency `json:"reconnect,omitempty"`
}

// SetCores computes CPUSeconds and Cores from what the phases used: in steady nothing
// reconnects, so that the rest of the phase's processor time is the cost of one cycle. In
// a mesh that cost is spread over the age of a connection, on top of steady's cores. Without one of
// the figures nothing is known.
//
// All figures are as measured, before Undilated multiplies Cores by the factor of the cycle. If steady was not slowed
// down, its cores must not be multiplied, and are divided by the factor here. slowdown is Run.SlowdownIn.
func (c *Cycle) SetCores(steady, cycle *Usage, seconds *float64, slowdown func(PhaseName) float64) {
	if steady == nil || cycle == nil || steady.Cores == nil || steady.Cores.Mean == nil || cycle.CPUSeconds == nil || seconds == nil {
		return
	}
	c.CPUSeconds = new(*cycle.CPUSeconds - *steady.Cores.Mean**seconds)
	k := slowdown(PhaseCycle)
	c.Cores = new(*steady.Cores.Mean*slowdown(PhaseSteady)/k + *c.CPUSeconds/(c.AgeSeconds*k))
}

// cycleFigures returns all figures of Cycle.
func cycleFigures() []node {
	return []node{leaves([]Figure{
		{Path: "cores", Unit: UnitCores, Label: "cores with reconnects", Counts: "phase", Better: BetterLower,
			Definition: "Mean cores of the control plane in a steady state in which each connection is closed at its age and each certificate is renewed when due: steady's mean, plus what the phase `cycle` used beyond it over the age of a connection."},
		{Path: "cpuSeconds", Unit: UnitSeconds, Label: "CPU time of a cycle", Counts: "phase", Better: BetterLower,
			Definition: "Processor time of the control plane in the phase `cycle`, without what steady uses in the same time: one reconnect of every sidecar, and the certificates renewed."},
		{Path: "returned", Unit: UnitCount, Label: "came back", Counts: "sidecar", Better: BetterNeither, NotCompared: true,
			Definition: "Sidecars that had all that they request on a new stream."},
	}), distribution(place{path: "reconnect", timed: timedWhole, label: "reconnect, ", counts: "sidecar",
		from: "the sidecar loses its connection", to: "it has all that it requests on a new one"})}
}
