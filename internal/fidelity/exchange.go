package fidelity

import (
	"maps"
	"slices"
	"strings"

	"scaler.mesh/scaler/internal/fidelity/wiretap"
)

// exchange holds what both sidecars sent and received in the same period.
type exchange struct{ requests, responses [2][]string }

// add takes a whole stream of one side.
func (e *exchange) add(side int, stream wiretap.Stream, versions map[wiretap.Key]string) {
	e.requests[side], e.responses[side] = stream.Requests(versions), stream.Responses()
}

// after returns past followed by e.
func (e *exchange) after(past exchange) (all exchange) {
	for side := range e.requests {
		all.requests[side] = slices.Concat(past.requests[side], e.requests[side])
		all.responses[side] = slices.Concat(past.responses[side], e.responses[side])
	}
	return all
}

// silent reports whether neither side sent or received anything.
func (e *exchange) silent() bool {
	for side := range e.requests {
		if len(e.requests[side])+len(e.responses[side]) > 0 {
			return false
		}
	}
	return true
}

// incomplete reports whether one side has sent everything that the other has, and the
// other more: the rest may follow.
func (e *exchange) incomplete() bool {
	a, b := e.requests[realSide], e.requests[simulated]
	n := min(len(a), len(b))
	return len(a) != len(b) && slices.Equal(a[:n], b[:n])
}

const (
	excuseDraining  = "what a listener had named is given up when it has drained, which falls before or after what else happens at that moment"
	excuseReordered = "istiod's answers came in another order or in other parts: it takes pushes and requests as they come"
)

// excuse states why two sequences of requests may differ although both sidecars behave
// the same; "" if there is no such reason.
func (e *exchange) excuse() string {
	a, b := e.requests[realSide], e.requests[simulated]
	same := slices.Equal(sorted(a), sorted(b))
	if same && slices.Equal(slices.DeleteFunc(slices.Clone(a), onlyUnsubscribes), slices.DeleteFunc(slices.Clone(b), onlyUnsubscribes)) {
		return excuseDraining
	}
	if !slices.Equal(e.responses[realSide], e.responses[simulated]) && slices.Equal(subscriptions(a), subscriptions(b)) && e.sameResources() && e.allAnswered() {
		return excuseReordered
	}
	return ""
}

// sameResources reports whether both received the same resources altogether, possibly in
// another order, in other parts, or more than once.
func (e *exchange) sameResources() bool {
	var received [2]map[string]bool
	for side, responses := range e.responses {
		received[side] = map[string]bool{}
		for _, r := range responses {
			words := strings.Fields(r)
			for _, name := range words[1:] {
				received[side][words[0]+" "+name] = true
			}
		}
	}
	return maps.Equal(received[realSide], received[simulated])
}

// allAnswered reports whether each side has acknowledged or rejected every response that
// it received, and both have rejected the same: receiving other things does not excuse a
// missing answer, or a rejection.
func (e *exchange) allAnswered() bool {
	var refused [2][]string
	for side, requests := range e.requests {
		answers := 0
		for _, r := range requests {
			nack := strings.Contains(r, " nack")
			if nack {
				refused[side] = append(refused[side], r)
			}
			if nack || strings.Contains(r, " ack") {
				answers++
			}
		}
		if answers != len(e.responses[side]) {
			return false
		}
	}
	return slices.Equal(sorted(refused[realSide]), sorted(refused[simulated]))
}

// onlyUnsubscribes reports whether a request only unsubscribes from names that listeners
// named.
func onlyUnsubscribes(request string) bool {
	words := strings.Fields(request)
	return (words[0] == "RDS" || words[0] == "ECDS") && len(words) > 1 &&
		!slices.ContainsFunc(words[1:], func(w string) bool { return !strings.HasPrefix(w, "-") })
}

// subscriptions returns the requests that acknowledge nothing, sorted.
func subscriptions(requests []string) []string {
	return sorted(slices.DeleteFunc(slices.Clone(requests), func(r string) bool {
		return strings.Contains(r, " ack") || strings.Contains(r, " nack")
	}))
}

func sorted(words []string) []string { return slices.Sorted(slices.Values(words)) }
