package measure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Handler serves the metrics over HTTP, in whichever format is asked for.
func (m *Metrics) Handler() http.Handler {
	return promhttp.InstrumentMetricHandler(m.registry, promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		DisableCompression: true, // it is read on this machine
	}))
}

// MetricsServer serves Metrics over HTTP.
type MetricsServer struct {
	listener net.Listener
	server   *http.Server
}

// Listen takes a free port of 127.0.0.1 for the metrics; see ListenOn.
func (m *Metrics) Listen() (*MetricsServer, error) { return m.ListenOn("127.0.0.1:0") }

// ListenOn takes host:port for the metrics at once, so that URL can be handed
// out; requests are answered when Run runs. Run must be called, or Close.
func (m *Metrics) ListenOn(address string) (*MetricsServer, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serving metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m.Handler())
	return &MetricsServer{listener: listener, server: &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
	}}, nil
}

// URL returns the address of the metrics.
func (s *MetricsServer) URL() string { return "http://" + s.listener.Addr().String() + "/metrics" }

// Close frees the port of a server that is not running.
func (s *MetricsServer) Close() error { return s.listener.Close() }

// Run serves until ctx is done, then ends all connections and returns nil.
func (s *MetricsServer) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = s.server.Close() })
	defer stop()
	if err := s.server.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving metrics on %s: %w", s.listener.Addr(), err)
	}
	return nil
}
