package server

import (
	"fmt"
	"net/netip"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/stream/v3"
	"google.golang.org/protobuf/proto"

	"scaler.mesh/scaler/pkg/convergence"
)

// BenchmarkPush is one changed load assignment for streams that are subscribed
// to all of them: what a cache spends until the response is in each stream's
// channel, and what it spends to take in each acknowledgement. What encoding
// and sending cost is the same for all caches, and not in it. One operation is
// one push to one stream.
func BenchmarkPush(b *testing.B) {
	for _, size := range []struct{ streams, services int }{{1600, 160}, {10000, 1000}} {
		ours := newCache(newFaults(Faults{}), newCounters())
		theirs := cachev3.NewLinearCache(typeURLs[convergence.EDS])
		for _, c := range []benchCache{{"ours", ours, func(name string, m proto.Message) error {
			r, err := newResource(convergence.EDS, m)
			if err == nil {
				ours.update(set{name: r}, nil)
			}
			return err
		}}, {"linear", theirs, func(name string, m proto.Message) error {
			return theirs.UpdateResources(map[string]types.Resource{name: m}, nil)
		}}} {
			b.Run(fmt.Sprintf("%s/streams=%d/services=%d", c.name, size.streams, size.services), func(b *testing.B) {
				benchmarkPush(b, c, size.streams, size.services)
			})
		}
	}
}

type benchCache struct {
	name string
	cachev3.Cache
	change func(name string, m proto.Message) error
}

// benchStream has the state that go-control-plane's server keeps of a stream.
type benchStream struct {
	request      *cachev3.DeltaRequest
	subscription stream.Subscription
	responses    chan cachev3.DeltaResponse
	cancel       func()
}

// turn takes a response, as the server does, and acknowledges it.
func (s *benchStream) turn(b *testing.B, c benchCache) {
	response := <-s.responses
	if _, err := response.GetDeltaDiscoveryResponse(); err != nil {
		b.Fatal(err)
	}
	s.subscription.SetReturnedResources(response.GetReturnedResources())
	if s.cancel != nil {
		s.cancel()
	}
	s.open(b, c, "1")
}

func (s *benchStream) open(b *testing.B, c benchCache, nonce string) {
	var err error
	s.request.ResponseNonce = nonce
	if s.cancel, err = c.CreateDeltaWatch(s.request, s.subscription, s.responses); err != nil {
		b.Fatal(err)
	}
}

func benchmarkPush(b *testing.B, c benchCache, streams, services int) {
	names := make([]string, services)
	for i := range names {
		names[i] = fmt.Sprintf("mesh-%d/svc-%d:http", i%20, i)
		if err := c.change(names[i], assignment(names[i], nil)); err != nil {
			b.Fatal(err)
		}
	}
	all := make([]*benchStream, streams)
	for i := range all {
		all[i] = &benchStream{
			request:      &cachev3.DeltaRequest{TypeUrl: typeURLs[convergence.EDS], ResourceNamesSubscribe: names, Node: &corev3.Node{Id: fmt.Sprint(i), Cluster: "mesh-0/svc-0"}},
			subscription: stream.NewDeltaSubscription(names, nil, nil, true),
			responses:    make(chan cachev3.DeltaResponse, 2*types.UnknownType),
		}
		all[i].open(b, c, "")
		all[i].turn(b, c)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for n := 0; n < b.N; n += streams {
		name := names[n/streams%services]
		address := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(n / streams >> 8), byte(n / streams)}), 8080)
		if err := c.change(name, assignment(name, []Endpoint{{Addr: address}})); err != nil {
			b.Fatal(err)
		}
		for _, s := range all {
			s.turn(b, c)
		}
	}
}
