package server

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"scaler.mesh/scaler/pkg/convergence"
)

var typeURLs = map[convergence.Type]string{
	convergence.CDS: resourcev3.ClusterType,
	convergence.EDS: resourcev3.EndpointType,
	convergence.LDS: resourcev3.ListenerType,
	convergence.RDS: resourcev3.RouteType,
}

// resource is one resource, encoded; it does not change. Its version follows
// from its content alone, so that it survives a restart.
type resource struct {
	name, version string
	plain         *anypb.Any            // as the state of the world has it
	wrapped       *discoveryv3.Resource // as the delta variant has it
}

// newResource encodes m.
func newResource(t convergence.Type, m proto.Message) (*resource, error) {
	name := cachev3.GetResourceName(m)
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %s: %w", t, name, err)
	}
	digest := sha256.Sum256(value)
	r := &resource{name: name, version: hex.EncodeToString(digest[:8])}
	r.plain = &anypb.Any{TypeUrl: typeURLs[t], Value: value}
	r.wrapped = &discoveryv3.Resource{Name: name, Version: r.version, Resource: r.plain}
	return r, nil
}

// set is resources by name.
type set map[string]*resource

// view states which resources of a type each workload's sidecars see.
type view struct {
	shared set            // by all
	own    map[string]set // by one workload alone, by its name
}

func (v view) of(workload string) layers { return layers{v.shared, v.own[workload]} }

// layers are sets with no name in common.
type layers []set

func (l layers) get(name string) *resource {
	for _, s := range l {
		if r := s[name]; r != nil {
			return r
		}
	}
	return nil
}

// builder encodes resources and keeps the first error.
type builder struct{ err error }

func (b *builder) add(s set, t convergence.Type, m proto.Message) {
	r, err := newResource(t, m)
	if err != nil {
		if b.err == nil {
			b.err = err
		}
		return
	}
	s[r.name] = r
}
