package fidelity

import (
	"maps"
	"slices"
	"strings"

	"scaler.mesh/scaler/pkg/xdsprobe/wiretap"
)

// said is what both sidecars said, and were told, over the same while.
type said struct{ requests, responses [2][]string }

// add takes a whole stream of one side.
func (s *said) add(side int, stream wiretap.Stream, versions map[wiretap.Key]string) {
	s.requests[side], s.responses[side] = textsOf(stream.Requests(versions)), textsOf(stream.Responses())
}

// after is past and what came after it, together.
func (s *said) after(past said) (all said) {
	for side := range s.requests {
		all.requests[side] = slices.Concat(past.requests[side], s.requests[side])
		all.responses[side] = slices.Concat(past.responses[side], s.responses[side])
	}
	return all
}

// silent reports whether nothing was said to either, or by either.
func (s *said) silent() bool {
	for side := range s.requests {
		if len(s.requests[side])+len(s.responses[side]) > 0 {
			return false
		}
	}
	return true
}

// late reports whether one has said all that the other has, and the other more:
// the rest may be to come.
func (s *said) late() bool {
	a, b := s.requests[realSide], s.requests[simulated]
	n := min(len(a), len(b))
	return len(a) != len(b) && slices.Equal(a[:n], b[:n])
}

const (
	drainedApart = "what a listener had named is given up when it has drained, which falls before or after what else happens at that moment"
	toldApart    = "istiod's answers came in another order or in other parts: it takes pushes and requests as they come"
)

// excuse says why two sequences of requests differ though both sidecars behave
// the same; "" if they do not.
func (s *said) excuse() string {
	a, b := s.requests[realSide], s.requests[simulated]
	same := slices.Equal(sorted(a), sorted(b))
	if same && slices.Equal(slices.DeleteFunc(slices.Clone(a), givesUp), slices.DeleteFunc(slices.Clone(b), givesUp)) {
		return drainedApart
	}
	if !slices.Equal(s.responses[realSide], s.responses[simulated]) && slices.Equal(subscriptions(a), subscriptions(b)) && s.toldAlike() && s.answered() {
		return toldApart
	}
	return ""
}

// toldAlike reports whether both were told of the same resources in all, if in
// another order, in other parts, or more than once.
func (s *said) toldAlike() bool {
	var told [2]map[string]bool
	for side, responses := range s.responses {
		told[side] = map[string]bool{}
		for _, r := range responses {
			words := strings.Fields(r)
			for _, name := range words[1:] {
				told[side][words[0]+" "+name] = true
			}
		}
	}
	return maps.Equal(told[realSide], told[simulated])
}

// answered reports whether each has acknowledged or refused as many responses as it
// had, and both have refused the same: it is no excuse for silence, or for a
// refusal, that the other was told other things.
func (s *said) answered() bool {
	var refused [2][]string
	for side, requests := range s.requests {
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
		if answers != len(s.responses[side]) {
			return false
		}
	}
	return slices.Equal(sorted(refused[realSide]), sorted(refused[simulated]))
}

// givesUp reports whether a request does nothing but give up names that
// listeners named.
func givesUp(request string) bool {
	words := strings.Fields(request)
	return (words[0] == "RDS" || words[0] == "ECDS") && len(words) > 1 &&
		!slices.ContainsFunc(words[1:], func(w string) bool { return !strings.HasPrefix(w, "-") })
}

// subscriptions are the requests that acknowledge nothing, sorted.
func subscriptions(requests []string) []string {
	return sorted(slices.DeleteFunc(slices.Clone(requests), func(r string) bool {
		return strings.Contains(r, " ack") || strings.Contains(r, " nack")
	}))
}

func sorted(words []string) []string { return slices.Sorted(slices.Values(words)) }

func textsOf(all []wiretap.Asked) []string {
	words := make([]string, 0, len(all))
	for _, a := range all {
		words = append(words, a.Text)
	}
	return words
}
