package server

import (
	"context"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"scaler.mesh/scaler/pkg/convergence"
)

// counters are the metrics, on a registry of their own.
type counters struct {
	registry *prometheus.Registry

	responses, rejects, drops, delays    *prometheus.CounterVec // by type
	streams                              prometheus.Gauge
	updates                              prometheus.Counter
	certificateRequests, certificatesOut prometheus.Counter
}

func newCounters() *counters {
	byType := func(name, help string) *prometheus.CounterVec {
		vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"type"})
		for _, t := range served {
			vec.WithLabelValues(t.String())
		}
		return vec
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	c := &counters{
		registry:            prometheus.NewRegistry(),
		responses:           byType("reference_xds_responses_total", "Responses sent, by resource type."),
		rejects:             byType("reference_xds_rejects_total", "Responses that a sidecar rejected, by resource type."),
		drops:               byType("reference_xds_dropped_pushes_total", "Pushes that were not sent because of --drop, by resource type."),
		delays:              byType("reference_xds_delayed_pushes_total", "Pushes that were held back because of --delay, by resource type."),
		streams:             prometheus.NewGauge(prometheus.GaugeOpts{Name: "reference_xds_streams", Help: "Streams that are open."}),
		updates:             counter("reference_updates_total", "Changes of the mesh that were taken over, several at once counted once."),
		certificateRequests: counter("reference_certificate_requests_total", "Certificate signing requests received."),
		certificatesOut:     counter("reference_certificates_total", "Certificates issued."),
	}
	c.registry.MustRegister(c.responses, c.rejects, c.drops, c.delays, c.streams, c.updates, c.certificateRequests, c.certificatesOut,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return c
}

func (c *counters) dropped(t convergence.Type) { c.drops.WithLabelValues(t.String()).Inc() }
func (c *counters) delayed(t convergence.Type) { c.delays.WithLabelValues(t.String()).Inc() }

// streams hears of all that happens on the streams: it admits and counts them,
// and gives all requests of a stream the same node, which a proxy may send once
// or with each.
type streams struct {
	count *counters
	admit func(ctx context.Context) error
	cache *cache

	mu    sync.Mutex
	nodes map[streamID]*corev3.Node
}

// streamID distinguishes streams; each variant counts its own.
type streamID struct {
	delta bool
	id    int64
}

var _ serverv3.Callbacks = (*streams)(nil)

func newStreams(count *counters, admit func(context.Context) error, cache *cache) *streams {
	return &streams{count: count, admit: admit, cache: cache, nodes: map[streamID]*corev3.Node{}}
}

func (s *streams) opened(ctx context.Context) error {
	s.count.streams.Inc() // one that is refused is also reported as closed
	return s.admit(ctx)
}

func (s *streams) closed(id streamID, node *corev3.Node) {
	s.count.streams.Dec()
	s.cache.closed(node)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, id)
}

// node is the node of a request's stream, given what the request says.
func (s *streams) node(id streamID, reported *corev3.Node) *corev3.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[id] == nil && reported != nil {
		s.nodes[id] = reported
	}
	return s.nodes[id]
}

func (s *streams) rejected(typeURL string) {
	if t, err := kindOf(typeURL); err == nil {
		s.count.rejects.WithLabelValues(t.String()).Inc()
	}
}

func (s *streams) responded(typeURL string) {
	if t, err := kindOf(typeURL); err == nil {
		s.count.responses.WithLabelValues(t.String()).Inc()
	}
}

// OnStreamOpen implements serverv3.Callbacks.
func (s *streams) OnStreamOpen(ctx context.Context, _ int64, _ string) error { return s.opened(ctx) }

// OnStreamClosed implements serverv3.Callbacks.
func (s *streams) OnStreamClosed(id int64, node *corev3.Node) { s.closed(streamID{false, id}, node) }

// OnStreamRequest implements serverv3.Callbacks.
func (s *streams) OnStreamRequest(id int64, r *discoveryv3.DiscoveryRequest) error {
	r.Node = s.node(streamID{false, id}, r.GetNode())
	if r.GetErrorDetail() != nil {
		s.rejected(r.GetTypeUrl())
	}
	return nil
}

// OnStreamResponse implements serverv3.Callbacks.
func (s *streams) OnStreamResponse(_ context.Context, _ int64, _ *discoveryv3.DiscoveryRequest, r *discoveryv3.DiscoveryResponse) {
	s.responded(r.GetTypeUrl())
}

// OnDeltaStreamOpen implements serverv3.Callbacks.
func (s *streams) OnDeltaStreamOpen(ctx context.Context, _ int64, _ string) error {
	return s.opened(ctx)
}

// OnDeltaStreamClosed implements serverv3.Callbacks.
func (s *streams) OnDeltaStreamClosed(id int64, node *corev3.Node) {
	s.closed(streamID{true, id}, node)
}

// OnStreamDeltaRequest implements serverv3.Callbacks.
func (s *streams) OnStreamDeltaRequest(id int64, r *discoveryv3.DeltaDiscoveryRequest) error {
	r.Node = s.node(streamID{true, id}, r.GetNode())
	if r.GetErrorDetail() != nil {
		s.rejected(r.GetTypeUrl())
	}
	return nil
}

// OnStreamDeltaResponse implements serverv3.Callbacks.
func (s *streams) OnStreamDeltaResponse(_ int64, _ *discoveryv3.DeltaDiscoveryRequest, r *discoveryv3.DeltaDiscoveryResponse) {
	s.responded(r.GetTypeUrl())
}

// OnFetchRequest implements serverv3.Callbacks.
func (s *streams) OnFetchRequest(context.Context, *discoveryv3.DiscoveryRequest) error { return nil }

// OnFetchResponse implements serverv3.Callbacks.
func (s *streams) OnFetchResponse(*discoveryv3.DiscoveryRequest, *discoveryv3.DiscoveryResponse) {}
