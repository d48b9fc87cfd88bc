package record

// Replicas are the programs of a control plane that ran as several. Figures of all of them
// together are where those of a control plane with one program are.
type Replicas struct {
	Each map[string]*Replica `json:"each"` // by its name, as in istiod-0
	// Balance is how evenly the streams of simulated sidecars were spread at the end of each
	// phase.
	Balance ByPhase[*Balance] `json:"balance,omitzero"`
}

// Replica is one program of a control plane that ran as several.
type Replica struct {
	Usage ByPhase[*Usage] `json:"usage,omitzero"` // absent for a phase in which it did not run
	// Streams are those of simulated sidecars that were open and answered at the end of each
	// phase, by the address that was dialled, and OwnStreams what the replica itself counted.
	Streams    ByPhase[*int]     `json:"streams,omitzero"`
	OwnStreams ByPhase[*float64] `json:"ownStreams,omitzero"`
}

// Balance is how evenly streams are spread over the replicas that serve, compared with what
// chance makes of it where each stream goes to one of them, all alike.
type Balance struct {
	Replicas int     `json:"replicas"` // that serve
	Streams  int     `json:"streams"`  // to all of them
	Most     int     `json:"most"`     // to the one that has the most
	Expected float64 `json:"expected"` // mean of Most under chance
	// Probability is that with which chance makes a spread as uneven as this, or more.
	Probability float64 `json:"probability"`
}

// FaultReplica is what a fault made of the streams of one replica.
type FaultReplica struct {
	// Before and After are streams of simulated sidecars, as Replica.Streams, when the fault
	// began and when the mesh had converged again.
	Before int  `json:"before"`
	After  int  `json:"after"`
	Serves bool `json:"serves"` // when the mesh had converged again
}
