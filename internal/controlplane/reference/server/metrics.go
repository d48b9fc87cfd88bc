package server

import (
	"context"
	"sync"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"

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

// streams counts the streams and what happens on them, and gives all requests of
// a stream the same node, which a proxy may send once or with each.
type streams struct {
	count *counters
	cache *cache

	mu    sync.Mutex
	nodes map[streamID]*corev3.Node
}

// streamID distinguishes streams; each variant counts its own.
type streamID struct {
	delta bool
	id    int64
}

func newStreams(count *counters, cache *cache) *streams {
	return &streams{count: count, cache: cache, nodes: map[streamID]*corev3.Node{}}
}

// callbacks returns the callbacks of go-control-plane's server. admit may refuse a stream.
func (s *streams) callbacks(admit func(context.Context) error) serverv3.CallbackFuncs {
	opened := func(ctx context.Context, _ int64, _ string) error {
		s.count.streams.Inc() // one that is refused is also reported as closed
		return admit(ctx)
	}
	return serverv3.CallbackFuncs{
		StreamOpenFunc:        opened,
		DeltaStreamOpenFunc:   opened,
		StreamClosedFunc:      func(id int64, node *corev3.Node) { s.closed(streamID{false, id}, node) },
		DeltaStreamClosedFunc: func(id int64, node *corev3.Node) { s.closed(streamID{true, id}, node) },
		StreamRequestFunc: func(id int64, r *discoveryv3.DiscoveryRequest) error {
			r.Node = s.requested(streamID{false, id}, r)
			return nil
		},
		StreamDeltaRequestFunc: func(id int64, r *discoveryv3.DeltaDiscoveryRequest) error {
			r.Node = s.requested(streamID{true, id}, r)
			return nil
		},
		StreamResponseFunc: func(_ context.Context, _ int64, _ *discoveryv3.DiscoveryRequest, r *discoveryv3.DiscoveryResponse) {
			increase(s.count.responses, r.GetTypeUrl())
		},
		StreamDeltaResponseFunc: func(_ int64, _ *discoveryv3.DeltaDiscoveryRequest, r *discoveryv3.DeltaDiscoveryResponse) {
			increase(s.count.responses, r.GetTypeUrl())
		},
	}
}

func (s *streams) closed(id streamID, node *corev3.Node) {
	s.count.streams.Dec()
	s.cache.closed(node)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, id)
}

// discoveryRequest is a request of either variant.
type discoveryRequest interface {
	GetNode() *corev3.Node
	GetTypeUrl() string
	GetErrorDetail() *statuspb.Status
}

// requested counts a request that rejects a response, and returns the node of its stream.
func (s *streams) requested(id streamID, r discoveryRequest) *corev3.Node {
	if r.GetErrorDetail() != nil {
		increase(s.count.rejects, r.GetTypeUrl())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes[id] == nil && r.GetNode() != nil {
		s.nodes[id] = r.GetNode()
	}
	return s.nodes[id]
}

// increase counts one message of a type of resources, if that type is served.
func increase(vec *prometheus.CounterVec, typeURL string) {
	if t, err := kindOf(typeURL); err == nil {
		vec.WithLabelValues(t.String()).Inc()
	}
}
