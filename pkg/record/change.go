package record

// Change is the phase in which changes are made at a rate. The schedule does not wait
// for the changes before: it is an open loop. Every change is a new version of an
// object, and a sidecar has a change once it has that version or a later one.
type Change struct {
	Kind              string   `json:"kind"` // endpoint, route, policy, metadata, route-metadata or meshwide
	OfferedPerSecond  *float64 `json:"offeredPerSecond,omitempty"`
	AchievedPerSecond *float64 `json:"achievedPerSecond,omitempty"` // changes written in the phase, over its length
	Changes           *int     `json:"changes,omitempty"`           // that were written
	Missed            *int     `json:"missed,omitempty"`            // due, and not written by the end of the phase

	// Push and FromDue have one observation for each change and each sidecar that it
	// concerns; First and Last have one for each change.
	Push    *Latency `json:"push,omitempty"`    // write returned to a sidecar's having the change
	FromDue *Latency `json:"fromDue,omitempty"` // the moment at which the change was due to the same
	First   *Latency `json:"first,omitempty"`   // write returned to the first sidecar's having it
	Last    *Latency `json:"last,omitempty"`    // and to the last one's
	Late    *Latency `json:"late,omitempty"`    // the moment at which a change was due to its write's being sent
	Write   *Latency `json:"write,omitempty"`   // write sent to answered

	// Intervals say how exactly the changes determine the quantiles of Push.
	Intervals *PushIntervals `json:"intervals,omitempty"`
	// Superseded is the share of what Push counts in which the sidecar received a later
	// version only.
	Superseded *float64 `json:"superseded,omitempty"`
	// BacklogSeconds is the time from the end of the phase until every sidecar had every change
	// that concerns it; absent if that exceeded the time limit.
	BacklogSeconds *float64 `json:"backlogSeconds,omitempty"`
	// ResponsesPerChange and BytesPerChange are what all sidecars received, from the
	// start of the phase until the control plane was at rest after it, over Changes.
	ResponsesPerChange *float64 `json:"responsesPerChange,omitempty"`
	BytesPerChange     *float64 `json:"bytesPerChange,omitempty"`
}

// WithholdsP99 says whether the changes were too few for a 99th percentile of what
// sidecars saw of them.
func (c *Change) WithholdsP99() bool {
	return c.Changes != nil && *c.Changes > 0 && *c.Changes < ChangesForP99
}

// Withhold takes away the quantiles that too few changes do not determine.
func (c *Change) Withhold() {
	if c.WithholdsP99() {
		withhold(c.Push, c.FromDue, c.First, c.Last)
	}
}

// ChangeFigures are the figures of Change, except latencies.
var ChangeFigures = []Figure{
	{Path: "offeredPerSecond", Unit: UnitPerSecond, Label: "offered/s", Counts: "change", Better: BetterNeither, NotCompared: true,
		Definition: "The requested rate."},
	{Path: "achievedPerSecond", timed: "achievedPerSecond", Unit: UnitPerSecond, Label: "achieved/s", Counts: "change", Better: BetterHigher,
		Definition: "Changes written, over the length of the phase; below 95 % of `offeredPerSecond` there is a warning."},
	{Path: "changes", Unit: UnitCount, Label: "changes", Counts: "change", Better: BetterNeither, NotCompared: true,
		Definition: "Changes that were written."},
	{Path: "missed", Unit: UnitCount, Label: "missed", Counts: "change", Better: BetterLower,
		Definition: "Changes that were due and not made: they could not be sent before the phase ended."},
	{Path: "superseded", Unit: UnitShare, Label: "superseded", Counts: "sidecar of each change", Better: BetterNeither, NotCompared: true,
		Definition: "The share of the observations of `push` that came in which the sidecar received a later version only."},
	{Path: "backlogSeconds", timed: "backlogSeconds", Unit: UnitSeconds, Label: "backlog", Counts: "phase", Better: BetterLower,
		Definition: "From the end of the phase until every change had reached every sidecar concerned; absent if one was lost."},
	{Path: "responsesPerChange", Unit: UnitCount, Label: "responses per change", Counts: "response", Better: BetterLower,
		Definition: "Responses that all sidecars received from the start of the phase until the control plane had sent nothing for 2 s, over `changes`. With churn they include what the pods that come and go receive."},
	{Path: "bytesPerChange", Unit: UnitBytes, Label: "bytes per change", Counts: "response", Better: BetterLower,
		Definition: "The bytes of those responses, over `changes`."},
}

// Distributions returns the latencies of the phase, in the order in which they are shown;
// their paths are below the Change.
func (c *Change) Distributions() []Distribution {
	few := c.WithholdsP99()
	held := "a sidecar received bytes with the change, or with a later version"
	return []Distribution{
		{Path: "push", Label: "push", Counts: "sidecar of each change", Phase: PhaseChange, Latency: c.Push, WithheldP99: few,
			From: "the write returned", To: held, Note: "One that comes more than 30 s after its write is lost. A push before the response to the write is read counts as 0, and in `clamped`."},
		{Path: "fromDue", Label: "from due", Counts: "sidecar of each change", Phase: PhaseChange, Latency: c.FromDue, WithheldP99: few,
			From: "the change was due", To: held, Note: "What made a change late is in it, so that nothing is omitted where the test machine is slow."},
		{Path: "first", Label: "first", Counts: "change", Phase: PhaseChange, Latency: c.First, WithheldP99: few,
			From: "the write returned", To: held, Note: "The first of the sidecars concerned counts."},
		{Path: "last", Label: "last", Counts: "change", Phase: PhaseChange, Latency: c.Last, WithheldP99: few,
			From: "the write returned", To: held, Note: "The last of the sidecars concerned counts."},
		{Path: "late", Label: "late", Counts: "change", Phase: PhaseChange, Latency: c.Late,
			From: "the change was due", To: "its write is sent"},
		{Path: "write", Label: "write", Counts: "change", Phase: PhaseChange, Latency: c.Write,
			From: "the write is sent", To: "it returned"},
	}
}

// changeFigures returns all figures of Change.
func changeFigures() []node {
	return []node{
		leaves(ChangeFigures),
		distributions("", (*Change).Distributions),
		at(place{path: "intervals", timed: timedWhole, label: "push interval, ", notCompared: true}, pushIntervals()...),
	}
}
