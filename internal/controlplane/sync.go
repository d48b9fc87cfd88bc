package controlplane

import (
	"context"
	"time"
)

// Sync states how a control plane reports which proxies are behind. Without it
// it is not known whether the control plane is at rest: one that sends nothing may still wait for more changes, or
// have proxies in a queue.
type Sync struct {
	// Debounce is the longest time, in real time, for which it waits before it pushes a change that it has seen.
	Debounce time.Duration
	// Read reads it of one program, or of one replica.
	Read func(ctx context.Context) (SyncState, error)
}

// SyncState is the report of one program of a control plane at a moment.
type SyncState struct {
	// Proxies states, by the NAMESPACE/NAME of their pods, whether each connected proxy has
	// acknowledged the last of what it was sent of every type.
	Proxies map[string]bool
	// Work differs from what it was before once the program has seen a change, begun a push, or taken
	// a proxy out of its queue.
	Work string
}

// Add makes the state one of a further program, too. A proxy that is connected to both has acknowledged what both sent.
func (s *SyncState) Add(of SyncState) {
	if s.Proxies == nil {
		s.Proxies = map[string]bool{}
	}
	for id, acked := range of.Proxies {
		before, twice := s.Proxies[id]
		s.Proxies[id] = acked && (before || !twice)
	}
	s.Work += "program\n" + of.Work
}
