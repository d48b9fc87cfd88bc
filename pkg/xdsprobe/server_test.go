package xdsprobe

import (
	"context"
	"maps"
	"net"
	"strconv"
	"sync/atomic"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/envoyproxy/go-control-plane/pkg/server/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
)

// plane is go-control-plane's server over a snapshot cache.
type plane struct {
	cache   cache.SnapshotCache
	address string
	version atomic.Int64
	cut     func() // closes all connections
}

// mesh has the resources that one node is served, by type.
type mesh map[resource.Type][]types.Resource

// startPlane starts a server that answers in the order of ADS, and only requests that
// name all that it has.
func startPlane(options ...grpc.ServerOption) *plane {
	return startPlaneOf(cache.NewSnapshotCache(true, cache.IDHash{}, nil), options...)
}

func startPlaneOf(snapshots cache.SnapshotCache, options ...grpc.ServerOption) *plane {
	p := &plane{cache: snapshots}
	ctx, cancel := context.WithCancel(context.Background())
	service := server.NewServer(ctx, forgetting{p.cache}, nil)
	listener, cut := cuttable()
	p.address, p.cut = listener.Addr().String(), cut
	g := grpc.NewServer(options...)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, service)
	done := make(chan error, 1)
	go func() { done <- g.Serve(listener) }()
	DeferCleanup(func() {
		cancel()
		g.Stop()
		Eventually(done).Should(Receive())
	})
	return p
}

// forgetting is a cache that forgets what was sent of a name that is not subscribed to.
//
// go-control-plane 0.14 forgets it when a name is unsubscribed. If a response with that
// resource is already queued then, it is recorded as sent afterwards, and a later
// subscription to the name gets no answer, against the protocol: "How the client specifies
// what resources to return" wants the resource to be sent again.
type forgetting struct{ cache.SnapshotCache }

func (f forgetting) CreateDeltaWatch(r *cache.DeltaRequest, s cache.Subscription, to chan cache.DeltaResponse) (func(), error) {
	if !s.IsWildcard() {
		maps.DeleteFunc(s.ReturnedResources(), func(name, _ string) bool {
			_, subscribed := s.SubscribedResources()[name]
			return !subscribed
		})
	}
	return f.SnapshotCache.CreateDeltaWatch(r, s, to)
}

// serve makes m what a node is served from now on.
func (p *plane) serve(node string, m mesh) {
	version := strconv.FormatInt(p.version.Add(1), 10)
	snapshot, err := cache.NewSnapshot(version, m)
	Expect(err).NotTo(HaveOccurred())
	Expect(p.cache.SetSnapshot(context.Background(), node, snapshot)).To(Succeed())
}

// cuttable listens on a free port. cut closes every connection made so far.
func cuttable() (net.Listener, func()) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	l := &cutListener{Listener: inner, conns: make(chan net.Conn, 1<<16)}
	return l, func() {
		for range len(l.conns) { // and not those that clients make when theirs is closed
			_ = (<-l.conns).Close()
		}
	}
}

type cutListener struct {
	net.Listener
	conns chan net.Conn
}

func (l *cutListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.conns <- c
	}
	return c, err
}
