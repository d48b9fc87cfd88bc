package convergence

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
)

// Missing explains to a reader why sidecars have not converged: one line for each of at
// most limit sidecars, in the order of their ids. Each line names the first thing that
// the sidecar lacks and the number of further ones.
func (t *Tracker) Missing(limit int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(t.sidecars)) {
		if len(lines) >= limit {
			break
		}
		if s := t.sidecars[id]; !s.converged() {
			lines = append(lines, id+": "+s.lack())
		}
	}
	return lines
}

// lack describes what a sidecar that has not converged lacks.
func (s *sidecar) lack() string {
	first, more := "", s.behind-1
	if !s.certified {
		first, more = "no certificate", s.behind
	}
	for i := range s.slots {
		if first == "" && !s.slots[i].standing().current {
			want := s.scope.wants[i]
			first = want.key.String() + want.target.lack(s.slots[i].held)
		}
	}
	if more > 0 {
		return fmt.Sprintf("%s; and %d more resources", first, more)
	}
	return first
}

// lack describes in what a held content, nil if there is none, differs from what the
// target currently expects.
func (tg *target) lack(held *verdict) string {
	if held == nil {
		return " is not held"
	}
	if member := firstMissing(tg.members, held.content.Members); member != "" {
		return " lacks " + member
	}
	if tg.service == nil {
		return ""
	}
	var differ []netip.AddrPort
	for addr := range tg.service.history {
		if tg.service.state(addr) != held.content.Endpoints.state(addr) {
			differ = append(differ, addr)
		}
	}
	for addr := range held.content.Endpoints {
		if _, known := tg.service.history[addr]; !known {
			differ = append(differ, addr)
		}
	}
	if len(differ) == 0 {
		return ""
	}
	addr := slices.MinFunc(differ, netip.AddrPort.Compare)
	return fmt.Sprintf(" holds %s as %s, want %s (differing from %s: %d)", addr,
		held.content.Endpoints.state(addr), tg.service.state(addr), tg.service.name, len(differ))
}

// state returns what an endpoint is in eps.
func (eps Endpoints) state(addr netip.AddrPort) state {
	if health, listed := eps[addr]; listed {
		return state(health)
	}
	return absent
}

// String returns the state in lower case.
func (s state) String() string {
	if s == absent {
		return "absent"
	}
	return Health(s).String()
}
