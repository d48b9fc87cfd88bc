package testmesh

import (
	"context"
	"fmt"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// discovery gives each sidecar its configuration: go-control-plane's server and cache,
// with a snapshot for each sidecar that is connected.
type discovery struct {
	life      context.Context // of the server; its values are not used
	authority *authority
	count     *counters
	cache     cachev3.SnapshotCache

	mu       sync.Mutex
	mesh     *mesh
	streams  map[int64]*sidecar
	sidecars map[string]*sidecar // by workload.id
}

// sidecar is one that is connected.
type sidecar struct {
	workload    workload
	streams     int
	certificate *tlsv3.Secret // nil = it was not requested yet
}

func newDiscovery(ctx context.Context, a *authority) *discovery {
	return &discovery{
		life: context.WithoutCancel(ctx), authority: a, count: newCounters(),
		// Without ADS mode, which answers no request that leaves out a resource of the
		// snapshot: what listeners name is requested after what clusters name.
		cache: cachev3.NewSnapshotCache(false, cachev3.IDHash{}, nil),
		mesh:  &mesh{}, streams: map[int64]*sidecar{}, sidecars: map[string]*sidecar{},
	}
}

// server serves until ctx ends.
func (d *discovery) server(ctx context.Context) discoveryv3.AggregatedDiscoveryServiceServer {
	return sotwOnly{server: serverv3.NewServer(ctx, d.cache, serverv3.CallbackFuncs{
		StreamOpenFunc:    d.opened,
		StreamClosedFunc:  d.closed,
		StreamRequestFunc: d.requested,
		StreamResponseFunc: func(_ context.Context, _ int64, _ *discoveryv3.DiscoveryRequest, r *discoveryv3.DiscoveryResponse) {
			d.count.responded(r.GetTypeUrl())
		},
	})}
}

// sotwOnly serves the state of the world and nothing else.
type sotwOnly struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	server serverv3.Server
}

// StreamAggregatedResources implements ADS.
func (s sotwOnly) StreamAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return s.server.StreamAggregatedResources(stream)
}

// opened admits a stream by the certificate that its client has shown.
func (d *discovery) opened(ctx context.Context, id int64, _ string) error {
	client, _ := peer.FromContext(ctx)
	secured, ok := client.AuthInfo.(credentials.TLSInfo)
	if !ok || len(secured.State.VerifiedChains) == 0 {
		return status.Error(codes.Unauthenticated, "want a client certificate")
	}
	w, err := workloadOf(secured.State.VerifiedChains[0][0])
	if err != nil {
		return status.Error(codes.Unauthenticated, err.Error())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.sidecars[w.id()]
	if s == nil {
		s = &sidecar{workload: w}
		d.sidecars[w.id()] = s
	}
	s.streams++
	d.streams[id] = s
	d.count.streams.Add(1)
	return d.update(s)
}

// closed forgets a sidecar with its last stream.
func (d *discovery) closed(id int64, _ *corev3.Node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.streams[id]
	if s == nil {
		return // it was not admitted
	}
	delete(d.streams, id)
	d.count.streams.Add(-1)
	if s.streams--; s.streams == 0 {
		delete(d.sidecars, s.workload.id())
		d.cache.ClearSnapshot(s.workload.id())
	}
}

// requested takes a request before it is answered: with the first one for secrets, the
// sidecar's certificate is issued.
func (d *discovery) requested(id int64, r *discoveryv3.DiscoveryRequest) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.streams[id]
	if r.GetNode().GetId() != s.workload.id() {
		return status.Errorf(codes.PermissionDenied, "the certificate is of %s, the node is %s", s.workload.id(), r.GetNode().GetId())
	}
	if r.GetErrorDetail() != nil {
		d.count.rejects.Add(1)
	}
	if r.GetTypeUrl() != resourcev3.SecretType || s.certificate != nil {
		return nil
	}
	d.count.requests.Add(1)
	chain, key, err := d.authority.service(s.workload)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	s.certificate = certificateSecret(s.workload, chain, key)
	d.count.certificates.Add(1)
	return d.update(s)
}

// set changes the mesh for all sidecars.
func (d *discovery) set(m *mesh) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mesh = m
	for _, s := range d.sidecars {
		if err := d.update(s); err != nil {
			return err
		}
	}
	return nil
}

// update gives a sidecar its configuration. Types of resources that are the same as
// before are not sent again. The caller holds mu.
func (d *discovery) update(s *sidecar) error {
	snapshot, err := d.mesh.snapshot(s.workload, d.authority.rootPEM, s.certificate)
	if err != nil {
		return err
	}
	// A watch that is answered takes one response and has room for it, so this does
	// not wait.
	if err := d.cache.SetSnapshot(d.life, s.workload.id(), snapshot); err != nil {
		return fmt.Errorf("configuring sidecar %s: %w", s.workload.id(), err)
	}
	return nil
}
