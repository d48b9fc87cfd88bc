// Package pushes computes how often a control plane pushes while a mesh is rolled out.
// The control plane collects changes until none has come for some time (the debounce),
// and pushes all of them together to every proxy that they concern. Pushes therefore
// depend on when pods come, not only on how many there are.
//
// The rules are those of istiod (pilot/pkg/xds, debounce and needsPush): a change of
// endpoints alone sends endpoints (EDS). The first endpoint of a service brings a service
// account that the service did not have, and sends listeners, routes and clusters, too;
// the proxies of the service itself are sent these without endpoints
// (DefaultProxyNeedsPush). A proxy whose own pod becomes ready is sent everything at
// once, without debounce (pilot/pkg/serviceregistry/kube/controller, proxyUpdates). A
// proxy that holds no other service has neither routes nor endpoints.
//
// A control plane that waits for processors merges more pushes: the counts assume one
// that does not.
package pushes

import (
	"cmp"
	"math/bits"
	"slices"
	"sort"
	"time"
)

// Debounce says how long changes are collected before they are pushed: until none has
// come for the time After, or until the time Max has passed since the first.
type Debounce struct {
	After, Max time.Duration
}

// Change is a change of the endpoints of a service.
type Change struct {
	At      time.Duration
	Service int
	Full    bool // more than endpoints is sent
}

// Round is a set of changes that are pushed together, in their order.
type Round struct {
	At      time.Duration
	Changes []Change
}

// Rounds returns the rounds in which the changes are pushed. As in istiod, the remaining
// wait is only checked when a timer fires, so a round may begin later than After after
// its last change.
func (d Debounce) Rounds(changes []Change) []Round {
	changes = slices.Clone(changes)
	slices.SortStableFunc(changes, func(a, b Change) int { return cmp.Compare(a.At, b.At) })
	var rounds []Round
	for from := 0; from < len(changes); {
		first := changes[from].At
		to, timer := from, first+d.After
		for {
			for to < len(changes) && changes[to].At <= timer {
				to++
			}
			quiet := timer - changes[to-1].At
			if quiet >= d.After || timer-first >= d.Max {
				break
			}
			timer += d.After - quiet
		}
		rounds = append(rounds, Round{timer, changes[from:to]})
		from = to
	}
	return rounds
}

// Pod is a pod with a proxy. Times are since the beginning of the rollout.
type Pod struct {
	Service   int
	Address   time.Duration // when it has an address: it becomes an endpoint that is not ready
	Connected time.Duration // when its proxy has a stream
	Ready     time.Duration // when it becomes a ready endpoint
}

// Rollout describes the pods that are rolled out.
type Rollout struct {
	Pods []Pod
	// Holders are, for each service, the services whose proxies hold it; nil = all proxies hold all
	// services.
	Holders [][]int
	// End is the time at which the rollout ends; later pushes are not counted. 0 = never.
	End time.Duration
}

// types is a set of resource types, one bit for each.
type types uint8

const (
	clusters types = 1 << iota
	listeners
	routes
	endpoints

	own        = clusters | listeners
	configured = own | routes
	everything = configured | endpoints
)

func (t types) count() int { return bits.OnesCount8(uint8(t)) }

// Counts are the pushes of a rollout.
type Counts struct {
	Rounds     int // in which changes were pushed
	FullRounds int // of these, in which more than endpoints was pushed
	Responses  int // sent to all proxies, in rounds, when they connect, and when their pods become ready
}

// everyone is the group of all proxies, used if all hold all services.
const everyone = -1

// Count counts the pushes of the rollout.
func (r Rollout) Count(d Debounce) Counts {
	holds := r.holds()
	var c Counts
	connected := map[int][]time.Duration{} // by group of proxies that hold the same: those of a service, or everyone
	for _, p := range r.Pods {
		group := everyone
		if r.Holders != nil {
			group = p.Service
		}
		connected[group] = append(connected[group], p.Connected)
		for _, at := range []time.Duration{p.Connected, p.Ready} {
			if !r.over(at) {
				c.Responses += holds(group).count()
			}
		}
	}
	for _, times := range connected {
		slices.Sort(times)
	}
	for _, round := range d.Rounds(r.changes()) {
		if r.over(round.At) {
			break
		}
		c.Rounds++
		if slices.ContainsFunc(round.Changes, func(c Change) bool { return c.Full }) {
			c.FullRounds++
		}
		for group, sent := range r.sent(round) {
			times := connected[group]
			proxies := sort.Search(len(times), func(i int) bool { return times[i] > round.At })
			c.Responses += proxies * (sent & holds(group)).count()
		}
	}
	return c
}

// sent returns what a round sends, by group of proxies.
func (r Rollout) sent(round Round) map[int]types {
	sent := map[int]types{}
	for _, change := range round.Changes {
		of := endpoints
		if change.Full {
			of = everything
		}
		if r.Holders == nil {
			sent[everyone] |= of
			continue
		}
		for _, group := range r.Holders[change.Service] {
			sent[group] |= of
		}
		if change.Full {
			sent[change.Service] |= configured
		}
	}
	return sent
}

// holds returns a function that returns the types that the proxies of a group hold.
func (r Rollout) holds() func(group int) types {
	holders := map[int]bool{everyone: true}
	for _, groups := range r.Holders {
		for _, group := range groups {
			holders[group] = true
		}
	}
	return func(group int) types {
		if !holders[group] {
			return own
		}
		return everything
	}
}

// Round returns the number of responses in a round that concerns all proxies.
func (r Rollout) Round() int { return everything.count() * len(r.Pods) }

// Seconds returns the duration of the rollout: to its end, or if it has none to the last
// pod that becomes ready.
func (r Rollout) Seconds() float64 {
	end := r.End
	for _, p := range r.Pods {
		if r.End == 0 {
			end = max(end, p.Ready)
		}
	}
	return end.Seconds()
}

// over reports whether the rollout has ended at this time.
func (r Rollout) over(at time.Duration) bool { return r.End > 0 && at > r.End }

// changes returns the changes of endpoints that the pods cause.
func (r Rollout) changes() []Change {
	pods := slices.Clone(r.Pods)
	slices.SortStableFunc(pods, func(a, b Pod) int { return cmp.Compare(a.Address, b.Address) })
	known := map[int]bool{}
	var changes []Change
	for _, p := range pods {
		changes = append(changes, Change{p.Address, p.Service, !known[p.Service]}, Change{p.Ready, p.Service, false})
		known[p.Service] = true
	}
	return changes
}
