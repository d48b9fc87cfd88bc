// Package changes makes changes to a mesh at a rate, in an open loop, and follows each
// to every sidecar that it concerns: the change phase of a run. Package probes makes
// them one at a time.
package changes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"scaler.mesh/scaler/pkg/record"
)

// Kind is a kind of change.
type Kind string

// The kinds. What each writes is stated where its objects are made.
const (
	Endpoint Kind = "endpoint" // an endpoint of a service takes the place of another one
	Route    Kind = "route"    // the route to a service: concerns those who may call it
	Policy   Kind = "policy"   // who may call a service: concerns its own sidecars
	Metadata Kind = "metadata" // an annotation of a Service: no sidecar needs to receive anything
	MeshWide Kind = "meshwide" // an object of the whole mesh: concerns every sidecar
	// RouteMetadata is an annotation of the object that Route changes, which stays as it is
	// otherwise: no sidecar needs to receive anything.
	RouteMetadata Kind = "route-metadata"
)

// Kinds are all kinds, in the order in which they are shown.
var Kinds = []Kind{Endpoint, Route, Policy, Metadata, RouteMetadata, MeshWide}

// ConcernsNobody reports whether no sidecar needs to receive a change of the kind: what is sent
// all the same is its cost.
func (k Kind) ConcernsNobody() bool { return k == Metadata || k == RouteMetadata }

// Bounds of a rate, and of the changes of a phase.
const (
	minRate    = 0.01
	maxRate    = 1000
	maxChanges = 100_000
)

// Load is how many changes of which kind are made each second.
type Load struct {
	PerSecond float64 // 0 = none
	Kind      Kind
}

// Parse parses the value of --change: RATE or RATE:KIND, as in 5/s:route. Without a kind
// it is endpoint. Its error names the flag, the value and what is wanted.
func Parse(s string) (Load, error) {
	text, kind, named := strings.Cut(s, ":")
	if !named {
		kind = string(Endpoint)
	}
	number, isRate := strings.CutSuffix(text, "/s")
	rate, err := strconv.ParseFloat(number, 64)
	switch {
	case !isRate || err != nil:
		return Load{}, fmt.Errorf("parsing --change %q: want changes a second and, if not endpoint, their kind, as in 5/s or 5/s:route", s)
	case !(rate >= minRate && rate <= maxRate): // not a number is neither
		return Load{}, fmt.Errorf("parsing --change %q: want from %v/s to %d/s", s, minRate, maxRate)
	case !slices.Contains(Kinds, Kind(kind)):
		return Load{}, fmt.Errorf("parsing --change %q: want one of the kinds endpoint, route, policy, metadata, route-metadata or meshwide", s)
	}
	return Load{rate, Kind(kind)}, nil
}

// String returns the load as Parse reads it, "" for none.
func (l Load) String() string {
	if l.PerSecond == 0 {
		return ""
	}
	return strconv.FormatFloat(l.PerSecond, 'g', -1, 64) + "/s:" + string(l.Kind)
}

// Due is when the n-th change, from 0, is to be made, since the start of the phase. The
// schedule does not wait for what became of the changes before.
func (l Load) Due(n int) time.Duration {
	return time.Duration(float64(n) / l.PerSecond * float64(time.Second))
}

// Count is how many changes are due within a phase of this length.
func (l Load) Count(length time.Duration) int {
	n := int(length.Seconds() * l.PerSecond)
	for l.Due(n) < length {
		n++
	}
	for n > 0 && l.Due(n-1) >= length {
		n--
	}
	return n
}

// Validate checks the length of a phase with this load, as a duration that --change-duration
// gave. There is one change at least.
func (l Load) Validate(length time.Duration) error {
	if length < time.Second || length > 24*time.Hour {
		return fmt.Errorf("parsing --change-duration %s: want a duration from 1s to 24h", length)
	}
	if l.PerSecond*length.Seconds() > maxChanges {
		return fmt.Errorf("parsing --change-duration %s: want %d changes at most, %s with --change %s", length, maxChanges,
			time.Duration(maxChanges/l.PerSecond*float64(time.Second)).Truncate(time.Second), l)
	}
	return nil
}

// Needs reports whether a phase of this length is long enough for a 99th percentile.
func (l Load) Needs(length time.Duration) bool { return l.Count(length) >= record.ChangesForP99 }
