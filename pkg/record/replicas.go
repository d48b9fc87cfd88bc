package record

// Replicas are the programs of a control plane that ran as several. The figures of all of
// them together have the same paths as those of a control plane with one program.
type Replicas struct {
	Each map[string]*Replica `json:"each"` // by its name, as in istiod-0
	// Balance states how evenly the streams of simulated sidecars were spread over the
	// replicas at the end of each phase.
	Balance ByPhase[*Balance] `json:"balance,omitzero"`
}

// Replica is one program of a control plane that ran as several.
type Replica struct {
	Usage ByPhase[*Usage] `json:"usage,omitzero"` // absent for a phase in which it did not run
	// Streams are the streams of simulated sidecars that were open and answered at the end of
	// each phase, by the address that was dialled. OwnStreams is the replica's own count.
	Streams    ByPhase[*int]     `json:"streams,omitzero"`
	OwnStreams ByPhase[*float64] `json:"ownStreams,omitzero"`
}

// Balance states how evenly streams are spread over the replicas that serve, compared with
// a random choice of a replica for each stream, with equal probabilities.
type Balance struct {
	Replicas int     `json:"replicas"` // that serve
	Streams  int     `json:"streams"`  // to all of them
	Most     int     `json:"most"`     // to the one that has the most
	Expected float64 `json:"expected"` // mean of Most under chance
	// Probability is the probability that a random choice spreads streams at least as unevenly.
	Probability float64 `json:"probability"`
}

// FaultReplica counts the streams of one replica before and after a fault.
type FaultReplica struct {
	// Before and After are streams of simulated sidecars, as Replica.Streams, when the fault
	// began and when the mesh had converged again.
	Before int  `json:"before"`
	After  int  `json:"after"`
	Serves bool `json:"serves"` // when the mesh had converged again
}
