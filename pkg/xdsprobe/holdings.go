package xdsprobe

import (
	"slices"

	"scaler.mesh/scaler/pkg/convergence"
)

// Holding is how much of one type a sidecar holds.
type Holding struct {
	Resources int
	Bytes     int64 // of the resources' own messages
}

// Holdings returns how much the sidecar holds of each type; a type of which it
// holds nothing is left out. It may be called while the sidecar runs.
func (s *Sidecar) Holdings() map[convergence.Type]Holding {
	holdings := make(map[convergence.Type]Holding)
	for _, r := range s.Held() {
		h := holdings[r.Type]
		h.Resources++
		h.Bytes += int64(r.Size)
		holdings[r.Type] = h
	}
	return holdings
}

// Held returns the resources that the sidecar holds, sorted by type and then by
// name. It may be called while the sidecar runs; what it returns is the
// caller's.
func (s *Sidecar) Held() []*Resource {
	s.holding.Lock()
	defer s.holding.Unlock()
	var held []*Resource
	for i := range s.state.tables {
		held = slices.Concat(held, s.state.tables[i].held)
	}
	return held
}
