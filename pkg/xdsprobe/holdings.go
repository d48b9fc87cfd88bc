package xdsprobe

import (
	"scaler.mesh/scaler/pkg/convergence"
	"scaler.mesh/scaler/pkg/proxy"
)

// Holdings returns the amount that the sidecar holds of each type; types of which it
// holds nothing are left out. It may be called while the sidecar runs.
func (s *Client) Holdings() map[convergence.Type]proxy.Holding {
	holdings := make(map[convergence.Type]proxy.Holding)
	for _, r := range s.Held() {
		h := holdings[r.Type]
		h.Resources++
		h.Bytes += int64(r.Size)
		holdings[r.Type] = h
	}
	return holdings
}

// Held returns the resources that the sidecar holds, sorted by type and then by name. It
// may be called while the sidecar runs. The slice is the caller's.
func (s *Client) Held() []*proxy.Resource {
	s.holding.Lock()
	defer s.holding.Unlock()
	var held []*proxy.Resource
	for i := range s.state.tables {
		for _, r := range s.state.tables[i].held {
			held = append(held, &r.Resource)
		}
	}
	return held
}
