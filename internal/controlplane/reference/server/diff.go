package server

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

// diff has the resources of a type that a stream lacks.
type diff struct {
	set     []*resource // new or changed, sorted by name
	removed []string    // known to the stream and gone, sorted
	absent  []string    // asked for by the stream and never there, sorted
	all     []*resource // all there is; only where a response must hold it
	known   map[string]string
}

func (d diff) empty() bool { return len(d.set)+len(d.removed)+len(d.absent) == 0 }

// news reports whether the diff holds something that the stream has asked for
// by name since the response before: an answer, not an update.
func (d diff) news(w *watch) bool {
	if w.sub.IsWildcard() {
		return false
	}
	return len(d.absent) > 0 || slices.ContainsFunc(d.set, func(r *resource) bool {
		_, known := w.known[r.name]
		return !known
	})
}

// lacks compares what a watch's stream knows with what it should: everything,
// or only these names if there are any. The caller holds mu.
func (c *cache) lacks(w *watch, names []string) (d diff) {
	layers := c.layers(w.kind, w.node.GetCluster())
	wildcard := w.sub.IsWildcard()
	subscribed := w.sub.SubscribedResources()
	compare := func(name string, r *resource) {
		version, known := w.known[name]
		switch {
		case r != nil && (!known || version != r.version):
			d.set = append(d.set, r)
		case r == nil && known && version != "" && (w.absences || w.whole): // else there is no word for it
			d.removed = append(d.removed, name)
		case r == nil && !known && w.absences:
			d.absent = append(d.absent, name)
		}
	}
	switch {
	case names != nil:
		for _, name := range names {
			if _, ok := subscribed[name]; ok || wildcard {
				compare(name, layers.get(name))
			}
		}
	case wildcard:
		for _, s := range layers {
			for name, r := range s {
				compare(name, r)
			}
		}
		for name := range w.known {
			if layers.get(name) == nil {
				compare(name, nil)
			}
		}
	default:
		for name := range subscribed {
			compare(name, layers.get(name))
		}
	}
	if w.whole && !d.empty() {
		d.all = everything(layers, wildcard, subscribed)
	}
	slices.SortFunc(d.set, byName)
	slices.Sort(d.removed)
	slices.Sort(d.absent)
	return d
}

// everything returns all that a stream is subscribed to.
func everything(layers layers, wildcard bool, subscribed map[string]struct{}) (all []*resource) {
	for _, s := range layers {
		for name, r := range s {
			if _, ok := subscribed[name]; ok || wildcard {
				all = append(all, r)
			}
		}
	}
	slices.SortFunc(all, byName)
	return all
}

func byName(a, b *resource) int { return strings.Compare(a.name, b.name) }

// versions returns the versions that the stream knows after the diff. An empty version
// reports that it knows of an absence.
func (d diff) versions() map[string]string {
	known := maps.Clone(d.known)
	if known == nil {
		known = map[string]string{}
	}
	for _, r := range d.set {
		known[r.name] = r.version
	}
	for _, name := range d.removed {
		delete(known, name)
	}
	for _, name := range d.absent {
		known[name] = ""
	}
	return known
}

// delta returns the diff as a response of the delta variant.
func (d diff) delta(request *cachev3.DeltaRequest, revision uint64) cachev3.DeltaResponse {
	resources := make([]*discoveryv3.Resource, len(d.set))
	for i, r := range d.set {
		resources[i] = r.wrapped
	}
	return &cachev3.DeltaPassthroughResponse{
		DeltaRequest:   request,
		NextVersionMap: d.versions(),
		DeltaDiscoveryResponse: &discoveryv3.DeltaDiscoveryResponse{
			TypeUrl:           request.GetTypeUrl(),
			SystemVersionInfo: strconv.FormatUint(revision, 10),
			Resources:         resources,
			RemovedResources:  append(d.removed, d.absent...),
		},
	}
}

// sotw returns the diff as a response of the state of the world: all there is where
// the protocol demands it, else what is new.
func (d diff) sotw(request *cachev3.Request, revision uint64) cachev3.Response {
	set := d.set
	if d.all != nil {
		set = d.all
	}
	resources := make([]*anypb.Any, len(set))
	for i, r := range set {
		resources[i] = r.plain
	}
	return &cachev3.PassthroughResponse{
		Request:           request,
		ReturnedResources: d.versions(),
		DiscoveryResponse: &discoveryv3.DiscoveryResponse{
			TypeUrl:     request.GetTypeUrl(),
			VersionInfo: strconv.FormatUint(revision, 10),
			Resources:   resources,
		},
	}
}
