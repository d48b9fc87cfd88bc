package measure

import (
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"scaler.mesh/scaler/pkg/record"
)

// Latency names one of the latencies that scaler measures.
type Latency string

// The latencies of a rollout.
const (
	PodAdmission          Latency = "pod_admission"
	PodReady              Latency = "pod_ready"
	TokenRequest          Latency = "token_request"
	CertificateIssuance   Latency = "certificate_issuance"
	Connect               Latency = "connect"
	FirstConfiguration    Latency = "first_configuration"
	CompleteConfiguration Latency = "complete_configuration"
	SchedulingLag         Latency = "scheduling_lag"
)

// latencies has for each the figure of the record that it is, whose definition is the metric's help text.
var latencies = map[Latency]string{
	PodAdmission:          "latencies.podAdmission",
	PodReady:              "latencies.podReady",
	TokenRequest:          "latencies.token",
	CertificateIssuance:   "latencies.certificate",
	Connect:               "latencies.connect",
	FirstConfiguration:    "latencies.firstConfiguration",
	CompleteConfiguration: "latencies.completeConfiguration",
	SchedulingLag:         "instrument.lag",
}

// Build states which scaler this is.
type Build struct {
	Version, Revision string
}

// noPhase is the label of the time between phases, and before and after them.
const noPhase = "none"

// The values of labels that are known beforehand: their series are there from
// the first scrape, at zero, so that what never happened reads as 0.
var (
	podStates     = []string{"created", "ready"}
	sidecarStates = []string{"connected", "complete", "converged"}
	resourceTypes = []string{"CDS", "EDS", "LDS", "RDS", "ECDS"}
	changeKinds   = []string{"endpointAdd", "endpointRemove", "endpointHealth", "route", "policy"}
)

// Metrics are scaler's own, for the run that it drives; the record has its own
// and fuller figures, these are for watching and for the run's TSDB. Methods
// may be called by several goroutines.
type Metrics struct {
	registry *prometheus.Registry

	pods, sidecars            *prometheus.GaugeVec
	responses, responseBytes  *prometheus.CounterVec
	wasted, acks, nacks       *prometheus.CounterVec
	attempts, refusals, again prometheus.Counter
	proxies                   prometheus.Gauge
	certificates              *prometheus.CounterVec
	latencies                 map[Latency]prometheus.Histogram
	push, first, last         *prometheus.HistogramVec
	run                       *prometheus.GaugeVec

	mu           sync.Mutex // makes a change of phase one step
	phase, since *prometheus.GaugeVec
}

// NewMetrics makes the metrics of one run. A sampler gives them what each
// component uses, read anew at each scrape; nil leaves that out.
func NewMetrics(build Build, sampler *Sampler) *Metrics {
	m := &Metrics{
		registry:      prometheus.NewRegistry(),
		pods:          gauges("pods", "Pods of the run that have reached a state.", "state"),
		sidecars:      gauges("sidecars", "Sidecars of the run that have reached a state.", "state"),
		proxies:       prometheus.NewGauge(prometheus.GaugeOpts{Namespace: namespace, Name: "proxies", Help: "Simulated proxies of the run that were ever connected: sidecars, or the proxies of nodes."}),
		phase:         gauges("phase_info", "The phase that the run is in; none between phases.", "phase"),
		since:         gauges("phase_start_timestamp_seconds", "When that phase began, since 1970.", "phase"),
		run:           runInfo(),
		push:          histograms("push_seconds", "Time from a followed change to a sidecar concerned having it.", "kind"),
		first:         histograms("propagation_first_seconds", "Time from a followed change to the first sidecar having it.", "kind"),
		last:          histograms("propagation_last_seconds", "Time from a followed change to the last sidecar concerned having it.", "kind"),
		responses:     counters("xds_responses_total", "Discovery responses received.", "type"),
		responseBytes: counters("xds_response_bytes_total", "Bytes of discovery responses received.", "type"),
		wasted:        counters("xds_wasted_responses_total", "Responses whose resources equal what the sidecar held.", "type"),
		acks:          counters("xds_acks_total", "Responses acknowledged.", "type"),
		nacks:         counters("xds_nacks_total", "Responses rejected.", "type"),
		attempts:      counter("xds_connection_attempts_total", "Attempts of sidecars to open a stream."),
		refusals:      counter("xds_refusals_total", "Streams that the control plane refused."),
		again:         counter("xds_reconnects_total", "Streams opened again after one was lost."),
		certificates:  counters("certificate_requests_total", "Certificate signing requests answered or failed.", "outcome"),
		latencies:     map[Latency]prometheus.Histogram{},
	}
	info := gauges("build_info", "The version of scaler that runs.", "version", "revision", "go_version")
	info.WithLabelValues(build.Version, build.Revision, runtime.Version()).Set(1)
	m.registry.MustRegister(info, m.run, m.pods, m.sidecars, m.proxies, m.phase, m.since, m.responses, m.responseBytes, m.push, m.first, m.last,
		m.wasted, m.acks, m.nacks, m.attempts, m.refusals, m.again, m.certificates,
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsGC, collectors.MetricsScheduler)))
	for name, path := range latencies {
		figure, _ := record.FigureAt(path + ".p50")
		m.latencies[name] = histogram(string(name)+"_seconds", figure.Between())
		m.registry.MustRegister(m.latencies[name])
	}
	if sampler != nil {
		m.registry.MustRegister(components{sampler})
	}
	m.zero()
	return m
}

