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

// Difference is one resource that sidecars hold otherwise than expected, or not at all.
type Difference struct {
	Key
	Service  string         // the service port whose endpoints it lists; "" = endpoints are not compared
	Sidecars int            // that lack it, or hold it otherwise
	Sidecar  string         // id of the first of them
	Lacks    string         // what that one lacks, such as " is not held"
	Absent   bool           // that one does not hold the resource
	Endpoint netip.AddrPort // the first endpoint that differs in that one; the zero value = none does
}

// Differences lists the resources by which sidecars differ from what is expected of them, sorted
// by type and name. A certificate that is missing is none of them.
func (t *Tracker) Differences() []Difference {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := map[Key]*Difference{}
	for _, id := range slices.Sorted(maps.Keys(t.sidecars)) {
		s := t.sidecars[id]
		counted := map[Key]bool{} // several wants may have one key
		for i := range s.slots {
			want := s.scope.wants[i]
			if s.slots[i].standing().current || counted[want.key] {
				continue
			}
			counted[want.key] = true
			d := found[want.key]
			if d == nil {
				held := s.slots[i].held
				d = &Difference{Key: want.key, Sidecar: id, Lacks: want.target.lack(held), Absent: held == nil}
				if want.target.service != nil {
					d.Service = want.target.service.name
					if held != nil {
						d.Endpoint, _ = want.target.differing(held)
					}
				}
				found[want.key] = d
			}
			d.Sidecars++
		}
	}
	var all []Difference
	for _, key := range slices.SortedFunc(maps.Keys(found), Key.Compare) {
		all = append(all, *found[key])
	}
	return all
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
	addr, n := tg.differing(held)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" holds %s as %s, want %s (differing from %s: %d)", addr,
		held.content.Endpoints.state(addr), tg.service.state(addr), tg.service.name, n)
}

// differing returns the first endpoint whose state in a held content is not that of the target's
// service, and how many there are.
func (tg *target) differing(held *verdict) (first netip.AddrPort, n int) {
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
		return netip.AddrPort{}, 0
	}
	return slices.MinFunc(differ, netip.AddrPort.Compare), len(differ)
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
