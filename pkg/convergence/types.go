// Package convergence compares what sidecars are expected to hold with what they have
// acknowledged. It answers when one sidecar's configuration is complete and when all
// sidecars have converged.
//
// It is pure: it starts no goroutine, reads no clock and knows no control plane. Its
// callers provide events with their times: the endpoints that the API server lists
// (internal/observe), the resources that a sidecar of each workload must hold (the
// adapter under internal/controlplane), and the responses, acknowledgements and
// certificates of each sidecar (pkg/xdsprobe).
package convergence

import (
	"cmp"
	"fmt"
	"net/netip"
	"time"
)

// Key names one resource of a sidecar.
type Key struct {
	Type Type
	Name string
}

// String returns the key as "EDS outbound|80||a.b".
func (k Key) String() string { return k.Type.String() + " " + k.Name }

// Compare orders keys by type and name.
func (k Key) Compare(o Key) int { return cmp.Or(k.Type.Compare(o.Type), cmp.Compare(k.Name, o.Name)) }

// AskedFor returns a key that names no resource: a sidecar holds it once everything that
// it requested was answered and acknowledged. It is used where nothing else is known of
// what a sidecar must hold.
func AskedFor() Key { return Key{Name: "everything that it asked for"} }

// Health is an endpoint's state as the control plane passes it on. Its zero
// value is Healthy.
type Health uint8

// The states in which an endpoint can be listed; one that is not listed is
// absent.
const (
	Healthy Health = iota
	Unhealthy
	Draining
)

// String returns the state in lower case.
func (h Health) String() string {
	switch h {
	case Healthy:
		return "healthy"
	case Unhealthy:
		return "unhealthy"
	case Draining:
		return "draining"
	default:
		return fmt.Sprintf("Health(%d)", uint8(h))
	}
}

// Endpoints are the endpoints of one port of one service. nil and empty mean
// the same: none.
type Endpoints map[netip.AddrPort]Health

// Digest identifies a content, in every process that computes it in the same way.
type Digest uint64

// Content is the part of a resource that convergence depends on. A Content must not
// change after a Tracker has seen it. Equal resources should share one *Content,
// which saves memory.
type Content struct {
	// Digest identifies the content: a Tracker treats contents with the same digest as
	// equal. 0 means that this *Content equals no other.
	Digest Digest

	Endpoints Endpoints // those of a load assignment; nil for other types
	Members   []string  // sorted; the virtual hosts' domains of a route configuration
	Markers   []string  // of changes that are followed, as found in the resource's bytes

	// Detail is anything else that the reader of a resource knows about it, for the proxy
	// that holds it. A Tracker does not compare it, and it does not leave its process.
	Detail any
}

// same reports whether two contents are one.
func (c *Content) same(o *Content) bool {
	return c == o || c.Digest != 0 && c.Digest == o.Digest
}

// Want is one resource that a sidecar must come to hold.
type Want struct {
	Key
	// Members must all be members of the content held.
	Members []string
	// Service is the service port, "namespace/name:port", whose endpoints the content
	// must list. "" means that endpoints are not compared.
	Service string
	// Since is the service port that must have had an endpoint before a control plane can
	// send the resource: a sidecar needs the resource to be complete only if that port
	// had an endpoint at the sidecar's first request. To converge it always needs it. ""
	// means that it is always needed.
	Since string
}

// WantOf returns a Want for a resource that must be present and have these members.
func WantOf(t Type, name string, members ...string) Want {
	return Want{Key: Key{Type: t, Name: name}, Members: members}
}

// Keys returns the keys of the wanted resources, in their order.
func Keys(wants []Want) []Key {
	var keys []Key
	for _, w := range wants {
		keys = append(keys, w.Key)
	}
	return keys
}

// Resource is one resource as a sidecar received it.
type Resource struct {
	Key
	Content *Content // nil means a resource of which only the presence matters
}

// Update is one response that a sidecar received and acknowledged. A rejected response is
// no Update: the sidecar keeps what it held.
type Update struct {
	ReceivedAt time.Time  // when its bytes had been read
	AckedAt    time.Time  // when its acknowledgement had been sent
	Set        []Resource // resources added or changed, held from now on
	Removed    []Key      // resources no longer held; none that is set too
}
