// Package pushes computes how often a control plane pushes while a mesh is rolled out. The
// control plane collects changes until none has come for some time (the debounce), and pushes all
// of them together to every proxy that they concern. Pushes therefore depend on when pods come,
// not only on how many there are.
//
// The rules are those of istiod (pilot/pkg/xds, debounce and needsPush): a change of endpoints
// alone sends endpoints (EDS). The first endpoint of a service brings a service account that the
// service did not have, and sends listeners, routes and clusters, too.
//
// A control plane that waits for processors merges more than that: the counts are those of one
// that does not.
package pushes

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// Debounce is how long changes are collected before they are pushed: until none has come for the time
// After, or until the time Max has passed since the first.
type Debounce struct {
	After, Max time.Duration
}

// Change is a change of the endpoints of a service.
type Change struct {
	At      time.Duration
	Service int
	Full    bool // more than endpoints is sent
}

// Round is the changes that are pushed together, in their order.
type Round struct {
	At      time.Duration
	Changes []Change
}

// Rounds are the rounds in which the changes are pushed. The time that is left to wait is looked
// at when it has passed, as istiod does: a round may be later than After after its last change.
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

// Pod is a pod with a proxy. Times are from the begin of the rollout.
type Pod struct {
	Service   int
	Address   time.Duration // when it has an address: it becomes an endpoint that is not ready
	Connected time.Duration // when its proxy has a stream
	Ready     time.Duration // when it becomes a ready endpoint
}

// Rollout is what is rolled out.
type Rollout struct {
	Pods []Pod
	// Holders are, for each service, the services whose proxies hold it; nil = all proxies hold all
	// services.
	Holders [][]int
}

// types is how many types of resources a proxy of sidecars holds: CDS, EDS, LDS, RDS.
const types = 4

// Counts are what a rollout takes.
type Counts struct {
	Rounds     int // in which changes were pushed
	FullRounds int // of these, in which more than endpoints was pushed
	Proxies    int // pushed to, added over the rounds
	Responses  int // sent to all proxies, in rounds and when they connect
}

// everyone is the group of all proxies, where all hold all services.
const everyone = -1

// Count counts what the control plane does for the rollout.
func (r Rollout) Count(d Debounce) Counts {
	connected := map[int][]time.Duration{} // by group of proxies that hold the same: those of a service, or everyone
	for _, p := range r.Pods {
		group := everyone
		if r.Holders != nil {
			group = p.Service
		}
		connected[group] = append(connected[group], p.Connected)
	}
	for _, times := range connected {
		slices.Sort(times)
	}
	rounds := d.Rounds(r.changes())
	c := Counts{Rounds: len(rounds), Responses: types * len(r.Pods)}
	for _, round := range rounds {
		full := map[int]bool{} // by group that is sent something
		for _, change := range round.Changes {
			for _, group := range r.holders(change.Service) {
				full[group] = full[group] || change.Full
			}
		}
		if slices.ContainsFunc(round.Changes, func(c Change) bool { return c.Full }) {
			c.FullRounds++
		}
		for group, full := range full {
			times := connected[group]
			proxies := sort.Search(len(times), func(i int) bool { return times[i] > round.At })
			c.Proxies += proxies
			if full {
				proxies *= types
			}
			c.Responses += proxies
		}
	}
	return c
}

// holders are the groups of proxies that hold a service.
func (r Rollout) holders(service int) []int {
	if r.Holders == nil {
		return []int{everyone}
	}
	return r.Holders[service]
}

// changes are the changes of endpoints that the pods are.
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
