package testmesh

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"scaler.mesh/scaler/pkg/xdsprobe"
)

// Serve is the control plane's program: it serves until ctx ends. The arguments are
// those that Driver starts it with, without the name of the command.
func Serve(ctx context.Context, args []string) error {
	var kubeconfig, selector, ads, monitoring string
	f := flag.NewFlagSet(Name, flag.ContinueOnError)
	f.StringVar(&kubeconfig, "kubeconfig", "", "of the cluster that is served")
	f.StringVar(&selector, "selector", "", "labels of the Services and EndpointSlices that are served")
	f.StringVar(&ads, "ads", "", "HOST:PORT of ADS")
	f.StringVar(&monitoring, "monitoring", "", "HOST:PORT of metrics")
	if err := f.Parse(args); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading --kubeconfig %s: %w", kubeconfig, err)
	}
	config.QPS = -1 // no limit of the client's own
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	authority, err := readAuthority(ctx, client)
	if err != nil {
		return err
	}
	s := server{client: client, selector: selector, authority: authority}
	if s.ads, err = new(net.ListenConfig).Listen(ctx, "tcp", ads); err != nil {
		return fmt.Errorf("listening on --ads %s: %w", ads, err)
	}
	if s.monitoring, err = new(net.ListenConfig).Listen(ctx, "tcp", monitoring); err != nil {
		return errors.Join(fmt.Errorf("listening on --monitoring %s: %w", monitoring, err), s.ads.Close())
	}
	return s.run(ctx)
}

// server is the control plane. It owns its listeners.
type server struct {
	client          kubernetes.Interface
	selector        string
	authority       *authority
	ads, monitoring net.Listener
}

// run serves until ctx ends. Sidecars are not served before the cluster has been read.
func (s server) run(ctx context.Context) error {
	credential, err := s.authority.serving()
	if err != nil {
		return errors.Join(err, s.ads.Close(), s.monitoring.Close())
	}
	group, ctx := errgroup.WithContext(ctx)
	d := newDiscovery(ctx, s.authority)
	g := grpc.NewServer(
		grpc.Creds(credentials.NewTLS(credential)),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
	)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, d.server(ctx))
	var first sync.Once
	read := make(chan struct{})
	group.Go(func() error {
		return follow(ctx, s.client, s.selector, func(m *mesh) error {
			defer first.Do(func() { close(read) })
			return d.set(m)
		})
	})
	group.Go(func() error {
		select {
		case <-read:
		case <-ctx.Done(): // g is stopped, and closes the listener
		}
		if err := g.Serve(s.ads); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			return fmt.Errorf("serving ADS: %w", err)
		}
		return nil
	})
	monitoring := &http.Server{Handler: d.count.handler(read), ReadHeaderTimeout: 10 * time.Second}
	group.Go(func() error {
		if err := monitoring.Serve(s.monitoring); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serving metrics: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		g.Stop()
		return monitoring.Close()
	})
	return group.Wait()
}

// counters are the control plane's own metrics.
type counters struct {
	streams, rejects, requests, certificates atomic.Int64
	responses                                map[string]*atomic.Int64 // by type URL; fixed
}

func newCounters() *counters {
	c := &counters{responses: map[string]*atomic.Int64{}}
	for _, t := range xdsprobe.EnvoyTypesWithSecrets() {
		c.responses[t.URL] = new(atomic.Int64)
	}
	return c
}

func (c *counters) responded(typeURL string) {
	if n := c.responses[typeURL]; n != nil {
		n.Add(1)
	}
}

// handler serves /metrics, and /ready once read is closed.
func (c *counters) handler(read <-chan struct{}) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		select {
		case <-read:
		default:
			http.Error(w, "the cluster has not been read yet", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		var text strings.Builder
		for _, t := range xdsprobe.EnvoyTypesWithSecrets() {
			fmt.Fprintf(&text, "%s{type=%q} %d\n", metricResponses, t.Name, c.responses[t.URL].Load())
		}
		fmt.Fprintf(&text, "%s %d\n", metricStreams, c.streams.Load())
		fmt.Fprintf(&text, "%s %d\n", metricRejects, c.rejects.Load())
		fmt.Fprintf(&text, "%s %d\n", metricRequests, c.requests.Load())
		fmt.Fprintf(&text, "%s %d\n", metricCertificates, c.certificates.Load())
		_, _ = w.Write([]byte(text.String())) // a client that has gone needs none
	})
	return mux
}

// The metrics that the server has and the adapter reads.
const (
	metricResponses    = "testmesh_responses_total"
	metricStreams      = "testmesh_streams"
	metricRejects      = "testmesh_rejects_total"
	metricRequests     = "testmesh_certificate_requests_total"
	metricCertificates = "testmesh_certificates_total"
)
