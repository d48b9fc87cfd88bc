package server

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"scaler.mesh/scaler/pkg/scenario"
)

// Faults are faults that the control plane makes on purpose, so that the expected
// figures are known. They affect pushes alone: updates of what a stream
// has had before. Answers to a stream's own requests (the first response
// of a type, resources that it requests by name, what it missed while it was
// disconnected) are sent at once and always. So a sidecar's first
// configuration is never broken.
type Faults struct {
	// Delay is the time for which each push is held back. A stream's updates of one type
	// that come meanwhile are sent, held back as long again, after it was
	// acknowledged.
	Delay time.Duration `json:"delay"`
	// Drop is the share of pushes, 0 to 1, that is not sent but counts as sent:
	// a sidecar gets the resource again only when it changes again, or when the sidecar
	// reconnects.
	Drop float64 `json:"drop"`
	// Seed decides which pushes are dropped: the same seed drops, of the pushes
	// to a node id, counted since the server started, the same ones.
	Seed uint64 `json:"seed"`
}

// Validate states what cannot be.
func (f Faults) Validate() error {
	if f.Delay < 0 {
		return scenario.Refuse("delay", f.Delay, "0 or more")
	}
	if math.IsNaN(f.Drop) || f.Drop < 0 || f.Drop > 1 {
		return scenario.Refuse("drop", f.Drop, "a share from 0 to 1, or 0%% to 100%%")
	}
	return nil
}

// ParseShare parses a share of one: "5%" or "0.05".
func ParseShare(s string) (float64, error) {
	number, percent := strings.CutSuffix(s, "%")
	share, err := strconv.ParseFloat(number, 64)
	if percent {
		share /= 100
	}
	if err != nil || math.IsNaN(share) || share < 0 || share > 1 {
		return 0, fmt.Errorf("parsing share %q: want 0%% to 100%%, or 0 to 1", s)
	}
	return share, nil
}

// faults decides about pushes. Its methods are called under the cache's lock.
type faults struct {
	set atomic.Pointer[Faults]

	pushes map[string]uint64                // by node id, while any are dropped
	lost   map[*corev3.Node]map[string]loss // by stream: what it was not sent
}

// loss are versions, "" for removals, that a stream did not get and is taken to
// have, by type and name.
type loss map[string]string

func newFaults(f Faults) *faults {
	faults := &faults{pushes: map[string]uint64{}, lost: map[*corev3.Node]map[string]loss{}}
	faults.set.Store(&f)
	return faults
}

func (f *faults) delay() time.Duration { return f.set.Load().Delay }

// drops decides about the next push to a node.
func (f *faults) drops(node *corev3.Node) bool {
	set := f.set.Load()
	if set.Drop == 0 {
		return false
	}
	f.pushes[node.GetId()]++
	h := fnv.New64a()
	_, _ = h.Write([]byte(node.GetId())) // never fails
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], f.pushes[node.GetId()])
	_, _ = h.Write(n[:])
	return rand.New(rand.NewPCG(set.Seed, h.Sum64())).Float64() < set.Drop
}

// known returns the versions that a new watch's stream has or is taken to have.
func (f *faults) known(w *watch) map[string]string {
	known := w.sub.ReturnedResources()
	lost := f.lost[w.node][typeURLs[w.kind]]
	if len(lost) == 0 {
		return known
	}
	known = maps.Clone(known)
	for name, version := range lost {
		if version == "" {
			delete(known, name)
		} else {
			known[name] = version
		}
	}
	return known
}

// forget takes a dropped push for sent, and returns what the stream is taken to
// know now.
func (f *faults) forget(w *watch, d diff) map[string]string {
	lost := f.of(w)
	for _, r := range d.set {
		lost[r.name] = r.version
	}
	for _, name := range d.removed {
		lost[name] = ""
	}
	d.known = w.known
	return d.versions()
}

func (f *faults) of(w *watch) loss {
	if f.lost[w.node] == nil {
		f.lost[w.node] = map[string]loss{}
	}
	url := typeURLs[w.kind]
	if f.lost[w.node][url] == nil {
		f.lost[w.node][url] = loss{}
	}
	return f.lost[w.node][url]
}

// sent strikes off what a stream gets after all: a later version of it.
func (f *faults) sent(w *watch, d diff) {
	lost := f.lost[w.node][typeURLs[w.kind]]
	for _, r := range d.set {
		delete(lost, r.name)
	}
	for _, name := range d.removed {
		delete(lost, name)
	}
}

// closed forgets a stream.
func (f *faults) closed(node *corev3.Node) { delete(f.lost, node) }
