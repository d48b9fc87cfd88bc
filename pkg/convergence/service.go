package convergence

import (
	"math"
	"net/netip"
	"time"
)

// stamp is a time as the Tracker stores it: a third of the size of a time.Time, because
// there are several for every sidecar and resource.
type stamp = time.Duration // since Tracker.base

// state is the state of an endpoint in one version of a service, or in one content:
// absent, or a Health.
type state int16

const absent state = -1

// version numbers the states of a service's endpoints. Version 0 is before the first
// endpoints were seen.
type version int32

// never is older than every version.
const never version = -1

// nothing is the version of a slot that holds nothing. It is older than never.
const nothing version = -2

// spell is a run of versions in which an endpoint had one state. It ends where
// the endpoint's next spell begins.
type spell struct {
	state state
	from  version
}

// service holds the endpoints of one service port in all their versions. The whole
// history is needed to decide whether a content is old enough, or new enough, for each
// endpoint.
type service struct {
	name    string
	now     version
	times   []stamp                    // of versions 1 to now
	changes []changes                  // of versions 1 to now, against the one before
	history map[netip.AddrPort][]spell // of every endpoint ever listed; absent before its first spell
	targets []*target                  // those that compare with this service
}

func newService(name string) *service {
	return &service{name: name, history: make(map[netip.AddrPort][]spell)}
}

// set makes eps the next version and reports whether they differ from the current one; if
// not, it does nothing.
func (s *service) set(eps Endpoints, at stamp) bool {
	next := s.now + 1
	var made changes
	change := func(addr netip.AddrPort, to state) {
		if was := s.state(addr); was != to {
			s.history[addr] = append(s.history[addr], spell{to, next})
			made.count(was, to)
		}
	}
	for addr := range s.history {
		if _, listed := eps[addr]; !listed {
			change(addr, absent)
		}
	}
	for addr, health := range eps {
		change(addr, state(health))
	}
	if made == (changes{}) {
		return false
	}
	s.now = next
	s.times = append(s.times, at)
	s.changes = append(s.changes, made)
	return true
}

// state returns the state of the endpoint in the current version.
func (s *service) state(addr netip.AddrPort) state {
	spells := s.history[addr]
	if len(spells) == 0 {
		return absent
	}
	return spells[len(spells)-1].state
}

// changed returns when the current version was seen; for version 0 a stamp before all
// others.
func (s *service) changed() stamp {
	if s.now == 0 {
		return math.MinInt64
	}
	return s.times[s.now-1]
}

// versionAt returns the version that was current at a time.
func (s *service) versionAt(at stamp) version {
	v := s.now
	for v > 0 && s.times[v-1] > at {
		v--
	}
	return v
}

// empty reports whether no endpoint was listed in a version.
func (s *service) empty(v version) bool {
	for _, spells := range s.history {
		was := absent
		for _, one := range spells {
			if one.from <= v {
				was = one.state
			}
		}
		if was != absent {
			return false
		}
	}
	return true
}

// newest returns the newest version for which eps are at least as new. Eps are at least
// as new as version v if every endpoint's state in them, absence included, is one that
// the endpoint had in version v or later. Because each endpoint is judged separately, eps
// may be a mixture that was never a version: a service's EndpointSlices reach the control
// plane and this program in different orders. The result is never if some endpoint has a
// state in which it was not seen yet.
func (s *service) newest(eps Endpoints) version {
	v := s.now
	for addr, health := range eps {
		v = min(v, s.last(addr, state(health)))
	}
	for addr := range s.history {
		if _, listed := eps[addr]; !listed {
			v = min(v, s.last(addr, absent))
		}
	}
	return v
}

// last returns the newest version in which the endpoint had the state.
func (s *service) last(addr netip.AddrPort, want state) version {
	spells := s.history[addr]
	until := s.now // the end of the spell looked at
	for i := len(spells) - 1; i >= 0; i-- {
		if spells[i].state == want {
			return until
		}
		until = spells[i].from - 1
	}
	if want == absent { // before its first spell
		return until
	}
	return never
}