// zero makes the series whose labels are known beforehand.
func (m *Metrics) zero() {
	m.Phase("")
	for _, state := range podStates {
		m.Pods(state, 0)
	}
	for _, state := range sidecarStates {
		m.Sidecars(state, 0)
	}
	for _, vec := range []*prometheus.CounterVec{m.responses, m.responseBytes, m.wasted, m.acks, m.nacks} {
		for _, kind := range resourceTypes {
			vec.WithLabelValues(kind)
		}
	}
	for _, vec := range []*prometheus.HistogramVec{m.push, m.first, m.last} {
		for _, kind := range changeKinds {
			vec.WithLabelValues(kind)
		}
	}
	for _, outcome := range []string{issued, failed} {
		m.certificates.WithLabelValues(outcome)
	}
}

// Phase states which phase begins; "" that none runs.
func (m *Metrics) Phase(name string) {
	if name == "" {
		name = noPhase
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.phase.Reset()
	m.phase.WithLabelValues(name).Set(1)
	m.since.Reset()
	m.since.WithLabelValues(name).Set(unixSeconds())
}

// unixSeconds returns the present time as Prometheus has it: seconds since 1970, to the millisecond.
func unixSeconds() float64 { return float64(time.Now().UnixMilli()) / 1000 }

// Pods sets how many pods have reached a state, such as "created" or "ready".
func (m *Metrics) Pods(state string, n int) { m.pods.WithLabelValues(state).Set(float64(n)) }

// Sidecars sets how many sidecars have reached a state, such as "connected",
// "complete" or "converged".
func (m *Metrics) Sidecars(state string, n int) { m.sidecars.WithLabelValues(state).Set(float64(n)) }

// Proxies sets how many simulated proxies were ever connected.
func (m *Metrics) Proxies(n int) { m.proxies.Set(float64(n)) }

// Response counts a discovery response of a type, such as "EDS", with its size on the
// wire, as rejected (NACK) or acknowledged (ACK). A wasted one contained nothing new.
func (m *Metrics) Response(kind string, bytes int, wasted, rejected bool) {
	m.responses.WithLabelValues(kind).Inc()
	m.responseBytes.WithLabelValues(kind).Add(float64(bytes))
	if wasted {
		m.wasted.WithLabelValues(kind).Inc()
	}
	if rejected {
		m.nacks.WithLabelValues(kind).Inc()
	} else {
		m.acks.WithLabelValues(kind).Inc()
	}
}

// Attempt counts an attempt to open a stream, Refusal one that the control
// plane refused, and Reconnect one that took the place of a lost stream.
func (m *Metrics) Attempt() { m.attempts.Inc() }

// Refusal counts a refused stream; see Attempt.
func (m *Metrics) Refusal() { m.refusals.Inc() }

// Reconnect counts a stream that replaced a lost one; see Attempt.
func (m *Metrics) Reconnect() { m.again.Inc() }

// How a certificate signing request ended.
const (
	issued = "issued"
	failed = "failed"
)

// Certificate counts a certificate signing request by how it ended.
func (m *Metrics) Certificate(ok bool) {
	outcome := failed
	if ok {
		outcome = issued
	}
	m.certificates.WithLabelValues(outcome).Inc()
}

// Push adds the time in which a followed change of a kind, such as "route",
// reached one sidecar that it concerns.
func (m *Metrics) Push(kind string, d time.Duration) {
	m.push.WithLabelValues(kind).Observe(d.Seconds())
}

// PropagatedFirst adds the time in which a followed change of a kind reached
// the first sidecar, PropagatedLast that in which it reached all it concerns.
func (m *Metrics) PropagatedFirst(kind string, d time.Duration) {
	m.first.WithLabelValues(kind).Observe(d.Seconds())
}

// PropagatedLast takes the time to the last sidecar; see PropagatedFirst.
func (m *Metrics) PropagatedLast(kind string, d time.Duration) {
	m.last.WithLabelValues(kind).Observe(d.Seconds())
}

// Observe adds one latency. One that is none of this package's constants is
// not kept.
func (m *Metrics) Observe(l Latency, d time.Duration) {
	if h, ok := m.latencies[l]; ok {
		h.Observe(d.Seconds())
	}
}

// namespace begins the names of all of scaler's metrics.
const namespace = "scaler"

func gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
}

// histogram is both native, for exact quantiles, and classic, for readers that
// know no other: 1 ms to 131 s, each bound twice the one before.
func histogram(name, help string) prometheus.Histogram {
	return prometheus.NewHistogram(histogramOptions(name, help))
}

func histograms(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(histogramOptions(name, help), labels)
}

func histogramOptions(name, help string) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Namespace: namespace, Name: name, Help: help,
		Buckets:                        prometheus.ExponentialBuckets(0.001, 2, 18),
		NativeHistogramBucketFactor:    1.1,
		NativeHistogramMaxBucketNumber: 160,
	}
}
