// Package server is a small control plane of scaler's own, the program behind
// `scaler reference`: go-control-plane's ADS server, delta and state of the
// world, over the Services and EndpointSlices of a cluster, with a certificate
// authority. It does what a mesh's control plane must and no more, so
// that what it costs is known to be little and how late it is can be set.
//
// Its configuration is what a real Envoy takes: clusters with mutual TLS, load
// assignments with health, an outbound and an inbound listener, routes. It has
// names and rules of its own, see Mesh, and ConfigMaps for what Services cannot
// say, see ConfigLabel. How it is started and what scaler expects of it is the
// business of package reference.
package server

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	securityv1 "istio.io/api/security/v1alpha1"
	"k8s.io/client-go/kubernetes"
)

const (
	// grace is the time that open calls have to end when the server stops.
	grace = 3 * time.Second

	// Buffers of each connection. Thousands of them must cost little; a write
	// buffer is lent only while there is something to write.
	readBuffer  = 4 << 10
	writeBuffer = 16 << 10

	// A sidecar that knows thousands of resources says so in one request.
	maxRequest = 64 << 20
)

// Options state what is served, and where. Client or Static must be set, and all
// listeners but Plain.
type Options struct {
	Client     kubernetes.Interface // must not limit its own rate
	Static     *Static              // served instead of a cluster's services; nil = none
	Authority  *Authority           // signs, and is the root of the server's own certificate
	Secure     net.Listener         // ADS and the certificate API, over TLS
	Plain      net.Listener         // ADS without TLS; nil = none
	Monitoring net.Listener         // /metrics, /ready, /faults, /root over HTTP

	// Selector selects Services and EndpointSlices by their labels; "" = all,
	// the cluster's own among them.
	Selector string
	// Pace bounds what a burst of changes costs: after the changes that are
	// there were pushed, the next ones wait so long for each of these pushes.
	// About as long as a push takes to arrive, it holds back no change that is
	// made after the one before has arrived everywhere. 0 = none.
	Pace time.Duration
	// VerifyTokens has the bearer token of every certificate request and every
	// stream reviewed by the API server, and issues a certificate only for the
	// token's own identity. Without, tokens are not looked at, and anyone who
	// can connect is issued a certificate for anything.
	VerifyTokens bool
	Faults       Faults // at the start; PUT /faults sets others
}

// Run serves until ctx is done, then ends all streams and returns nil. It owns
// the listeners and has closed them when it returns.
func Run(ctx context.Context, o Options) error {
	count := newCounters()
	faults := newFaults(o.Faults)
	cache := newCache(faults, count)
	identify := anybody
	if o.VerifyTokens {
		identify = reviewer(o.Client)
	}
	admit := func(ctx context.Context) error { _, err := identify(ctx); return err }

	// Ends the streams, which would not end by themselves, before the servers.
	streamsCtx, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer endStreams()
	ads := serverv3.NewServer(streamsCtx, cache, newStreams(count, cache).callbacks(admit))

	serving, err := o.Authority.serving()
	if err != nil {
		return err
	}
	secure := newGRPC(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{serving}, MinVersion: tls.VersionTLS12})))
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(secure, ads)
	securityv1.RegisterIstioCertificateServiceServer(secure, &certificates{authority: o.Authority, count: count, identify: identify})
	plain := newGRPC()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(plain, ads)

	var ready atomic.Bool
	handler := newMonitoring(o.Authority, count, faults, &ready)
	follow := newSource(o, cache, count).run
	handler.Handle("GET /acknowledged", cache)
	if o.Static != nil {
		fixed := newStatic(*o.Static, cache, count)
		handler.Handle("POST /endpoint", fixed)
		follow = fixed.run
	}
	monitoring := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}

	group, ctx := errgroup.WithContext(ctx)
	// Connections wait until everything is there to be served: to a sidecar
	// that comes back, what is not there yet would be gone.
	synced := make(chan struct{})
	group.Go(func() error { return serve(ctx, synced, secure, o.Secure) })
	if o.Plain != nil {
		group.Go(func() error { return serve(ctx, synced, plain, o.Plain) })
	}
	group.Go(func() error {
		if err := monitoring.Serve(o.Monitoring); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serving metrics: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		return follow(ctx, func() {
			close(synced)
			ready.Store(true)
		})
	})
	group.Go(func() error {
		<-ctx.Done()
		ready.Store(false)
		endStreams()
		stop(secure, plain)
		down, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		return monitoring.Shutdown(down)
	})
	return group.Wait()
}

func newGRPC(options ...grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(options,
		grpc.ReadBufferSize(readBuffer),
		grpc.WriteBufferSize(writeBuffer),
		grpc.SharedWriteBuffer(true),
		grpc.MaxRecvMsgSize(maxRequest),
		// Proxies ping idle connections as often as they like.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	)...)
}

func serve(ctx context.Context, synced <-chan struct{}, s *grpc.Server, l net.Listener) error {
	select {
	case <-synced:
	case <-ctx.Done(): // s is stopped, and closes l at once
	}
	if err := s.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("serving ADS on %s: %w", l.Addr(), err)
	}
	return nil
}

// stop lets open calls end for a while, then ends them.
func stop(servers ...*grpc.Server) {
	stopped := make(chan struct{})
	go func() {
		for _, s := range servers {
			s.GracefulStop()
		}
		close(stopped)
	}()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-stopped:
		return
	case <-timer.C:
	}
	for _, s := range servers {
		s.Stop()
	}
	<-stopped
}

// newMonitoring serves metrics and readiness, and takes other faults: so that
// a mesh may converge before pushes to it are dropped.
func newMonitoring(authority *Authority, count *counters, faults *faults, ready *atomic.Bool) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(count.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /root", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(authority.RootPEM()) // a client that has gone needs none
	})
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			http.Error(w, "the cluster's objects are not all read", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("PUT /faults", func(w http.ResponseWriter, r *http.Request) {
		var f Faults
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&f)
		if err == nil {
			err = f.Validate()
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		faults.set.Store(&f)
	})
	return mux
}
